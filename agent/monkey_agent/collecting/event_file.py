"""TensorBoard's event files: records of TFRecord, and in them the few fields of protocol buffers that scalars need.

A record: its length (8 bytes, little-endian), a checksum of that, the data, a checksum of these. The checksum is
CRC-32C, rotated, plus a constant. Reading them by hand takes 150 lines; TensorBoard and protobuf take 60 MB.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

#: Bytes of the data of a scalar at most: what is longer is a picture, a histogram or a graph, and is passed over.
_MOST = 64 * 1024
_HEAD, _TAIL = 12, 4
_MASK_DELTA = 0xA282EAD8
#: Kinds of tensors' elements, as struct has them; and the field that may have them in place of bytes.
_ELEMENTS = {1: ("f", 5), 2: ("d", 6), 3: ("i", 7), 9: ("q", 10), 19: ("e", 13)}
#: The plugin of scalars; tensors of others (text, hparams, pr_curves) are none.
_SCALARS = ("", "scalars")


class EventScalar(NamedTuple):
    """One scalar of an event."""

    tag: str
    step: int
    #: Seconds since the epoch.
    at: float
    value: float


class DamagedEvents(ValueError):
    """An event file with a length that is damaged: there is no telling where its next record begins."""


class EventReader:
    """The reader of one event file, fed as it grows."""

    def __init__(self) -> None:
        """Start at the file's beginning."""
        self._rest = b""
        self._skip = 0
        self._plugins: dict[str, str] = {}
        #: Number of records whose checksum is wrong.
        self.damaged = 0

    def feed(self, data: bytes) -> Iterator[EventScalar]:
        """Yield the scalars of the records that are whole by now. Raises DamagedEvents."""
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        data, at = self._rest + data[skipped:], 0
        try:
            while len(data) - at >= _HEAD:
                length, check = struct.unpack_from("<QI", data, at)
                if compute_masked_crc(data[at : at + 8]) != check:
                    raise DamagedEvents("the length of a record is damaged")
                end = at + _HEAD + length + _TAIL
                if length > _MOST:
                    self._skip, at = max(0, end - len(data)), min(end, len(data))
                    continue
                if end > len(data):
                    break
                body, at = data[at + _HEAD : end - _TAIL], end
                if compute_masked_crc(body) != struct.unpack_from("<I", data, end - _TAIL)[0]:
                    self.damaged += 1
                    continue
                yield from self._read(body)
        finally:
            self._rest = data[at:]

    def _read(self, body: bytes) -> list[EventScalar]:
        try:
            return list(self._scalars(body))
        except (ValueError, struct.error, IndexError, OverflowError):
            self.damaged += 1
            return []

    def _scalars(self, body: bytes) -> Iterator[EventScalar]:
        at, step, summaries = 0.0, 0, []
        for number, kind, value in _fields(body):
            if (number, kind) == (1, 1):
                (at,) = struct.unpack("<d", value)
            elif (number, kind) == (2, 0):
                step = value - (1 << 64) if value >> 63 else value
            elif (number, kind) == (5, 2):
                summaries.append(value)
        for summary in summaries:
            for number, kind, value in _fields(summary):
                if (number, kind) == (1, 2) and (found := self._value(value)):
                    yield EventScalar(found[0], step, at, found[1])

    def _value(self, body: bytes) -> tuple[str, float] | None:
        tag, plugin, scalar, tensor = "", "", None, None
        for number, kind, value in _fields(body):
            if (number, kind) == (1, 2):
                tag = value.decode()
            elif (number, kind) == (2, 5):
                (scalar,) = struct.unpack("<f", value)
            elif (number, kind) == (8, 2):
                tensor = value
            elif (number, kind) == (9, 2):
                plugin = _plugin(value)
        # Writers may name the plugin with the first value of a tag alone.
        plugin = self._plugins.setdefault(tag, plugin) if plugin or tensor is not None else plugin
        if scalar is None and tensor is not None and plugin in _SCALARS:
            scalar = _element(tensor)
        return (tag, scalar) if tag and scalar is not None else None


def _plugin(metadata: bytes) -> str:
    for number, kind, value in _fields(metadata):
        if (number, kind) == (1, 2):
            for inner, wire, name in _fields(value):
                if (inner, wire) == (1, 2):
                    return str(name.decode())
    return ""


def _element(tensor: bytes) -> float | None:
    """Return the only element of a tensor of numbers; None for any other."""
    fields = list(_fields(tensor))
    dtype = next((value for number, kind, value in fields if (number, kind) == (1, 0)), 0)
    if dtype not in _ELEMENTS:
        return None
    letter, listed = _ELEMENTS[dtype]
    for number, kind, value in fields:
        if (number, kind) == (4, 2) and len(value) == struct.calcsize(letter):
            return float(struct.unpack(f"<{letter}", value)[0])
        if number == listed:
            return _listed(letter, value)
    return None


def _listed(letter: str, value: Any) -> float | None:
    """Return an element from the field that lists them: alone, or packed with no other."""
    if isinstance(value, bytes) and letter in "fd":
        return float(struct.unpack(f"<{letter}", value)[0]) if len(value) == struct.calcsize(letter) else None
    if isinstance(value, bytes):
        value, end = _varint(value, 0), len(value)
        if value[1] != end:
            return None
        value = value[0]
    if letter == "e":
        return float(struct.unpack("<e", struct.pack("<H", value & 0xFFFF))[0])
    return float(value - (1 << 64) if value >> 63 else value)


def _fields(message: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field: a whole number of wire type 0, else bytes.

    Raises ValueError for what is no message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind not in (1, 2, 5):
            raise ValueError("no message")
        size, at = _varint(message, at) if kind == 2 else (8 if kind == 1 else 4, at)
        if at + size > len(message):
            raise ValueError("a field is cut short")
        yield number, kind, message[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a whole number of variable length, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
    raise ValueError("a number does not end")


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def compute_masked_crc(data: bytes) -> int:
    """Return the checksum that a record has of its length, or of its data."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
