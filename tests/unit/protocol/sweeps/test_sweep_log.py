"""A sweep's log, folded; the verdicts that follow from it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from monkey.errors import ConcurrentApply, NotFound
from monkey.protocol.entry_log import LogTally
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.status.store_snapshot import SnapshotReader
from monkey.protocol.sweeps.queue_markers import read_queue
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_order, append_revision, list_revisions, list_sweeps, read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import MAX_LOSSES, MAX_LOSSES_IN_ALL, Verdict, judge_job
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import JobResources, Recipe, SweepSettings
from monkey.store.memory import MemoryStore
from tests.signing import ANYBODY, SIGNERS, make_signers

KEYS = Keys("p")
JOBS = ["0" * 15 + "1", "0" * 15 + "2"]
REVISION = Revision(
    sweep="digits",
    recipe=Recipe(["python", "train.py", "{lr}"], "c" * 64, env={"A": "é"}, outputs=["*.npz"]),
    settings=SweepSettings(
        max_retries=1, timeout=7200, resources=JobResources(2, 1, 2**30), metric="acc", maximize=True
    ),
    table=JobTable(JOBS, {"lr": ParameterColumn([0.1, "x{y}"], [0, 1]), "extra": ParameterColumn([True], [-1, 0])}),
    spec_text="name: digits\n",
    code_files={"train.py": "d" * 64},
    git={"commit": "abc", "branch": "main", "dirty": False},
    adopted={JOBS[0]: "f" * 16},
)


def test_a_revision_comes_back_whole() -> None:
    async def roundtrip() -> None:
        store = MemoryStore()
        assert await append_revision(store, KEYS, SIGNERS, REVISION, 0) == 1
        state = await read_sweep(store, KEYS, SIGNERS, "digits")
        assert state.revision is not None
        assert state.revision.to_json() == REVISION.to_json()
        assert state.revision.table.parameters(1) == {"lr": "x{y}", "extra": True}
        assert (state.head, state.revision_at, state.active) == (1, 1, True)
        assert not state.wants(JOBS[0]), "an adopted job is not run"
        assert state.wants(JOBS[1])
        assert await list_sweeps(store, KEYS) == ["digits"]

    asyncio.run(roundtrip())


def test_recipes_of_earlier_revisions_stay_known_once_each() -> None:
    async def main() -> None:
        store = MemoryStore()
        other = replace(REVISION, recipe=replace(REVISION.recipe, code="9" * 64), git=None)
        for number, revision in enumerate((REVISION, REVISION, other, REVISION)):
            await append_revision(store, KEYS, SIGNERS, revision, number)
        recipes = (await read_sweep(store, KEYS, SIGNERS, "digits")).recipes
        assert [(one.number, one.commit, one.recipe.code[:1]) for one in recipes] == [
            (1, "abc", REVISION.recipe.code[:1]), (3, "", "9"), (4, "abc", REVISION.recipe.code[:1])
        ]  # fmt: skip
        assert recipes[0].parameters == {"lr", "extra"} and recipes[0].sweep == "digits"

    asyncio.run(main())


def test_the_second_of_two_applies_is_told() -> None:
    async def twice() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        with pytest.raises(ConcurrentApply, match="changed by somebody else"):
            await append_revision(store, KEYS, SIGNERS, REVISION, 0)

    asyncio.run(twice())


def test_orders_fold_in_their_order() -> None:
    async def orders() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        steps = []
        for kind in ("pause", "cancel", "resume", "cancel", "retry"):
            await append_order(store, KEYS, SIGNERS, "digits", kind, reason=f"why {kind}", jobs={JOBS[1]: 4})
            state = await read_sweep(store, KEYS, SIGNERS, "digits")
            steps.append((state.paused, state.cancelled, state.retries))
        retried = {JOBS[1]: 4}
        assert steps == [
            (True, None, {}),
            (True, "why cancel", {}),
            (False, None, {}),
            (False, "why cancel", {}),
            (False, None, retried),
        ]
        await append_order(store, KEYS, SIGNERS, "digits", "pause")
        await append_revision(store, KEYS, SIGNERS, REVISION, 7)
        state = await read_sweep(store, KEYS, SIGNERS, "digits", state)
        assert state.paused, "a new revision does not undo a pause"

    asyncio.run(orders())


def test_orders_need_a_sweep() -> None:
    with pytest.raises(NotFound, match="no sweep 'nobody'"):
        asyncio.run(append_order(MemoryStore(), KEYS, SIGNERS, "nobody", "pause"))


JUNK = [b"", b"{", b"[]", b'{"kind":"dance"}', b'{"kind":"revision"}', b"[" * 200_000]
JUNK += [b'{"kind":"retry","jobs":{"x":"y"}}', b'{"kind":"cancel","reason":5}', b'{"kind":"cancel","cause":["a"]}']


@pytest.mark.parametrize("junk", JUNK)
def test_an_entry_that_is_none_keeps_its_number_and_what_follows_counts(junk: bytes) -> None:
    async def skipped() -> None:
        store, base = MemoryStore(), KEYS.sweep_log("digits")
        await store.put(f"{base}00000001", junk)
        with pytest.raises(NotFound, match="no sweep 'digits' in this project; projects/p/sweeps/digits/00000001: "):
            await append_order(store, KEYS, SIGNERS, "digits", "pause")
        assert await append_revision(store, KEYS, SIGNERS, REVISION, 1) == 2
        await store.put(f"{base}00000003", junk)
        assert await append_order(store, KEYS, SIGNERS, "digits", "pause") == 4
        state = await read_sweep(store, KEYS, SIGNERS, "digits")
        assert (state.head, state.revision_at, state.paused, state.skipped.total) == (4, 2, True, 2)
        assert [line.partition(":")[0] for line in state.skipped.lines] == [f"{base}00000001", f"{base}00000003"]
        seen = await SnapshotReader(store, KEYS, SIGNERS).read()
        assert list(seen.sweeps["digits"].jobs) == JOBS
        assert [problem for problem in seen.problems if "digits/00000003" in problem]
        assert [one.number for one in await list_revisions(store, KEYS, SIGNERS, "digits")] == [2]

    asyncio.run(skipped())


def test_a_revision_of_another_sweep_counts_for_nothing() -> None:
    async def moved() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        await store.put(f"{KEYS.sweep_log('other')}00000001", await store.get(f"{KEYS.sweep_log('digits')}00000001"))
        state = await read_sweep(store, KEYS, ANYBODY, "other")
        assert state.revision is None and "revision of sweep 'digits'" in state.skipped.lines[0]

    asyncio.run(moved())


def test_of_many_entries_that_are_none_a_few_are_named() -> None:
    async def flooded() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        for n in range(2, 10_002):
            await store.put(KEYS.sweep_log("digits") + spell_number(n), b"\x1b[2J" * 20)
        state = await read_sweep(store, KEYS, SIGNERS, "digits")
        assert (state.head, state.skipped.total, len(state.skipped.named)) == (10_001, 10_000, 3)
        assert state.skipped.lines[-1] == "projects/p/sweeps/digits/: 9,997 more are skipped"
        assert not any("\x1b" in line or len(line) > 300 for line in state.skipped.lines)
        seen = await SnapshotReader(store, KEYS, SIGNERS).read()
        assert len(seen.problems) == 4
        assert await append_order(store, KEYS, SIGNERS, "digits", "pause") == 10_002

    asyncio.run(flooded())


def test_a_second_apply_is_told_though_what_came_first_counts_for_nothing() -> None:
    async def twice() -> None:
        store = MemoryStore()
        await store.put(f"{KEYS.sweep_log('digits')}00000001", b"{")
        with pytest.raises(ConcurrentApply, match="changed by somebody else"):
            await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        assert await append_revision(store, KEYS, SIGNERS, REVISION, 1) == 2

    asyncio.run(twice())


def test_a_reason_that_is_no_text_is_kept() -> None:
    async def odd() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        await append_order(store, KEYS, SIGNERS, "digits", "cancel", reason="\udcff")
        assert (await read_sweep(store, KEYS, SIGNERS, "digits")).cancelled == "\udcff"

    asyncio.run(odd())


def test_verdicts_count_failures_since_the_last_retry() -> None:
    state = SweepState("digits", 1, REVISION)
    counts = LogTally()
    assert judge_job(JOBS[1], counts, state) is Verdict.OPEN
    counts.failed_at = [2]
    assert judge_job(JOBS[1], counts, state) is Verdict.OPEN, "one retry is allowed"
    counts.failed_at = [2, 4]
    assert judge_job(JOBS[1], counts, state) is Verdict.FAILED
    assert judge_job(JOBS[1], counts, replace(state, retries={JOBS[1]: 2})) is Verdict.OPEN
    generous = replace(REVISION, settings=SweepSettings(max_retries=2))
    assert judge_job(JOBS[1], counts, replace(state, revision=generous)) is Verdict.OPEN, "a raised cap reopens"
    counts.succeeded = True
    assert judge_job(JOBS[1], counts, state) is Verdict.SUCCEEDED


def test_a_job_that_takes_its_agents_down_is_given_up() -> None:
    counts = LogTally()
    counts.lost_at = list(range(1, MAX_LOSSES + 1))
    state = SweepState("digits", 1, REVISION)
    assert judge_job(JOBS[1], counts, state) is Verdict.OPEN
    counts.lost_at.append(99)
    assert judge_job(JOBS[1], counts, state) is Verdict.FAILED
    counts.saved_at = [50]
    assert judge_job(JOBS[1], counts, state) is Verdict.OPEN, "it had saved a checkpoint since"
    counts.saved_at = list(range(100, 100 + MAX_LOSSES_IN_ALL))
    assert judge_job(JOBS[1], counts, state) is Verdict.FAILED, "for ever it does not"
    assert judge_job(JOBS[1], counts, replace(state, retries={JOBS[1]: 120})) is Verdict.OPEN


@pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "é", "a" * 101])
def test_a_project_has_a_name_that_can_be_part_of_a_key(name: str) -> None:
    with pytest.raises(ValueError, match="a project is named with"):
        Keys(name)


@pytest.mark.parametrize("name", ["\x1b]0;title\x07\x1b[2J", ".git", "a b", "x" * 200, "\u202eevil", "-o"])
def test_what_no_spec_can_be_named_is_no_sweep(name: str) -> None:
    async def forge() -> None:
        store = MemoryStore()
        await store.put(f"{KEYS.sweeps}{name}/00000001", b"{}")
        await store.put(f"{KEYS.queue('local')}{name}/00000001", b"{}")
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        assert await list_sweeps(store, KEYS) == ["digits"]
        assert name not in (await read_queue(store, KEYS, "local")).markers
        assert list((await SnapshotReader(store, KEYS, SIGNERS).read()).sweeps) == ["digits"]

    asyncio.run(forge())


async def write_orders(store: MemoryStore, kinds: tuple[str, ...] = ("pause", "resume", "pause")) -> str:
    """Append a revision and orders; return the base of their keys."""
    await append_revision(store, KEYS, SIGNERS, REVISION, 0)
    for kind in kinds:
        await append_order(store, KEYS, SIGNERS, "digits", kind)
    return KEYS.sweep_log("digits")


def test_an_altered_entry_voids_all_that_follow_until_their_signer_says_more() -> None:
    async def altered() -> None:
        store = MemoryStore()
        base = await write_orders(store)
        newer = replace(REVISION, settings=replace(REVISION.settings, priority=7))
        assert await append_revision(store, KEYS, SIGNERS, newer, 4) == 5
        assert await append_order(store, KEYS, SIGNERS, "digits", "cancel") == 6
        await store.put(f"{base}00000002", (await store.get(f"{base}00000002")).replace(b"pause", b"pausf"))
        state = await read_sweep(store, KEYS, SIGNERS, "digits")
        assert (state.revision_at, state.paused, state.cancelled, state.skipped.total) == (1, False, None, 5)
        assert await append_revision(store, KEYS, SIGNERS, newer, state.head) == 7
        state = await read_sweep(store, KEYS, SIGNERS, "digits", state)
        assert (state.revision_at, state.skipped.total) == (7, 5)

    asyncio.run(altered())


def test_a_reader_follows_what_was_written_in_the_place_of_removed_entries() -> None:
    async def removed() -> None:
        store = MemoryStore()
        base = await write_orders(store, ("pause", "resume"))
        reader = await read_sweep(store, KEYS, SIGNERS, "digits")
        for n in (2, 3):
            await store.delete(f"{base}{n:08d}")
        for kind in ("pause", "resume", "cancel"):
            await append_order(store, KEYS, SIGNERS, "digits", kind)
        reader = await read_sweep(store, KEYS, SIGNERS, "digits", reader)
        assert (
            reader == await read_sweep(store, KEYS, SIGNERS, "digits") and reader.cancelled and not reader.skipped.total
        )

    asyncio.run(removed())


class CountedStore(MemoryStore):
    """Notes what is read: a request costs money in a bucket."""

    def __init__(self) -> None:
        super().__init__()
        self.read = list[str]()

    async def get(self, key: str) -> bytes:
        self.read.append(key)
        return await super().get(key)


def test_a_reader_reads_only_what_was_appended_since() -> None:
    async def appended() -> None:
        store = CountedStore()
        base = await write_orders(store, ("pause", "resume"))
        reader = await read_sweep(store, KEYS, SIGNERS, "digits")
        await append_order(store, KEYS, SIGNERS, "digits", "cancel")
        store.read.clear()
        reader = await read_sweep(store, KEYS, SIGNERS, "digits", reader)
        assert reader.cancelled and store.read == [f"{base}00000004", f"{base}00000005"]

    asyncio.run(appended())


@pytest.mark.parametrize("stranger", [make_signers(2), None], ids=["signed by another", "unsigned"])
def test_people_see_what_strangers_applied_and_no_machine_of_theirs_runs_it(stranger: EntrySigners | None) -> None:
    async def foreign() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, stranger or SIGNERS, REVISION, 0)
        if stranger is None:
            body = json.loads(await store.get(f"{KEYS.sweep_log('digits')}00000001"))
            del body["signature"]
            await store.put(f"{KEYS.sweep_log('digits')}00000001", json.dumps(body).encode())
        assert (await read_sweep(store, KEYS, SIGNERS, "digits")).revision is None
        reader = SnapshotReader(store, KEYS, SIGNERS)
        for _ in range(2):
            seen = await reader.read()
            state = seen.sweeps["digits"].state
            assert state.is_foreign and state.revision is not None and state.skipped.total == 1 and seen.problems
        with pytest.raises(NotFound, match="skipped, it counts for nothing"):
            await append_order(store, KEYS, SIGNERS, "digits", "pause")
        assert await append_revision(store, KEYS, SIGNERS, REVISION, state.head) == 2
        assert not (await reader.read()).sweeps["digits"].state.is_foreign

    asyncio.run(foreign())


class MeetingStore(MemoryStore):
    """Holds the first two writes of orders back until both have read what is there."""

    def __init__(self) -> None:
        super().__init__()
        self.expected, self.met = 0, asyncio.Event()

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        if self.expected:
            self.expected -= 1
            if not self.expected:
                self.met.set()
            await self.met.wait()
        return await super().create(key, data, durable=durable)


def test_two_orders_at_once_are_both_in_the_log() -> None:
    async def meet() -> None:
        store = MeetingStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        store.expected = 2
        orders = [append_order(store, KEYS, SIGNERS, "digits", kind) for kind in ("pause", "cancel")]
        async with asyncio.timeout(10):
            assert sorted(await asyncio.gather(*orders)) == [2, 3]
        state = await read_sweep(store, KEYS, SIGNERS, "digits")
        assert (state.head, state.paused, state.cancelled is None) == (3, True, False)

    asyncio.run(meet())
