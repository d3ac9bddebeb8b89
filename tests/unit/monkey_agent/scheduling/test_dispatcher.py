"""What the dispatcher tells of an attempt that it begins."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.store.create import create_object
from monkey.store.memory import MemoryStore
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.scheduling.test_idle_hints import KEYS, SETTINGS
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

JOB, OTHER = JOBS[1], "f/other/0"
EARLIER = ["f/m/1", "f/m/2"]
ENDED = EndEntry(ClaimEnd.RELEASED, OTHER, 1, "a")


async def start(store: MemoryStore) -> AgentDaemon:
    """Apply a sweep of one job, and start an agent that has looked."""
    await append_revision(store, KEYS, SIGNERS, replace(REVISION, sweep="a", settings=SETTINGS), 0)
    await mark_queue(store, KEYS, ["f"], "a", 1)
    slots = SimpleNamespace(take=lambda _: object(), give=lambda _: None, fits=lambda _: True)
    slots.lacking, slots.held_up, slots.held_by_others = "", "", False
    identity = AgentIdentity("p", "f", "m", "3", frozenset(EARLIER), 1.0)
    nobody = cast(Any, SimpleNamespace())
    agent = AgentDaemon(store, identity, SIGNERS, SleptClock(), nobody, cast(Any, slots), random.Random(1))
    assert await agent.heart.beat()
    await agent._look()
    return agent


@pytest.mark.parametrize(
    ("before", "since"),
    [
        ([], 1),
        ([Claim(EARLIER[0], 1, 0, "a")], 1),
        ([Claim(EARLIER[0], 1, 0, "a"), Claim(EARLIER[1], 1, 0, "a")], 1),
        ([Claim(OTHER, 1, 0, "a"), ENDED, Claim(EARLIER[1], 1, 0, "a")], 3),
        ([Claim(EARLIER[0], 1, 0, "a"), Claim(OTHER, 1, 0, "a"), ENDED], 4),
    ],
    ids=["the first", "an earlier life", "two of them", "another before", "another between"],
)
def test_attempt_says_since_when_the_job_is_this_machines(run: Run, before: list[Any], since: int) -> None:
    """An exit that an earlier life noted is this attempt's if nobody else had the job since."""

    async def live() -> None:
        store, log = MemoryStore(), EntryLog(KEYS.job_log(JOB))
        for entry in before:
            assert await log.append(store, create_object, log.head + 1, entry)
        agent = await start(store)
        await agent.dispatcher.fill(lambda: False)
        attempt = agent.attempts.in_hand[JOB].attempt
        assert (attempt.k, attempt.ours_since) == (len(before) + 1, since)
        await agent._abandon()

    run(live())
