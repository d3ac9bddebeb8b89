"""Sweeps of which a machine can run no job: its heartbeats say of which revision that was found."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from monkey.protocol.clock import MachineClock
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.recipe import SweepSettings
from monkey.store.memory import MemoryStore
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

KEYS = Keys("p")


def test_heartbeats_name_the_revision_that_a_machine_could_not_run(run: Run) -> None:
    async def main() -> None:
        store = MemoryStore()
        revision = replace(REVISION, settings=SweepSettings(providers=["f"]), adopted={})
        name = revision.sweep
        identity, body = AgentIdentity("p", "f", "m", "0", frozenset(), 1.0), cast(Any, SimpleNamespace())
        body.fits, body.lacking, body.held_up = (lambda _: True), "", ""
        agent = AgentDaemon(store, identity, SIGNERS, MachineClock(), body, body, random.Random(1))
        agent.dispatcher.find_lack = lambda _: "no runtime"
        for number in (1, 2):
            await append_revision(store, KEYS, SIGNERS, revision, number - 1)
            await mark_queue(store, KEYS, ["f"], name, number)
            await agent.queue.look(set())
            told = {left: of.revision for left, of in agent.queue.left_to_others.items()}
            assert told == ({name: 1} if number == 2 else {}), "what was found of the revision before stays its own"
            await agent.dispatcher.fill(lambda: False)
            assert agent.queue.left_to_others == {name: ("no runtime", number)}
            assert agent.heart.vitals()["unfit_revisions"] == {name: number}

    run(main())
