"""The making of an HFS+ disk, the file system of Macs before APFS: Debian has no program for it any more.

It tells neither upper from lower case nor Unicode forms apart, and keeps names in decomposed form. It has hard links,
rights and sockets. Apple's Technical Note TN1150 describes all that is written here.
"""

from __future__ import annotations

import struct
from pathlib import Path

#: Bytes of a block, and of a node of both trees.
BLOCK = 4096
#: Blocks of the disk: 64 MiB.
BLOCKS = 16_384
#: Blocks of the tree of extents, and of the catalog, which is all names. Neither grows in a test.
EXTENTS, CATALOG = 32, 2048
#: Identities of the root, and of what is above it; and the first that a file may have.
_ABOVE, _ROOT, _FIRST = 1, 2, 16
_NAME = "disk"
#: Kinds of nodes.
_HEADER, _LEAF = 1, -1


def write_disk(path: Path) -> None:
    """Write an empty disk to the file `path`, which is sparse."""
    parts = {"bitmap": 1, "extents": EXTENTS, "catalog": CATALOG}
    starts, at = {}, 1
    for name, blocks in parts.items():
        starts[name] = at
        at += blocks
    forks = b"".join(_make_fork(starts[name], parts[name]) for name in parts) + bytes(160)
    header = _make_volume_header(BLOCKS - at - 1) + forks
    with path.open("wb") as file:
        file.truncate(BLOCKS * BLOCK)
        for where in (1024, BLOCKS * BLOCK - 1024):
            file.seek(where)
            file.write(header)
        file.seek(starts["bitmap"] * BLOCK)
        file.write(_make_bitmap(at))
        file.seek(starts["extents"] * BLOCK)
        file.write(_make_tree(EXTENTS, depth=0, records=0, key=10, flags=2))
        file.seek(starts["catalog"] * BLOCK)
        file.write(_make_tree(CATALOG, depth=1, records=2, key=516, flags=6) + _make_root())


def _make_volume_header(free: int) -> bytes:
    signature = struct.pack(">2sHI4sI", b"H+", 4, 0x100, b"test", 0)
    times = struct.pack(">4I", 0, 0, 0, 0)
    counts = struct.pack(">8I", 0, 0, BLOCK, BLOCKS, free, 0, 65_536, 65_536)
    return signature + times + counts + struct.pack(">IIQ", _FIRST, 0, 1) + bytes(32)


def _make_fork(start: int, blocks: int) -> bytes:
    return struct.pack(">QII2I", blocks * BLOCK, blocks * BLOCK, blocks, start, blocks) + bytes(56)


def _make_bitmap(used: int) -> bytes:
    bits = bytearray(BLOCKS // 8)
    for block in (*range(used), BLOCKS - 1):
        bits[block // 8] |= 128 >> block % 8
    return bytes(bits)


def _make_tree(nodes: int, *, depth: int, records: int, key: int, flags: int) -> bytes:
    """Return the first node of a tree that has one node besides, or none."""
    used = 1 + depth
    numbers = struct.pack(">HIIIIHHII", depth, depth, records, depth, depth, BLOCK, key, nodes, nodes - used)
    header = numbers + struct.pack(">HIBBI", 0, nodes * BLOCK, 0, 0xCF, flags) + bytes(64)
    # One bit for each node.
    known = bytes([0xFF << 8 - used & 0xFF]).ljust(BLOCK - 14 - len(header) - 128 - 8, b"\0")
    return _make_node(_HEADER, 0, [header, bytes(128), known])


def _make_root() -> bytes:
    """Return the catalog's one leaf: the root directory, and the way from its identity to its name."""
    name = struct.pack(">H", len(_NAME)) + _NAME.encode("utf-16-be")
    rights = struct.pack(">IIBBHI", 0, 0, 0, 0, 0o40777, 0)
    folder = struct.pack(">HHII5I", 1, 0, 0, _ROOT, 0, 0, 0, 0, 0) + rights + bytes(40)
    thread = struct.pack(">HHI", 3, 0, _ABOVE) + name
    empty = struct.pack(">H", 0)
    return _make_node(_LEAF, 1, [_make_key(_ABOVE, name) + folder, _make_key(_ROOT, empty) + thread])


def _make_key(parent: int, name: bytes) -> bytes:
    return struct.pack(">HI", 4 + len(name), parent) + name


def _make_node(kind: int, height: int, records: list[bytes]) -> bytes:
    body = struct.pack(">IIbBHH", 0, 0, kind, height, len(records), 0)
    offsets = []
    for record in records:
        offsets.append(len(body))
        body += record
    offsets.append(len(body))
    ends = b"".join(struct.pack(">H", offset) for offset in reversed(offsets))
    return body.ljust(BLOCK - len(ends), b"\0") + ends
