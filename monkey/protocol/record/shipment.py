"""Shipments: what an agent's running jobs wrote, of all jobs together, before their attempts end.

A shipment consists of pieces of files. Sealed segments hold the older pieces; the newest ride in the heartbeat, as the
unsealed rest of the journal does. So a killed agent leaves the logs and the metrics of its jobs.

A log with a limit has segments of its own behind its first half. They hold nothing else, metrics above all: the agent
removes the oldest of them while the job runs.
"""

from __future__ import annotations

import json
import re
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
#: The name that a log with a limit has behind its first half: with that limit, in bytes.
_LIMITED = re.compile(r"log/([0-9]{1,18})")


class Piece(NamedTuple):
    """Bytes of a file that an attempt writes: those from `at` on."""

    job: str
    #: Position of the claim under which the attempt began.
    k: int
    name: str
    at: int
    data: bytes

    @property
    def limit(self) -> int:
        """The limit in bytes of the log that it is of, behind the first half of that; 0 for all other pieces."""
        found = _LIMITED.fullmatch(self.name)
        return int(found[1]) if found else 0

    @property
    def file(self) -> str:
        """The file that it is of: `LOG` wherever it is in a log."""
        return LOG if self.limit else self.name

    @property
    def alone(self) -> tuple[str, int] | None:
        """The attempt whose pieces alone are in its segment; None where it shares one."""
        return (self.job, self.k) if self.limit else None


def name_limited_log(limit: int) -> str:
    """Return the name of pieces behind the first half of a log that may have `limit` bytes."""
    return f"{LOG}/{limit}"


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
        if self.open and not self._pending:
            first = self.open[0].alone
            self.open.sort(key=lambda piece: piece.alone != first)
            self._pending = sum(piece.alone == first for piece in self.open)
        encode = encode_packed_pieces if packed else encode_pieces
        return self.sealed + 1, encode(self.open[: self._pending])

    def seal(self) -> list[Piece]:
        """Drop the pending pieces, and return them: they are in a segment now."""
        sealed = self.open[: self._pending]
        self._size -= sum(len(piece.data) for piece in sealed)
        del self.open[: self._pending]
        self._pending, self.sealed = 0, self.sealed + 1
        return sealed

    def put_shared_first(self) -> None:
        """Have the next segment hold what shares one, all metrics among it; one that is pending comes before."""
        self.open[self._pending :] = sorted(self.open[self._pending :], key=lambda piece: piece.alone is not None)

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
