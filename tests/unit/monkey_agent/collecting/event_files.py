"""Event files of TensorBoard, written by hand for tests: byte by byte as its writers do."""

from __future__ import annotations

import struct

from monkey_agent.collecting.event_file import compute_masked_crc


def varint(value: int) -> bytes:
    out = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number: int, value: bytes | int | float, kind: str = "") -> bytes:
    if kind == "f":
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if kind == "d":
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    check, other = struct.pack("<I", compute_masked_crc(length)), struct.pack("<I", compute_masked_crc(data))
    return length + check + data + other


def event(step: int, *values: bytes, at: float = 100.5) -> bytes:
    summary = b"".join(field(1, value) for value in values)
    return framed(field(1, at, "d") + field(2, step) + field(5, summary))


def simple(tag: str, value: float) -> bytes:
    return field(1, tag.encode()) + field(2, value, "f")


def tensor(tag: str, body: bytes, plugin: str = "scalars") -> bytes:
    metadata = field(9, field(1, field(1, plugin.encode()))) if plugin else b""
    return field(1, tag.encode()) + metadata + field(8, body)
