"""Event files: every scalar once, however the file grows; nothing of what is no scalar, or damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey_agent.collecting.event_file import DamagedEvents, EventReader, compute_masked_crc
from tests.unit.monkey_agent.collecting.event_files import event, field, framed, simple, tensor

HEAD = framed(field(1, 1.0, "d") + field(3, b"brain.Event:2"))
float32 = st.floats(width=32, allow_nan=False)


def test_checksums_are_those_of_the_standard() -> None:
    # RFC 3720 has CRC-32C of 32 zeros as 8a9136aa; TFRecord rotates it and adds a constant.
    crc = 0x8A9136AA
    assert compute_masked_crc(bytes(32)) == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@given(
    st.lists(st.tuples(st.text(min_size=1), st.integers(-(1 << 63), (1 << 63) - 1), float32), max_size=20),
    st.lists(st.integers(0, 3000), max_size=8),
)
def test_all_scalars_come_in_order_in_any_pieces(logged: list[tuple[str, int, float]], cuts: list[int]) -> None:
    large = event(0, tensor("picture", field(1, 7) + field(8, b"x" * 70_000), "images"))
    data = HEAD + b"".join(event(step, simple(tag, value)) + large for tag, step, value in logged)
    reader, found, at = EventReader(), [], 0
    for end in [*sorted(cuts), len(data)]:
        found += reader.feed(data[at:end])
        at = max(at, end)
    assert [(one.tag, one.step, one.value) for one in found] == logged
    assert all(one.at == 100.5 for one in found) and not reader.damaged


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (field(1, 1) + field(4, struct.pack("<f", 0.5)), 0.5),
        (field(1, 2) + field(4, struct.pack("<d", 0.1)), 0.1),
        (field(1, 1) + field(5, struct.pack("<f", 2.5)), 2.5),
        (field(1, 1) + field(5, 2.5, "f"), 2.5),
        (field(1, 2) + field(6, struct.pack("<d", 0.3)), 0.3),
        (field(1, 3) + field(7, 7), 7.0),
        (field(1, 9) + field(10, -7), -7.0),
        (field(1, 9) + field(10, b"\x07"), 7.0),
        (field(1, 19) + field(13, 0x3C00), 1.0),
    ],
)
def test_a_tensor_with_one_number_is_a_scalar(body: bytes, value: float) -> None:
    assert [one.value for one in EventReader().feed(event(3, tensor("a", body)))] == [value]


@pytest.mark.parametrize(
    "body",
    [
        field(1, 1) + field(4, struct.pack("<2f", 1, 2)),
        field(1, 9) + field(10, b"\x07\x08"),
        field(1, 7) + field(8, b"text"),
        field(1, 1),
        b"",
    ],
)
def test_other_tensors_are_none(body: bytes) -> None:
    assert not list(EventReader().feed(event(3, tensor("a", body))))


def test_a_plugin_that_is_named_once_counts_for_the_tag() -> None:
    number = field(1, 1) + field(4, struct.pack("<f", 1.0))
    data = event(1, tensor("h", number, "hparams")) + event(2, tensor("h", number, "")) + event(3, tensor("s", number))
    assert [one.step for one in EventReader().feed(data + event(4, tensor("s", number, "")))] == [3, 4]


def test_damage_costs_the_record_or_ends_the_file() -> None:
    good, reader = event(1, simple("a", 1.0)), EventReader()
    spoilt = good[:20] + bytes([good[20] ^ 1]) + good[21:]
    assert [one.step for one in reader.feed(spoilt + event(2, simple("a", 2.0)))] == [2] and reader.damaged == 1
    assert not list(reader.feed(framed(b"\xff\xff\xff")))
    assert reader.damaged == 2
    with pytest.raises(DamagedEvents):
        list(reader.feed(b"\x01" * 20))


@given(st.binary(max_size=300))
def test_bytes_that_are_no_message_harm_nobody(data: bytes) -> None:
    assert all(isinstance(one.value, float) for one in EventReader().feed(framed(data) + event(1, data)))
