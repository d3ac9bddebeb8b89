"""The tries at a job, as its log has them, numbered as `MONKEY_ATTEMPT` numbers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from monkey.apply.world.world import World
from monkey.errors import NotFound
from monkey.protocol.entries import Claim, JobEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.status.store_snapshot import SweepView


class AttemptRecord(NamedTuple):
    """One try at a job."""

    #: 1 for the first.
    number: int
    #: Position of its claim in the job's log: names the directory of what it left.
    k: int
    claim: Claim
    #: The entry that is over it: its end, the claim of another, or bytes that are no entry; None while there is none.
    after: JobEntry | None


def find_owner(view: SweepView, job: str) -> str:
    """Return the job whose log and files a job of the sweep has: its own, but where it adopts a result."""
    return view.state.revision.adopted.get(job, job) if view.state.revision else job


async def read_attempts(world: World, view: SweepView, job: str) -> list[AttemptRecord]:
    """Read the log of a job of the sweep; returns its attempts, the first one first. Raises StoreError."""
    log = EntryLog(world.keys.job_log(find_owner(view, job)))
    await log.refresh(world.at)
    return list_attempts(log)


def list_attempts(log: EntryLog) -> list[AttemptRecord]:
    """Return the attempts of a job whose log was read from its beginning."""
    found: list[AttemptRecord] = []
    for k, entry in enumerate(log.entries, 1):
        if isinstance(entry, Claim) and entry.continues:
            continue  # the same attempt continues
        if found and found[-1].after is None:
            found[-1] = found[-1]._replace(after=entry)
        if isinstance(entry, Claim):
            found.append(AttemptRecord(len(found) + 1, k, entry, None))
    return found


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
