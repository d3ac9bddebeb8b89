"""What pieces of shipments make together, as a test sees it that reads all of them."""

from __future__ import annotations

from collections.abc import Collection

from monkey.protocol.record.shipment import Piece
from monkey.protocol.record.shipment_reading import GrowingFile


def join_pieces(pieces: Collection[Piece], job: str, k: int) -> dict[str, bytes]:
    """Return the files of one attempt, name to bytes, as far as the pieces reach."""
    files: dict[str, GrowingFile] = {}
    parts: dict[str, list[bytes]] = {}
    for piece in pieces:
        if (piece.job, piece.k) == (job, k):
            parts.setdefault(piece.name, []).append(files.setdefault(piece.name, GrowingFile()).take(piece))
    return {name: b"".join(data) for name, data in parts.items()}
