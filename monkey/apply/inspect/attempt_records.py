"""The attempts at a job of a sweep, read from the store."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.apply.world.world import World
from monkey.errors import NotFound
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.record.job_attempts import AttemptRecord, list_attempts
from monkey.protocol.status.store_snapshot import SweepView


def find_owner(view: SweepView, job: str) -> str:
    """Return the job whose log and files a job of the sweep has: its own, but where it adopts a result."""
    return view.state.revision.adopted.get(job, job) if view.state.revision else job


async def read_attempts(world: World, view: SweepView, job: str) -> list[AttemptRecord]:
    """Read the log of a job of the sweep; returns its attempts that began, the first one first. Raises StoreError."""
    log = EntryLog(world.keys.job_log(find_owner(view, job)))
    await log.refresh(world.at)
    return [each for each in list_attempts(log) if each.begun]


def find_attempt(found: Sequence[AttemptRecord], number: int, job: str) -> AttemptRecord:
    """Return the attempt of that number. Raises NotFound, naming those there are."""
    if not found:
        raise NotFound(
            f"job {job} has no attempt {number}: nobody has begun it yet", hint=f"`monkey info {job}` tells why"
        )
    if not 0 < number <= len(found):
        raise NotFound(
            f"job {job} has no attempt {number}, but {'only 1' if len(found) == 1 else f'1 to {len(found)}'}",
            hint=f"`monkey info {job}` tells how each ended",
        )
    return found[number - 1]
