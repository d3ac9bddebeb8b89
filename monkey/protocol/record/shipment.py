"""Shipments: what an agent's running jobs wrote, of all jobs together, before their attempts end.

A shipment consists of pieces of files. Sealed segments hold the older pieces; the newest ride in the heartbeat, as the
unsealed rest of the journal does. So a killed agent leaves the logs and the metrics of its jobs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from monkey.errors import CorruptObject
from monkey.protocol import entry_shape
from monkey.protocol.record.packed_segments import MAGIC, pack_gzip, unpack_gzip
from monkey.store.object_limits import find_limit

#: Bytes of pieces after which a segment is sealed, so that heartbeats stay small.
SEAL_BYTES = 32 * 1024
#: Bytes of pieces in one segment, at most.
MAX_SEGMENT = 4 * 1024 * 1024
#: gzip's level for packed segments: they are removed when their attempts are over.
_LEVEL = 1
#: The name of a job's log in a shipment; a file of metrics has the name `METRICS` + its own.
LOG, METRICS = "log", "metrics/"


class Piece(NamedTuple):
    """Bytes of a file that an attempt writes: those from `at` on."""

    job: str
    #: Position of the claim under which the attempt began.
    k: int
    name: str
    at: int
    data: bytes


class Shipment:
    """The shipment of one agent: how many segments it sealed, and the pieces that are in none yet."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.sealed = 0
        self.open: list[Piece] = []
        self._size = 0
        self._pending = 0

    def add(self, piece: Piece) -> None:
        """Append a piece; it joins the last one if it continues that."""
        last = self.open[-1] if len(self.open) > self._pending else None
        if last and last[:3] == piece[:3] and last.at + len(last.data) == piece.at:
            self.open[-1] = last._replace(data=last.data + piece.data)
        else:
            self.open.append(piece)
        self._size += len(piece.data)

    @property
    def size(self) -> int:
        """Bytes of the unsealed pieces."""
        return self._size

    @property
    def full(self) -> bool:
        """Is a segment due?"""
        return self._size >= SEAL_BYTES

    def pending(self, *, packed: bool = False) -> tuple[int, bytes]:
        """Return the number and the bytes of the segment to be written; the same until `seal` is called."""
        self._pending = self._pending or len(self.open)
        encode = encode_packed_pieces if packed else encode_pieces
        return self.sealed + 1, encode(self.open[: self._pending])

    def seal(self) -> None:
        """Drop the pending pieces: they are in a segment now."""
        self._size -= sum(len(piece.data) for piece in self.open[: self._pending])
        del self.open[: self._pending]
        self._pending, self.sealed = 0, self.sealed + 1

    def drop(self, job: str, k: int) -> None:
        """Drop the unsealed pieces of an attempt that is over; those of the pending segment stay."""
        for i in range(len(self.open) - 1, self._pending - 1, -1):
            if self.open[i][:2] == (job, k):
                self._size -= len(self.open.pop(i).data)

    def to_json(self) -> dict[str, Any]:
        """Return what rides in the heartbeat: the oldest `SEAL_BYTES`, should the store not take segments."""
        left, riding = SEAL_BYTES, list[Piece]()
        for piece in self.open:
            if left <= 0:
                break
            riding.append(piece._replace(data=piece.data[:left]))
            left -= len(piece.data)
        return {"sealed": self.sealed, "pieces": pack_pieces(riding)}


def pack_pieces(pieces: Iterable[Piece]) -> list[list[Any]]:
    """Return pieces as JSON; any bytes survive it."""
    return [[*piece[:4], piece.data.decode("utf-8", "surrogateescape")] for piece in pieces]


def encode_pieces(pieces: Iterable[Piece]) -> bytes:
    """Return the bytes of a segment."""
    return json.dumps({"pieces": pack_pieces(pieces)}, separators=(",", ":")).encode()


def encode_packed_pieces(pieces: Collection[Piece]) -> bytes:
    """Return the bytes of a packed segment: a line of JSON with the pieces' lengths, then all their bytes."""
    head = json.dumps({"pieces": [[*piece[:4], len(piece.data)] for piece in pieces]}, separators=(",", ":"))
    return pack_gzip(b"\n".join([head.encode(), b"".join(piece.data for piece in pieces)]), _LEVEL)


def unpack_pieces(packed: Any) -> list[Piece]:
    """Read what `pack_pieces` returned. Raises ValueError, TypeError for anything else."""
    return [_make_piece(text.encode("utf-8", "surrogateescape"), *place) for *place, text in packed]


def _make_piece(data: bytes, job: Any, k: Any, name: Any, at: Any) -> Piece:
    if not (entry_shape.is_text(job) and entry_shape.is_text(name) and entry_shape.is_count(k)):
        raise entry_shape.MalformedEntry("a piece is of no attempt")
    if not entry_shape.is_count(at):
        raise entry_shape.MalformedEntry("a piece begins nowhere")
    return Piece(job, k, name, at, data)


def _split_pieces(data: bytes) -> list[Piece]:
    """Read what `encode_packed_pieces` packed. Raises ValueError, KeyError, TypeError for anything else."""
    head, _, data = data.partition(b"\n")
    pieces, begin = list[Piece](), 0
    for *place, size in entry_shape.parse_object(head)["pieces"]:
        if not entry_shape.is_count(size) or begin + size > len(data):
            raise entry_shape.MalformedEntry("a piece has other bytes than it says")
        pieces.append(_make_piece(data[begin : begin + size], *place))
        begin += size
    return pieces


def decode_segment(key: str, data: bytes) -> list[Piece]:
    """Read a segment; raises CorruptObject."""
    try:
        if data.startswith(MAGIC):
            return _split_pieces(unpack_gzip(key, data, find_limit(key)))
        return unpack_pieces(entry_shape.parse_object(data)["pieces"])
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise CorruptObject(key, f"not a segment of a shipment ({exc!r})") from exc


def is_shipment(value: Any) -> bool:
    """Is it what a heartbeat has of a shipment? Its pieces are checked by the reader that wants them."""
    return (
        isinstance(value, dict)
        and entry_shape.is_count(value.get("sealed"))
        and isinstance(value.get("pieces"), list)
        and len(value) == 2
    )
