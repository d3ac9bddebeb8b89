"""Packed segments: what comes back, and what a stranger may have put in their place."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkey.errors import CorruptObject
from monkey.protocol.record.packed_segments import (
    MAX_LOG_SEGMENT,
    LogSegment,
    pack_gzip,
    pack_log_segment,
    read_log_segment,
    unpack_gzip,
    unpack_log_segment,
)
from monkey.protocol.record.shipment import Piece, decode_segment, encode_packed_pieces
from monkey.store.format import PACKED_SEGMENTS
from monkey.store.memory import MemoryStore
from tests.loops import Run


def make_store(layout: int = PACKED_SEGMENTS) -> MemoryStore:
    """Return a store of such a layout."""
    store = MemoryStore()
    store.layout = layout
    return store


@given(st.binary(max_size=300), st.integers(0, 10**14))
def test_a_segment_of_a_log_comes_back_with_its_place(data: bytes, at: int) -> None:
    store = make_store()
    stored = pack_log_segment(store, at, data)
    assert unpack_log_segment(store, "k", stored) == LogSegment(data, at)
    assert gzip.decompress(stored) == data, "any gunzip reads it"
    assert len(stored) <= len(data) + 40


def test_in_an_older_store_a_log_is_what_was_printed() -> None:
    old, printed = make_store(PACKED_SEGMENTS - 1), pack_gzip(b"a job may print this", 6, "7")
    assert pack_log_segment(old, 7, printed) == printed
    assert unpack_log_segment(old, "k", printed) == LogSegment(printed)
    assert unpack_log_segment(make_store(), "k", b"as it is") == LogSegment(b"as it is")
    assert unpack_log_segment(make_store(), "k", gzip.compress(b"no place")) == LogSegment(b"no place")


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (pack_gzip(bytes(MAX_LOG_SEGMENT + 1), 1), f"at most {MAX_LOG_SEGMENT:,} bytes in it"),
        (pack_gzip(b"some text", 1)[:-1], "cut short"),
        (pack_gzip(b"some text", 1)[:12], "cut short"),
        (pack_gzip(b"some text", 1) + b"x", "more follows"),
        (pack_gzip(b"some text", 1)[:-8] + bytes(8), "broken"),
        (b"\x1f\x8bno gzip at all", "broken"),
    ],
)
def test_a_hostile_segment_is_told(stored: bytes, why: str, run: Run) -> None:
    store = make_store()
    run(store.put("k", stored))
    told = run(read_log_segment(store, "k"))
    assert told.at is None and told.data.startswith(b"\n[k: it is ") and why in told.data.decode()


def test_a_bomb_is_unpacked_no_further_than_its_limit() -> None:
    bomb = pack_gzip(bytes(16 << 20), 1)
    assert unpack_gzip("k", bomb, 16 << 20) == bytes(16 << 20)
    tracemalloc.start()
    with pytest.raises(CorruptObject, match="expected at most 1,000 bytes"):
        unpack_gzip("k", bomb, 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


PIECES = st.lists(
    st.builds(Piece, st.text(max_size=5), st.integers(1, 9), st.just("metrics/\udcff"), st.integers(0, 9), st.binary())
)


@settings(max_examples=50)
@given(PIECES)
def test_packed_pieces_come_back(pieces: list[Piece]) -> None:
    assert decode_segment("k", encode_packed_pieces(pieces)) == pieces


@pytest.mark.parametrize(
    "inside",
    [
        *(b"", b"{}", b"[]\n", b'{"pieces":5}\n', b'{"pieces":[["a",1,"n",0]]}\nxx', b'{"pieces":[[]]}\n'),
        *(b'{"pieces":[["a",1,"n",0,3]]}\nxx', b'{"pieces":[["a",1,"n",0,-1]]}\nxx', b'{"pieces":[["a",1,5,0,1]]}\nx'),
        *(b'{"pieces":[["a",1,"n",-1,1]]}\nx', b'{"pieces":[["a",1,"n",0,"x"]]}\nx', b"[" * 100_000 + b"\n"),
    ],
)
def test_what_a_stranger_packed_is_no_shipment(inside: bytes) -> None:
    with pytest.raises(CorruptObject):
        decode_segment("key", pack_gzip(inside, 1))


def test_a_bomb_is_no_shipment() -> None:
    packing = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packing.compress(bytes(1 << 20)) for _ in range(40)) + packing.flush()
    with pytest.raises(CorruptObject, match="too large"):
        decode_segment("projects/p/shipments/f/a/b/00000001", bomb)
