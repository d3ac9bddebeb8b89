"""Checks in the store: the checks themselves, and what of recorded jobs they need."""

from __future__ import annotations

from typing import Any

from monkey.apply.inspect.result_facts import load_facts
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.errors import CorruptObject, KeyMissing, MonkeyError
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.record.job_attempts import find_success
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.spec.sweep.sweep_names import parse_check_name

#: Checks that are named where none is meant.
_NAMED = 5


def find_check(snapshot: StoreSnapshot, name: str) -> SweepView:
    """Return the check of that name. Raises NotFound, and MonkeyError for another sweep."""
    view = find_sweep(snapshot, name)
    if view.state.revision is None or not view.state.revision.checks:
        checks = [each for each in snapshot.sweeps if (of := parse_check_name(each)) and of.sweep == name]
        hint = f"its checks: {', '.join(checks[-_NAMED:])}" if checks else f"`monkey rerun --check {name}` checks it"
        raise MonkeyError(f"expected a check, found the sweep {name!r}", hint=hint)
    return view


async def read_lock(world: World, job: str) -> tuple[str, ...]:
    """Return the packages of the environment that a job succeeded in; () where they are not known.

    Raises StoreError.
    """
    log = EntryLog(world.keys.job_log(job))
    await log.refresh(world.at)
    end = find_success(log)
    facts = await read_facts(world, end.facts) if end is not None else {}
    return tuple(facts.get("lock", ()))


async def read_facts(world: World, name: str) -> dict[str, Any]:
    """Return the facts with this hash; {} where they are missing or damaged. Raises StoreError."""
    try:
        return await load_facts(world.at, world.keys, name) if name else {}
    except (KeyMissing, CorruptObject):
        return {}
