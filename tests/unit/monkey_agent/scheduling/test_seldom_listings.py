"""What an agent on a bucket asks for again and again: listings cost money, and the bell tells of news."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from monkey.errors import StoreUnavailable
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.protocol.wakeup import LISTEN_MAX, compute_listen_pause
from monkey.store.memory import MemoryStore
from monkey.store.store_port import ListedObject
from monkey_agent.scheduling.sweep_queue import SweepQueue
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.scheduling.test_idle_hints import KEYS, SETTINGS, make_agent
from tests.unit.protocol.sweeps.test_sweep_log import REVISION


class DearStore(MemoryStore):
    """A store in which a listing costs money; it counts them, and may refuse one."""

    poll = 10.0
    away = False

    def __init__(self) -> None:
        super().__init__()
        self.listed: Counter[str] = Counter()

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        """List and count."""
        if self.away and prefix == KEYS.watchers:
            raise StoreUnavailable
        self.listed[prefix] += 1
        return await super().list(prefix, after)


async def apply(store: MemoryStore, sweep: str) -> None:
    """Apply a sweep, without a word to anybody but the bell."""
    revision = replace(REVISION, sweep=sweep, settings=SETTINGS, adopted={})
    await append_revision(store, KEYS, SIGNERS, revision, 0)
    await mark_queue(store, KEYS, ["f"], sweep, 1)


async def look(queue: SweepQueue, times: int = 1) -> list[str]:
    """Look so often; return the sweeps with work."""
    for _ in range(times):
        await queue.look(set())
    return sorted(queue.by_sweep)


def test_an_agent_with_work_lists_the_queue_only_where_the_bell_told_of_news(run: Run) -> None:
    async def main() -> None:
        store = DearStore()
        agent: Any = make_agent(store)
        assert await look(agent.queue, 3) == [], "without work it lists at each look"
        assert store.listed[KEYS.queue("f")] == store.listed[KEYS.watchers] == 3
        await apply(store, "a")
        assert await look(agent.queue, 5) == ["a"]
        assert store.listed[KEYS.queue("f")] == store.listed[KEYS.watchers] == 4
        assert store.listed[KEYS.agents] == 8, "who lives is looked at each time"
        await apply(store, "b")
        assert await look(agent.queue) == ["a"]
        agent.queue.news, store.away = True, True
        try:
            await look(agent.queue)
        except StoreUnavailable:
            store.away = False
        assert await look(agent.queue) == ["a", "b"], "news is kept until all was listed"
        assert not agent.queue.news

    run(main())


def test_an_agent_looks_at_each_look_while_a_user_watches(run: Run) -> None:
    async def main() -> None:
        store = DearStore()
        agent: Any = make_agent(store)
        await apply(store, "a")
        await store.put(KEYS.watcher("ann"), b"1")
        await look(agent.queue, 3)
        assert agent.queue.watched and store.listed[KEYS.watchers] == 3

    run(main())


def test_large_fleets_listen_more_seldom() -> None:
    assert [compute_listen_pause(agents) for agents in (0, 1, 50, 100, 1000, 10_000)] == [1, 1, 1, 2, 10, 10]
    assert LISTEN_MAX == 10
