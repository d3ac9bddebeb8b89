"""An agent with a free slot examines the jobs of a silent agent first, as that agent's last heartbeat names them."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.protocol.entries import Claim
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import spell_number
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryStore
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.scheduling.test_idle_hints import KEYS, SETTINGS
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

OWNER = "f/other/b"


@pytest.mark.parametrize("job", JOBS)
def test_job_that_a_silent_agents_last_heartbeat_names_is_found_first_and_its_log_is_read(run: Run, job: str) -> None:
    async def find() -> tuple[str, int]:
        store, clock = MemoryStore(), SleptClock()
        await append_revision(store, KEYS, SIGNERS, replace(REVISION, sweep="a", settings=SETTINGS, adopted={}), 0)
        await mark_queue(store, KEYS, ["f"], "a", 1)
        await store.create(KEYS.job_log(job) + spell_number(1), Claim(OWNER, 1, 0, "a").encode())
        heart = HeartbeatWriter(store, KEYS.beat(OWNER), clock)
        heart.held.add((KEYS.job_log(job), 1))
        assert await heart.beat()
        identity, body = AgentIdentity("p", "f", "m", "0", [], 1.0), cast(Any, SimpleNamespace())
        agent = AgentDaemon(store, identity, SIGNERS, clock, body, cast(Any, None), random.Random(1))
        for _ in range(4):
            await agent.queue.look(set())
            clock.at += LEASE / 3 + 1
        await agent.queue.look(set())
        agent.picker.look += 1
        found = await agent.picker.find(agent.queue.by_sweep["a"])
        assert found is not None
        return found[0], found[1].head

    assert run(find()) == (job, 1)
