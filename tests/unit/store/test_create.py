"""The resolved create asks no more than it must, and waits longer each time."""

from __future__ import annotations

import pytest

from monkey.errors import CreateUnresolved, StoreUnavailable
from monkey.store.create import Lost, Won, create_object
from monkey.store.memory import MemoryStore
from tests.loops import Run


class CountedStore(MemoryStore):
    """Notes what it is asked; it writes nothing, and does not answer, while it is away."""

    away = False

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        self.asked.append("create")
        if self.away:
            raise StoreUnavailable("no answer")
        return await super().create(key, data, durable=durable)

    async def get(self, key: str) -> bytes:
        self.asked.append("get")
        return await super().get(key)


def test_answer_is_asked_for_once(run: Run) -> None:
    store = CountedStore()
    assert run(create_object(store, "k", b"mine")) == Won()
    assert store.asked == ["create"]
    assert run(create_object(store, "k", b"theirs")) == Lost(b"mine")
    assert store.asked == ["create", "create", "get"]


def test_store_that_does_not_answer_is_asked_three_times_at_growing_distance(run: Run) -> None:
    async def ask(data: bytes) -> list[float]:
        store, pauses = CountedStore(), list[float]()
        store.away = True

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            assert store.asked == ["create", "get"] * len(pauses)

        with pytest.raises(CreateUnresolved, match="'k'"):
            await create_object(store, "k", data, sleep=sleep)
        assert store.asked == ["create", "get"] * 3
        return pauses

    first, second = run(ask(b"one")), run(ask(b"two"))
    for pauses in (first, second):
        assert len(pauses) == 2 and pauses[1] == 2 * pauses[0]
        assert 0.05 <= pauses[0] <= 0.15
    assert first != second, "writers that meet would meet again"
    assert first == run(ask(b"one")), "a simulation replays"
