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
from monkey.protocol.record.shipment import SEAL_BYTES, Piece, Shipment, decode_segment
from monkey.protocol.record.shipment_reading import GrowingFile, ShipmentReader
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
