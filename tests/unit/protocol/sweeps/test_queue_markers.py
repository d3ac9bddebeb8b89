"""A fleet's queue: what left work, and hints that nothing is left; each fleet has its own."""

from __future__ import annotations

import asyncio

from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.queue_markers import hint_idle, mark_queue, read_queue
from monkey.store.memory import MemoryStore

KEYS = Keys("p")


def test_markers_are_open_until_a_hint_says_that_nothing_is_left() -> None:
    async def markers() -> None:
        store = MemoryStore()
        for n in (1, 2, 11):
            await mark_queue(store, KEYS, ["local", "lab"], "digits", n)
        for _ in range(2):  # two agents find the same
            await hint_idle(store, KEYS, "local", "digits", 2)
        local, lab = await read_queue(store, KEYS, "local"), await read_queue(store, KEYS, "lab")
        assert (local.markers, local.hints) == ({"digits": {1, 2, 11}}, {"digits": {2}})
        assert local.find_open("digits") == {1, 11} and not local.find_open("other")
        assert lab.find_open("digits") == {1, 2, 11} and lab.sweeps == ["digits"]
        assert not (await read_queue(store, KEYS, "la")).markers
        for n in (1, 11):
            await hint_idle(store, KEYS, "local", "digits", n)
        assert not (await read_queue(store, KEYS, "local")).sweeps

    asyncio.run(markers())


def test_markers_that_an_earlier_version_ended_are_hinted() -> None:
    async def earlier() -> None:
        store = MemoryStore()
        await mark_queue(store, KEYS, ["local"], "digits", 1)
        await store.put(KEYS.marker("local", "digits", 1) + ".end", b"{}")
        queue = await read_queue(store, KEYS, "local")
        assert (queue.markers, queue.hints, queue.sweeps) == ({"digits": {1}}, {"digits": {1}}, [])

    asyncio.run(earlier())
