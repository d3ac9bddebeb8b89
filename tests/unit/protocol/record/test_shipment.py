"""Shipments: whatever becomes of segments and heartbeats, a reader has each byte once and in order."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkey.errors import CorruptObject, StoreUnavailable
from monkey.protocol.heartbeat import HeartbeatWriter, decode_beat
from monkey.protocol.layout import Keys
from monkey.protocol.record.shipment import SEAL_BYTES, Piece, Shipment, decode_segment, name_limited_log
from monkey.protocol.record.shipment_reading import GrowingFile, ShipmentReader, ShippedFile, ShippedFiles
from monkey.store.memory import MemoryStore
from tests.loops import Run
from tests.pieces import join_pieces
from tests.unit.apply.small_project import _Clock

KEYS, AGENT = Keys("shop"), "local/m/b"


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.binary(min_size=1, max_size=40)), max_size=30), st.integers())
def test_a_reader_has_each_byte_once_and_in_order(written: list[tuple[str, bytes]], seed: int) -> None:
    store, dice = MemoryStore(), random.Random(seed)
    heart = HeartbeatWriter(store, KEYS.beat(AGENT), _Clock())
    reader, files = ShipmentReader(store, KEYS, AGENT), {"a": GrowingFile(), "b": GrowingFile()}
    whole, got = {"a": b"", "b": b""}, {"a": b"", "b": b""}

    async def look() -> None:
        ship = decode_beat(AGENT, "", await store.get(KEYS.beat(AGENT))).ship
        for piece in await reader.read(ship):
            got[piece.job] += files[piece.job].take(piece)

    async def live() -> None:
        await heart.beat()
        for job, data in written:
            heart.shipment.add(Piece(job, 1, "log", len(whole[job]), data))
            whole[job] += data
            if dice.random() < 0.3:
                i, segment = heart.shipment.pending()
                await store.put(KEYS.shipped_segment(AGENT, i), segment)
                if dice.random() < 0.8:  # else its answer was lost: it is written again, with the same bytes
                    heart.shipment.seal()
            if dice.random() < 0.5:
                await heart.beat()
            if dice.random() < 0.5:
                await look()
        await heart.beat()
        await look()
        assert got == whole
        pieces = await ShipmentReader(store, KEYS, AGENT).read_all()
        assert {job: join_pieces(pieces, job, 1).get("log", b"") for job in whole} == whole

    asyncio.run(live())


def test_a_heartbeat_carries_no_more_than_a_segment_is_due_for() -> None:
    shipment = Shipment()
    for n in range(10):
        shipment.add(Piece("a", 1, f"metrics/{n}", 0, b"x" * SEAL_BYTES))
    riding = shipment.to_json()["pieces"]
    assert sum(len(piece[4]) for piece in riding) == SEAL_BYTES


def test_what_a_stranger_wrote_is_no_shipment(run: Run) -> None:
    for data in (
        *(b"", b"[]", b"{}", b'{"pieces":5}', b'{"pieces":[[1,2,3,4,5]]}'),
        *(b'{"pieces":[["a",-1,"n",0,"x"]]}', b'{"pieces":[["a",1,"n",-1,"x"]]}'),
    ):
        with pytest.raises(CorruptObject):
            decode_segment("key", data)
    store = MemoryStore()
    run(store.put(KEYS.shipped_segment(AGENT, 1), b"nothing"))
    for ship in ({"sealed": 1, "pieces": [5]}, {"sealed": 1, "pieces": [["a", 1, "n", 0, None]]}):
        assert run(ShipmentReader(store, KEYS, AGENT).read(ship)) == []


def test_a_store_that_goes_away_while_segments_are_read_costs_no_piece(run: Run) -> None:
    class Flaky(MemoryStore):
        gets = 0

        async def get(self, key: str) -> bytes:
            self.gets += 1
            if self.gets == 2:
                raise StoreUnavailable("away")
            return await super().get(key)

    store, shipment = Flaky(), Shipment()
    for n, text in enumerate((b"one ", b"two ", b"three")):
        shipment.add(Piece("a", 1, "log", 4 * n, text))
        i, data = shipment.pending()
        run(store.put(KEYS.shipped_segment(AGENT, i), data))
        shipment.seal()
    reader = ShipmentReader(store, KEYS, AGENT)
    with pytest.raises(StoreUnavailable):
        run(reader.read(shipment.to_json()))
    assert join_pieces(run(reader.read(shipment.to_json())), "a", 1) == {"log": b"one two three"}


def test_pieces_of_an_attempt_that_is_over_are_dropped_unless_they_are_being_sealed() -> None:
    shipment = Shipment()
    shipment.add(Piece("a", 1, "log", 0, b"sealing"))
    number, data = shipment.pending()
    for job, k in (("a", 1), ("b", 1), ("a", 1), ("a", 2)):
        shipment.add(Piece(job, k, "log", 7, b"more"))
    shipment.drop("a", 1)
    assert shipment.pending() == (number, data)
    assert [piece[:2] for piece in shipment.open] == [("a", 1), ("b", 1), ("a", 2)]
    assert shipment.size == len(b"sealing") + 2 * len(b"more")
    shipment.seal()
    assert shipment.size == 2 * len(b"more")


#: The name of pieces behind the first half of a log that may have a mebibyte.
LATER = name_limited_log(1 << 20)


def test_what_may_be_removed_of_a_log_shares_no_segment() -> None:
    shipment = Shipment()
    names = {"a": [LATER, "metrics/0", LATER], "b": ["log", "metrics/0"], "c": [LATER]}
    written = [Piece(job, 1, name, 7 * n, b"%07d" % n) for n in range(50) for job in names for name in names[job]]
    for piece in written:
        shipment.add(piece)
    segments = []
    while shipment.open:
        _, data = shipment.pending()
        segments.append(decode_segment("key", data))
        shipment.add(Piece("b", 1, "metrics/1", 9 * len(segments), b"meanwhile"))
        shipment.seal()
        if len(segments) > 5:
            break
    owners = [{piece.job if piece.name == LATER else "" for piece in pieces} for pieces in segments[:3]]
    assert sorted(map(sorted, owners)) == [[""], ["a"], ["c"]], "those that come meanwhile keep none waiting"
    both = [piece for pieces in segments for piece in pieces]
    assert join_pieces(both, "c", 1)[LATER] == b"".join(b"%07d" % n for n in range(50))


def test_what_was_removed_of_a_log_is_told_where_it_was(run: Run) -> None:
    class Removing(MemoryStore):
        """Removes the third segment when the first is read: all were listed by then."""

        async def get(self, key: str) -> bytes:
            if key == KEYS.shipped_segment(AGENT, 1):
                await self.delete(KEYS.shipped_segment(AGENT, 3))
            return await super().get(key)

    store, shipment = Removing(), Shipment()
    parts = [b"first half\n", b"2" * 2000, b"3" * 3000, b"4" * 4000, b"riding\n"]
    at = 0
    for n, part in enumerate(parts):
        shipment.add(Piece("a", 1, LATER if n else "log", at, part))
        at += len(part)
        if n < 4:
            i, data = shipment.pending()
            run(store.put(KEYS.shipped_segment(AGENT, i), data))
            shipment.seal()
    run(store.delete(KEYS.shipped_segment(AGENT, 2)))
    pieces = run(ShipmentReader(store, KEYS, AGENT).read(shipment.to_json()))
    whole = GrowingFile()
    words = "\n… 4.9 KiB (5,000 bytes) of this log were left out here (log_limit: 1 MiB) …\n".encode()
    kept = words + parts[3] + parts[4]
    assert b"".join(whole.take(piece) for piece in [*pieces, *pieces]) == parts[0] + kept
    # The page shows what follows, and knows its place.
    tail = ShippedFile()
    for piece in [*pieces, *pieces]:
        tail.append(piece)
    assert (bytes(tail.data), tail.start + len(tail.data), tail.at) == (kept, at, at)
    heart = HeartbeatWriter(store, KEYS.beat(AGENT), _Clock())
    heart.shipment = shipment
    run(heart.beat())
    files = run(ShippedFiles(store, KEYS).read(AGENT, "a", 1))
    assert list(files) == ["log"] and files["log"].data == tail.data


def test_a_piece_that_does_not_continue_a_file_without_a_limit_is_none_of_it() -> None:
    file = GrowingFile()
    for name in ("log", "metrics/0", "log/", "log/x", "log/1/2", "log/１"):
        assert file.take(Piece("a", 1, name, 5, b"later")) == b"" and file.at == 0


def test_thousands_of_segments_that_were_removed_are_not_asked_for(run: Run) -> None:
    class Counting(MemoryStore):
        gets = 0

        async def get(self, key: str) -> bytes:
            self.gets += 1
            return await super().get(key)

    store, shipment, sealed = Counting(), Shipment(), 40_000
    for i in (1, sealed - 1):
        shipment.add(Piece("a", 1, "log", 0, b"text"))
        _, data = shipment.pending()
        run(store.put(KEYS.shipped_segment(AGENT, i), data))
        shipment.seal()
    reader = ShipmentReader(store, KEYS, AGENT)
    assert len(run(reader.read({"sealed": sealed, "pieces": []}))) == 2
    assert store.gets < 200
    # Nor when the reader's machine slept for days.
    run(store.put(KEYS.shipped_segment(AGENT, 2 * sealed), data))
    assert len(run(reader.read({"sealed": 2 * sealed, "pieces": []}))) == 1
    assert store.gets < 400
