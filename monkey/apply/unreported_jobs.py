"""Jobs that run although no heartbeat has said so yet: the user is asked before they are taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from monkey.apply.world.world import World
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.observed import ObservedProject
from monkey.protocol.entries import Claim
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.status.store_snapshot import StoreSnapshot

#: Jobs' logs that are read at the most: many more would make a plan slow, and few run at once.
LOOKS = 2_000


async def add_claimed_jobs(
    world: World, plan: Plan, observed: ObservedProject, snapshot: StoreSnapshot | None
) -> ObservedProject:
    """Return what was observed, with those of the jobs that the plan takes away running that a living agent claimed.

    What the plan takes from queued jobs alone is read from their logs, up to LOOKS of them. Raises StoreError.
    """
    alive = {agent.id for agent in snapshot.agents if agent.alive} if snapshot else set()
    if not alive:
        return observed
    sweeps, looks = dict(observed.sweeps), LOOKS
    for sweep in plan.accepted:
        going = list(_going(sweep))[:looks]
        looks -= len(going)
        claimed = {job for job in going if await _claimed(world, job, alive)}
        if claimed:
            seen = sweeps[sweep.name]
            sweeps[sweep.name] = replace(seen, running=seen.running | claimed)
    return replace(observed, sweeps=sweeps)


def _going(sweep: SweepPlan) -> Iterator[str]:
    """Yield the jobs that seem to be queued, and that the plan removes or replaces."""
    seen = sweep.observed
    if seen is None or seen.applied is None:
        return
    known = seen.succeeded, seen.failed, seen.running
    for rows in (sweep.jobs.removed, *(group.before for group in sweep.jobs.stale)):
        for row in rows:
            job = seen.applied.table.ids[row]
            if not any(job in some for some in known):
                yield job


async def _claimed(world: World, job: str, alive: set[str]) -> bool:
    log = EntryLog(world.keys.job_log(job))
    await log.refresh(world.at)
    return isinstance(log.tail, Claim) and log.tail.agent in alive
