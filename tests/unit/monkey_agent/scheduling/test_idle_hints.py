"""Hints that nothing is left of a sweep: an agent checks them by the jobs, once, and a few at each look."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from monkey.protocol.clock import MachineClock
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.sweeps.queue_markers import hint_idle, mark_queue
from monkey.protocol.sweeps.sweep_log import append_order, append_revision
from monkey.spec.job.recipe import SweepSettings
from monkey.store.memory import MemoryState, MemoryStore
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from monkey_agent.scheduling.sweep_queue import CHECKED
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

KEYS = Keys("p")
SETTINGS = SweepSettings(max_retries=0, providers=["f"])


class CountingStore(MemoryStore):
    """A store in memory that counts what is read of sweeps' logs."""

    read = 0

    async def get(self, key: str) -> bytes:
        """Get and count."""
        self.read += key.startswith(KEYS.sweeps)
        return await super().get(key)


def make_agent(store: MemoryStore) -> AgentDaemon:
    identity = AgentIdentity("p", "f", "m", "0", [], 1.0)
    body: Any = SimpleNamespace()
    return AgentDaemon(store, identity, SIGNERS, MachineClock(), body, cast(Any, None), random.Random(1))


async def look(agent: AgentDaemon) -> list[str]:
    """Look as an agent does; return the jobs that it would run."""
    await agent.queue.look(set())
    agent.picker.look += 1
    found = []
    for candidates in list(agent.queue.by_sweep.values()):
        while chosen := await agent.picker.find(candidates):
            job, log = chosen
            await log.refresh(agent.store)  # as the claim that loses does
            if not agent.picker.settle(candidates, job, log):
                found.append(job)
    await agent.beats.seal()
    await agent.queue.tidy(set())
    return found


async def apply(store: MemoryStore, sweep: str, jobs: list[str]) -> None:
    """Apply a sweep of some of the jobs, and hint that nothing is left of it."""
    table = replace(REVISION.table, ids=jobs, columns={})
    await append_revision(
        store, KEYS, SIGNERS, replace(REVISION, sweep=sweep, table=table, settings=SETTINGS, adopted={}), 0
    )
    await mark_queue(store, KEYS, ["f"], sweep, 1)
    await hint_idle(store, KEYS, "f", sweep, 1)


async def end_job(store: MemoryStore, job: str) -> None:
    claim = Claim("f/x/0", 1, 1, "s")
    await store.put(KEYS.job_log(job) + spell_number(1), claim.encode())
    await store.put(KEYS.job_log(job) + spell_number(2), EndEntry(ClaimEnd.FAILED, claim.agent, 1).encode())


def test_a_job_that_is_left_runs_whatever_a_hint_says(run: Run) -> None:
    async def main() -> None:
        store = MemoryStore()
        await apply(store, "s", JOBS)
        await end_job(store, JOBS[0])
        assert await look(make_agent(store)) == [JOBS[1]]

    run(main())


def test_what_was_checked_is_not_read_again_until_there_is_a_new_marker(run: Run) -> None:
    async def main() -> None:
        store = CountingStore(MemoryState())
        await apply(store, "s", JOBS[:1])
        await end_job(store, JOBS[0])
        agent = make_agent(store)
        assert await look(agent) == [] and store.read
        store.read = 0
        assert await look(agent) == [] and not store.read and not agent.queue.busy
        n = await append_order(store, KEYS, SIGNERS, "s", "retry", jobs={JOBS[0]: 2})
        await mark_queue(store, KEYS, ["f"], "s", n)
        assert await look(agent) == JOBS[:1]

    run(main())


def test_a_thousand_hints_are_checked_a_few_at_a_time_and_the_agent_stays_for_all(run: Run) -> None:
    async def main() -> None:
        store = CountingStore(MemoryState())
        await end_job(store, JOBS[0])
        sweeps = 2 * CHECKED + 1
        for n in range(sweeps - 1):
            await apply(store, f"s{n:03}", JOBS[:1])
        await apply(store, "t", JOBS)
        store.read, agent = 0, make_agent(store)
        for _ in range(2):
            before = store.read
            assert await look(agent) == [] and agent.queue.busy
            assert store.read - before == 2 * CHECKED, "an entry, and the one that is not there"
        assert await look(agent) == [JOBS[1]]

    run(main())
