"""When a sweep expires, folded from its log; and what is left out for agents that do not know of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import JobState, SnapshotReader
from monkey.protocol.sweeps.sweep_log import append_order, append_revision, read_sweep
from monkey.protocol.sweeps.sweep_state import SPARE, SweepState, fold_entry
from monkey.spec.job.expires import Expiry
from monkey.spec.job.recipe import SweepSettings
from monkey.store.memory import MemoryStore
from tests.signing import SIGNERS
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

KEYS = Keys("p")
HOUR = 3600.0
#: Expires an hour after it was applied, at 1,000.
BRIEF = replace(REVISION, settings=SweepSettings(grace=10, expires=Expiry(after=HOUR)), applied=1000.0)


def revised(**changes: object) -> dict[str, object]:
    """Return the order of a revision with these settings."""
    made = replace(BRIEF, settings=replace(BRIEF.settings, **changes), applied=1000.0)  # type: ignore[arg-type]  # by name
    return {"kind": "revision", **made.to_json()}


def test_orders_but_extend_and_revisions_leave_the_time_as_it_is() -> None:
    state = fold_entry(SweepState("digits"), revised())
    assert state.expires == 1000.0 + HOUR
    for kind in ("pause", "resume", "cancel", "retry"):
        state = fold_entry(state, {"kind": kind})
        assert state.expires == 1000.0 + HOUR
    later = fold_entry(state, {"kind": "extend", "until": 9000.0})
    assert later.expires == 9000.0
    assert fold_entry(later, {"kind": "extend", "until": 8000.0}).expires == 9000.0, "nobody shortens by extending"
    assert fold_entry(later, revised()).expires == 1000.0 + HOUR, "a new revision begins its time anew"
    assert fold_entry(later, revised(expires=None)).expires is None


def test_more_time_opens_nothing_that_people_shut() -> None:
    state = fold_entry(SweepState("digits"), revised())
    for shut in ({"kind": "pause"}, {"kind": "cancel"}):
        assert not fold_entry(fold_entry(state, shut), {"kind": "extend", "until": 9000.0}).active
    never = fold_entry(SweepState("digits"), revised(expires=None))
    assert fold_entry(never, {"kind": "extend", "until": 9000.0}).expires is None


def test_jobs_are_released_in_time_and_a_short_time_is_not_spent_on_that() -> None:
    state = fold_entry(SweepState("digits"), revised(expires=Expiry(after=10 * HOUR), grace=30))
    end = 1000.0 + 10 * HOUR
    assert state.closes == end - SPARE - 30
    assert [state.over(now) for now in (end - SPARE - 31, end - SPARE - 30, end + HOUR)] == [False, True, True]
    assert fold_entry(SweepState("digits"), revised(expires=Expiry(after=60))).closes == 1054.0
    assert fold_entry(SweepState("digits"), revised(expires=Expiry(at=2000.0))).closes == 1900.0
    assert not fold_entry(SweepState("digits"), revised(expires=None)).over(float("inf"))


def test_agents_from_before_can_read_what_never_expires() -> None:
    told = REVISION.to_json()
    assert "applied" not in told and "expires" not in told["settings"]
    assert BRIEF.to_json()["applied"] == 1000.0 and json.loads(json.dumps(BRIEF.to_json()))


def test_an_expired_sweep_is_read_as_such_and_as_open_again_when_extended() -> None:
    async def main() -> None:
        store, now = MemoryStore(), 1000.0
        await append_revision(store, KEYS, SIGNERS, BRIEF, 0)
        reader = SnapshotReader(store, KEYS, SIGNERS, wall=lambda: now)
        seen = []
        for now in (1000.0, 1000.0 + HOUR):  # noqa: B007 - the reader's clock
            view = (await reader.read()).sweeps["digits"]
            seen.append((view.active, dict(view.counts), view.unfinished))
        assert seen == [(True, {JobState.QUEUED: 2}, 2), (False, {JobState.EXPIRED: 2}, 2)]
        await append_order(store, KEYS, SIGNERS, "digits", "extend", until=9000.0)
        assert (await reader.read()).sweeps["digits"].active
        assert (await read_sweep(store, KEYS, SIGNERS, "digits")).expires == 9000.0

    asyncio.run(main())
