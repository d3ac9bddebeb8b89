"""Heartbeats of syncs, also those that somebody else wrote."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey.protocol.layout import Keys
from monkey.protocol.status.sync_beat import (
    SYNC_BEAT,
    SyncBeat,
    decode_sync_beat,
    drop_past_beats,
    forget_ended_syncs,
    hash_remote,
    read_sync_beats,
)
from monkey.store.memory import MemoryState, MemoryStore

KEYS = Keys("shop")
BEAT = SyncBeat("https://host/r.git", "main", "head1", 60.0, 1000.0, at=2000.0, seen="a" * 40, applied="b" * 40)


def test_a_beat_is_read_as_it_was_written() -> None:
    assert decode_sync_beat("k", BEAT.encode()) == BEAT
    assert len(replace(BEAT, problem="x" * 10_000).encode()) < 2_000
    previewing = replace(BEAT, previews="pull request 3")
    assert decode_sync_beat("k", previewing.encode()) == previewing
    assert b"previews" not in BEAT.encode(), "readers of before know no such field"


@pytest.mark.parametrize(
    "change",
    [
        *({"seen": "main"}, {"applied": "A" * 40}, {"applied": None}, {"outcome": "fine"}, {"outcome": None}),
        *({"at": -1}, {"at": 1e300}, {"interval": "1"}, {"left": 1}, {"host": 5}, {"remote": "\0"}, {"extra": 1}),
    ],
)
def test_what_is_no_beat_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CorruptObject):
        decode_sync_beat("k", json.dumps({**asdict(BEAT), **change}).encode())
    for data in (b"", b"[]", b"{}", b"[" * 100_000, b"\xff"):
        with pytest.raises(CorruptObject):
            decode_sync_beat("k", data)


def test_a_reader_reads_few_and_small_objects_and_names_what_it_cannot_read() -> None:
    store = MemoryStore(MemoryState(), "memory://x")
    remote = hash_remote(BEAT.remote, BEAT.branch)

    async def inside() -> tuple[list[SyncBeat], list[str]]:
        await store.put(KEYS.sync_beat(remote, "head1.ab"), BEAT.encode())
        await store.put(KEYS.sync_beat(remote, "head2"), b"garbage")
        store.state.write(KEYS.sync_beat(remote, "head3"), b" " * 100_000)
        await store.put(f"{KEYS.syncs}strange", b"x")
        await store.put(f"{KEYS.syncs}{remote}/\x1b/beat", b"x")
        return await read_sync_beats(store, KEYS)

    beats, problems = asyncio.run(inside())
    assert beats == [BEAT]
    assert len(problems) == 2 and "head2" in problems[0] and "100,000" in problems[1]

    async def many() -> tuple[list[SyncBeat], list[str]]:
        for i in range(60):
            await store.put(KEYS.sync_beat(remote, f"z{i}"), BEAT.encode())
        return await read_sync_beats(store, KEYS, remote)

    beats, problems = asyncio.run(many())
    assert len(beats) == 50 and "63 heartbeats of syncs, of which 50 are read" in problems[-1]


def test_a_sync_is_dead_after_three_periods_unless_it_said_that_it_ends() -> None:
    assert not BEAT.is_dead(BEAT.at + 3 * SYNC_BEAT)
    assert BEAT.is_dead(BEAT.at + 3 * SYNC_BEAT + 1)
    assert not replace(BEAT, interval=600.0).is_dead(BEAT.at + 1800)
    assert replace(BEAT, interval=600.0).is_dead(BEAT.at + 1801)
    assert not replace(BEAT, left=True).is_dead(BEAT.at + 10_000)
    once = replace(BEAT, interval=0.0)
    assert once.is_dead(BEAT.at + 181) and not replace(once, left=True).is_dead(BEAT.at + 181), "it says that it ended"


def test_the_dead_are_forgotten_once_another_took_over() -> None:
    now = BEAT.at + 1000
    later = replace(BEAT, host="head2", began=BEAT.at + 500, at=now)
    earlier = replace(BEAT, host="head2", began=BEAT.at - 500, at=now)
    other = replace(later, branch="other")
    assert drop_past_beats([BEAT], now) == [BEAT]
    assert drop_past_beats([BEAT, later], now) == [later]
    assert drop_past_beats([BEAT, earlier], now) == [BEAT, earlier], "of two syncs, one died"
    assert drop_past_beats([BEAT, other], now) == [BEAT, other]
    assert drop_past_beats([BEAT, replace(earlier, at=now + 90_000)], now + 90_000) == [
        replace(earlier, at=now + 90_000)
    ]
    assert drop_past_beats([replace(BEAT, left=True), later], now) == [later]


def test_one_that_ended_leaves_after_a_day_and_a_dead_one_stays() -> None:
    ended = replace(BEAT, left=True)
    assert drop_past_beats([ended, BEAT], BEAT.at + 86_400) == [ended, BEAT]
    assert drop_past_beats([ended, BEAT], BEAT.at + 86_401) == [BEAT]


def test_syncs_that_are_no_more_are_forgotten_and_one_that_lives_is_not() -> None:
    store, remote = MemoryStore(MemoryState(), "memory://x"), hash_remote(BEAT.remote, BEAT.branch)
    lives, dead, ended = replace(BEAT, at=9_000.0), BEAT, replace(BEAT, at=9_000.0, left=True)

    async def inside() -> tuple[list[SyncBeat], list[str]]:
        for name, data in (("a", lives.encode()), ("b", dead.encode()), ("c", ended.encode()), ("d", b"garbage")):
            await store.put(KEYS.sync_beat(remote, name), data)
        assert await forget_ended_syncs(store, KEYS, 9_010.0) == ([dead, ended], 1)
        assert await forget_ended_syncs(store, KEYS, 9_010.0) == ([], 0)
        return await read_sync_beats(store, KEYS)

    assert asyncio.run(inside()) == ([lives], [])
