"""The wire format of SSH."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.signing.keys.ssh_wire import MalformedWire, WireReader, pack_string


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 400))
def test_strings_come_back_and_a_cut_is_seen(parts: list[bytes], at: int) -> None:
    data = b"".join(map(pack_string, parts))
    reader = WireReader(data)
    assert [reader.take_string() for _ in parts] == parts
    reader.check_end()
    if at < len(data):
        cut = WireReader(data[:at])
        with pytest.raises(MalformedWire, match="cut short"):
            for _ in parts:
                cut.take_string()


def test_what_follows_the_end_is_seen() -> None:
    reader = WireReader(pack_string(b"a") + b"\0\0\0\x05b")
    assert reader.take_string() == b"a" and reader.take_number() == 5
    with pytest.raises(MalformedWire, match="follow"):
        reader.check_end()
    assert reader.take_rest() == b"b"
    reader.check_end()
