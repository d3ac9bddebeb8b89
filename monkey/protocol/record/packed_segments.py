"""Segments that are packed by gzip: those of shipments, and those of a log that is a file of its own.

Only stores of layout `PACKED_SEGMENTS` have them. In older ones a segment of a log is what a job printed, even where
that begins as gzip does.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from typing import NamedTuple

from monkey.errors import CorruptObject
from monkey.store.format import PACKED_SEGMENTS
from monkey.store.store_port import Store

#: Bytes of a segment of a log at most, before it is packed: what agents and readers hold of it in memory.
MAX_LOG_SEGMENT = 4 * 1024 * 1024
#: What packed bytes begin with.
MAGIC = b"\x1f\x8b"
#: What those of a log begin with: gzip's field for a file's name has the place of the first byte.
_LOG_HEADER = re.compile(rb"\x1f\x8b\x08\x08.{6}(\d{1,15})\0", re.DOTALL)
#: gzip's level for logs: a progress bar takes 40 % less room than at level 1, which shipments have.
_LOG_LEVEL = 6


def pack_gzip(data: bytes, level: int, name: str = "") -> bytes:
    """Return the bytes of a gzip file; `name`: what it says that it is called."""
    with io.BytesIO() as into:
        with gzip.GzipFile(name, "wb", level, into, mtime=0) as file:
            file.write(data)
        return into.getvalue()


def unpack_gzip(key: str, data: bytes, most: int) -> bytes:
    """Return what `pack_gzip` packed, if it has at most `most` bytes. Raises CorruptObject."""
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(data, most + 1)
    except zlib.error as exc:
        raise CorruptObject(key, f"it is broken: expected one gzip file ({exc})") from exc
    if len(unpacked) > most:
        raise CorruptObject(key, f"it is too large to be read: expected at most {most:,} bytes in it, found more")
    if not unpacking.eof or unpacking.unused_data:
        raise CorruptObject(key, "it is cut short, or more follows: expected one gzip file")
    return unpacked


class LogSegment(NamedTuple):
    """A segment of a log."""

    data: bytes
    #: Place of its first byte in the log; None where it does not tell.
    at: int | None = None


def pack_log_segment(store: Store, at: int, data: bytes) -> bytes:
    """Return what to store for the bytes of a log from `at` on."""
    return pack_gzip(data, _LOG_LEVEL, str(at)) if store.layout >= PACKED_SEGMENTS else data


def unpack_log_segment(store: Store, key: str, stored: bytes) -> LogSegment:
    """Return what is stored under `key`. Raises CorruptObject."""
    if store.layout < PACKED_SEGMENTS or not stored.startswith(MAGIC):
        return LogSegment(stored)
    header = _LOG_HEADER.match(stored)
    return LogSegment(unpack_gzip(key, stored, MAX_LOG_SEGMENT), int(header[1]) if header else None)


async def read_log_segment(store: Store, key: str) -> LogSegment:
    """Return a segment; for one that cannot be read, words in its place. Raises KeyMissing, StoreError."""
    try:
        return unpack_log_segment(store, key, await store.get(key))
    except CorruptObject as exc:
        return LogSegment(f"\n[{exc}]\n".encode())
