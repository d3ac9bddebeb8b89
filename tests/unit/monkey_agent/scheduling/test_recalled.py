"""Work that comes while an agent leaves because there was none."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

from monkey.protocol.clock import MachineClock
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.queue_markers import hint_idle, mark_queue
from monkey.store.memory import MemoryStore
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS

KEYS = Keys("shop")


def test_what_was_brought_since_the_last_look_is_told_from_what_was_there(run: Run) -> None:
    store, nobody = MemoryStore(), cast(Any, None)
    identity = AgentIdentity("shop", "cloud", "i-1", "a", [], 1.0)
    agent = AgentDaemon(
        store, identity, SIGNERS, MachineClock(), cast(Any, SimpleNamespace()), nobody, random.Random(1)
    )

    async def main() -> None:
        await mark_queue(store, KEYS, ["cloud"], "unfit", 1)  # and left for it
        await agent.queue.look(set())
        assert not await agent.queue.brought()
        await hint_idle(store, KEYS, "cloud", "unfit", 1)
        await mark_queue(store, KEYS, ["other"], "theirs", 1)
        assert not await agent.queue.brought()
        await mark_queue(store, KEYS, ["cloud"], "unfit", 2)
        assert await agent.queue.brought()
        await agent.queue.look(set())
        assert not await agent.queue.brought()

    run(main())
