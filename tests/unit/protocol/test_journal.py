"""Journals and heartbeats: columns that come back, segments that seal, late writes that are ignored."""

from __future__ import annotations

import asyncio
import json

import pytest

from monkey.errors import CorruptObject
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.heartbeat import HeartbeatWriter, decode_beat
from monkey.protocol.journal import Journal, JournalBlock, JournalRecord, make_record
from monkey.protocol.journal_index import JournalIndex
from monkey.protocol.layout import Keys
from monkey.store.memory import MemoryStore

KEYS = Keys("p")


def job(n: int) -> str:
    return f"{n:016x}"


def record(n: int, outcome: str = "s", k: int = 2) -> JournalRecord:
    return JournalRecord(job(n), k, outcome, "digits", 1.25, 1e9, {"metrics": {"acc": {"last": n}}} if n % 2 else {})


class StillClock:
    """A clock that stands still."""

    def now(self) -> float:
        return 100.0

    def wall(self) -> float:
        return 1e9

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here sleeps")


def test_a_block_comes_back_whole() -> None:
    block = JournalBlock()
    for n in range(50):
        block.add(record(n, "sfrl"[n % 4]))
    back = JournalBlock.decode("k", block.encode())
    assert [back.row(i) for i in range(len(back))] == [record(n, "sfrl"[n % 4]) for n in range(50)]


@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_segment_cut_short_is_reported(share: float) -> None:
    block = JournalBlock()
    block.add(record(1))
    data = block.encode()
    with pytest.raises(CorruptObject, match="agents/f/h/b/1"):
        JournalBlock.decode("agents/f/h/b/1", data[: int(len(data) * share)])


def test_what_is_pending_stays_the_same_until_it_is_sealed() -> None:
    journal = Journal()
    journal.record(record(1))
    number, block = journal.pending()
    before = block.encode()
    journal.record(record(2))
    assert journal.pending() == (number, block)
    assert block.encode() == before
    journal.seal()
    assert (journal.sealed, journal.open.jobs, journal.total) == (1, [job(2)], 2)


def test_what_was_pending_while_nothing_was_there_does_not_stand_in_the_way() -> None:
    journal = Journal()
    assert not journal.pending()[1]
    journal.record(record(1))
    assert journal.pending()[1].jobs == [job(1)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"vitals": 5},
        {"vitals": {"running": [5]}},
        {"vitals": {"running": [{"job": 5}]}},
        {"vitals": {"alert": 5}},
        {"vitals": {"idle": 5}},
        {"vitals": {"system": 5}},
        {"vitals": {"system": {"cpu": "much"}}},
        {"vitals": {"system": {"trouble": 5}}},
        {"at": "x"},
        {"held": [["b"]]},
        {"held": {"b": 1}},
        {"seq": "1"},
        {"journal": []},
        {"journal": {"jobs": "0" * 16, "ks": [1, 2]}},
        {"left": 1},
    ],
)
def test_a_beat_of_a_wrong_shape_is_corrupt(wrong: dict[str, object]) -> None:
    async def beat() -> bytes:
        store = MemoryStore()
        heart = HeartbeatWriter(store, "b", StillClock())
        heart.journal.record(record(1))
        await heart.beat()
        return await store.get("b")

    body = json.loads(asyncio.run(beat()))
    assert decode_beat("a", "b", json.dumps(body).encode()).block.row(0) == record(1)
    if isinstance(wrong.get("journal"), dict):
        wrong = {"journal": body["journal"] | wrong["journal"]}  # type: ignore[operator]  # it is a dict
    with pytest.raises(CorruptObject, match="not a heartbeat"):
        decode_beat("a", "b", json.dumps(body | wrong).encode())


def test_a_beat_nested_beyond_measure_is_corrupt() -> None:
    with pytest.raises(CorruptObject):
        decode_beat("a", "b", b"[" * 200_000)


def test_an_index_reads_beats_and_segments_once_and_ignores_late_beats() -> None:
    async def index() -> None:
        store = MemoryStore()
        heart = HeartbeatWriter(store, KEYS.beat("f/h/b"), StillClock())
        for n in range(3):
            heart.journal.record(record(n))
        assert await heart.beat()
        old = await store.get(KEYS.beat("f/h/b"))
        seen = JournalIndex(store, KEYS)
        await seen.refresh()
        number, block = heart.journal.pending()
        await store.put(KEYS.segment("f/h/b", number), block.encode())
        heart.journal.seal()
        heart.journal.record(record(3, "f"))
        await heart.beat()
        await seen.refresh()
        await store.put(KEYS.beat("f/h/b"), old)
        await seen.refresh()
        assert seen.beats["f/h/b"].seq == 2, "a late write of an older beat changes nothing"
        assert seen.succeeded == {job(0), job(1), job(2)}
        failed = seen.tally(job(3))
        assert failed is not None
        assert failed.failed_at == [2]
        assert seen.record(job(1)) == record(1)._replace(writer="f/h/b")

    asyncio.run(index())


def test_an_empty_heartbeat_is_reported_and_harms_nothing() -> None:
    async def empty() -> None:
        store = MemoryStore()
        await store.put(KEYS.beat("f/h/b"), b"")
        seen = JournalIndex(store, KEYS)
        await seen.refresh()
        assert list(seen.corrupt) == [KEYS.beat("f/h/b")]
        await HeartbeatWriter(store, KEYS.beat("f/h/b"), StillClock()).beat()
        await seen.refresh()
        assert not seen.corrupt
        assert "f/h/b" in seen.beats

    asyncio.run(empty())


def test_a_beat_cut_at_any_byte_is_corrupt() -> None:
    async def beat() -> bytes:
        store = MemoryStore()
        heart = HeartbeatWriter(store, "b", StillClock())
        heart.held.add(("projects/p/jobs/x/", 3))
        await heart.beat()
        return await store.get("b")

    data = asyncio.run(beat())
    assert decode_beat("a", "b", data).held == {("projects/p/jobs/x/", 3)}
    for length in range(len(data)):
        with pytest.raises(CorruptObject):
            decode_beat("a", "b", data[:length])


def test_a_record_says_what_its_end_says() -> None:
    end = EndEntry(ClaimEnd.FAILED, "f/h/b", 1, "digits", "exit code 3", 3, 2.0, 1e9, out=1, log_tail=["boom"])
    assert make_record(job(1), 2, end) == JournalRecord(
        job(1), 2, "f", "digits", 2.0, 1e9, {"exit_code": 3, "reason": "exit code 3", "log_tail": ["boom"]}
    )


def test_an_end_in_another_agents_journal_names_its_agent() -> None:
    end = EndEntry(ClaimEnd.FAILED, "f/gpu3/b", 1, out=1)
    assert make_record(job(1), 2, end, "f/gpu3/b").extra == make_record(job(1), 2, end).extra == {}
    assert make_record(job(1), 2, end, "f/other/b").extra == {"agent": "f/gpu3/b"}
