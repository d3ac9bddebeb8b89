"""Logs: appended in order, exactly where the caller meant."""

from __future__ import annotations

import asyncio

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog, find_newest_checkpoint, has_own_checkpoint, tally_log
from monkey.store.create import create_object
from monkey.store.memory import MemoryState, MemoryStore

BASE = "projects/p/jobs/0123456789abcdef/"


def claim(nonce: int, agent: str = "f/h/b", *, continues: bool = False, checkpoint: int = 0) -> Claim:
    return Claim(agent, nonce, 1, "s", continues, checkpoint)


def end(nonce: int, outcome: ClaimEnd, agent: str = "f/h/b") -> EndEntry:
    return EndEntry(outcome, agent, nonce, "s")


def test_of_two_who_append_at_once_one_wins_and_the_other_knows_who() -> None:
    async def race() -> None:
        state = MemoryState()
        mine, theirs = EntryLog(BASE), EntryLog(BASE)
        assert await mine.append(MemoryStore(state), create_object, 1, claim(1, "f/a/1"))
        assert not await theirs.append(MemoryStore(state), create_object, 1, claim(1, "f/b/1"))
        assert mine.tail == theirs.tail == claim(1, "f/a/1")

    asyncio.run(race())


def test_an_append_that_was_meant_for_another_place_writes_nothing() -> None:
    async def late() -> None:
        store, log = MemoryStore(), EntryLog(BASE)
        assert await log.append(store, create_object, 1, claim(1))
        assert not await log.append(store, create_object, 1, end(1, ClaimEnd.SUCCEEDED))
        assert not await log.append(store, create_object, 3, end(1, ClaimEnd.SUCCEEDED))
        assert len(await store.list(BASE)) == 1

    asyncio.run(late())


def test_two_tasks_that_read_on_at_once_learn_each_entry_once() -> None:
    async def both() -> None:
        state = MemoryState()
        store, writer, log = Slow(state), EntryLog(BASE), EntryLog(BASE)
        for k in range(1, 4):
            assert await writer.append(MemoryStore(state), create_object, k, claim(k))
        await asyncio.gather(log.refresh(store), log.refresh(store))
        assert log.entries == [claim(k) for k in range(1, 4)]

    asyncio.run(both())


class Slow(MemoryStore):
    """A store whose answers take a turn of the loop."""

    async def get(self, key: str) -> bytes:
        await asyncio.sleep(0)
        return await super().get(key)


def test_a_reader_that_jumps_knows_the_tail_and_its_number() -> None:
    async def jump() -> None:
        store, log = MemoryStore(), EntryLog(BASE)
        for k in range(1, 8):
            assert await log.append(store, create_object, k, claim(k))
        other = EntryLog(BASE)
        await other.jump(store)
        assert (other.head, other.tail) == (7, claim(7))
        assert await other.append(store, create_object, 8, end(7, ClaimEnd.RELEASED))
        await log.jump(store)
        assert (log.head, log.tail) == (8, end(7, ClaimEnd.RELEASED))

    asyncio.run(jump())


def test_a_tally_counts_failures_losses_and_the_success() -> None:
    log = EntryLog(BASE)
    log.entries = [
        claim(1),
        end(1, ClaimEnd.FAILED),
        claim(2, "f/a/1"),
        claim(3, "f/b/1"),  # took over: the claim at 3 was lost
        claim(4, "f/b/1", continues=True),
        end(4, ClaimEnd.RELEASED),
        claim(5),
        end(5, ClaimEnd.SUCCEEDED),
    ]
    counts = tally_log(log)
    assert (counts.failed_at, counts.lost_at, counts.succeeded) == ([2], [3], True)


def test_a_loss_after_a_checkpoint_of_its_own_counts_apart() -> None:
    log = EntryLog(BASE)
    log.entries = [
        claim(1),
        claim(2, checkpoint=1),  # the attempt at 1 had saved one
        claim(3, checkpoint=1),  # that at 2 had not
        claim(4, continues=True),
        claim(5, checkpoint=3),  # that at 3, which went on at 4, had
        claim(6, checkpoint=5),
        claim(7),
    ]
    counts = tally_log(log)
    assert (counts.saved_at, counts.lost_at) == ([1, 4, 5], [2, 6])
    assert has_own_checkpoint(log, 2) and not has_own_checkpoint(log, 3)


def test_the_newest_checkpoint_is_the_newest_list() -> None:
    async def find() -> None:
        store = MemoryStore()
        assert await find_newest_checkpoint(store, "c/") == 0
        for path in ("00000002/00000001", "00000010/00000001", "00000011/files/abc", "x/y"):
            await store.put(f"c/{path}", b"")
        assert await find_newest_checkpoint(store, "c/") == 10

    asyncio.run(find())
