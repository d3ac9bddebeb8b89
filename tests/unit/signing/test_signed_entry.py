"""A signed entry counts in its place alone, and its signature is checked before its JSON is read."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.protocol.sweeps.revision import decode_order
from monkey.protocol.sweeps.sweep_state import SweepState, fold_entry
from monkey.signing.errors import BadSignature, SignatureRefused, Unsigned
from monkey.signing.signed_entry import EntryPlace, check_signature, hash_entries, sign_entry
from tests.signing import BODY, PLACE, make_key

KEY = make_key()
SIGNED = sign_entry(KEY, PLACE, BODY)

names = st.text(max_size=8)
json_values = st.none() | st.integers() | names | st.lists(names, max_size=3) | st.just({"a": {"b": 1}})
places = st.builds(EntryPlace, names, names, names, st.integers(1, 10**9), st.sampled_from(["", "ab" * 32]))


def dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def with_signature(text: bytes) -> bytes:
    return BODY[:-1] + b',"signature":"' + text + b'"}'


@given(places, st.dictionaries(names.filter(lambda name: name != "signature"), json_values, min_size=1, max_size=5))
def test_an_entry_is_itself_with_one_more_field(place: EntryPlace, body: dict[str, Any]) -> None:
    signed = sign_entry(KEY, place, dump(body))
    assert check_signature(place, signed) == KEY.public
    read = json.loads(signed)
    assert list(read)[-1] == "signature" and dump({**read, "signature": None}) == dump({**body, "signature": None})
    assert sign_entry(KEY, place, dump(body)) == signed


@pytest.mark.parametrize(
    "moved",
    [
        {"store": "0123456789abcdee"},
        {"project": "digit"},
        {"sweep": "sweep2"},
        {"number": 8},
        {"before": "ac" * 32},
        {"before": ""},
        {"project": "sweep", "sweep": "digits"},
    ],
)
def test_an_entry_that_was_moved_is_refused(moved: dict[str, Any]) -> None:
    assert check_signature(PLACE, SIGNED) == KEY.public
    with pytest.raises(BadSignature, match="signed for another place"):
        check_signature(PLACE._replace(**moved), SIGNED)


@given(places, places)
def test_two_places_are_never_spelled_alike(one: EntryPlace, two: EntryPlace) -> None:
    assert (one == two) == (one.spell() == two.spell()) and b"\n" not in one.spell()


@given(st.data())
def test_no_changed_entry_is_taken(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(SIGNED) - 1))
    for changed in (
        SIGNED[:at] + bytes([SIGNED[at] ^ data.draw(st.integers(1, 255))]) + SIGNED[at + 1 :],
        SIGNED[:at],
        SIGNED[:at] + b" " + SIGNED[at:],
        SIGNED + data.draw(st.sampled_from([b"\n", b" ", b"}", b"\0"])),
    ):
        with pytest.raises(SignatureRefused):
            check_signature(PLACE, changed)


@given(st.binary(max_size=100))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for entry in (data, with_signature(data), with_signature(base64.b64encode(data))):
        with pytest.raises(SignatureRefused):
            check_signature(PLACE, entry)


def test_a_signature_that_is_not_the_last_field_is_none() -> None:
    moved = dump({"signature": json.loads(SIGNED)["signature"], **json.loads(BODY)})
    with pytest.raises(BadSignature, match="not its last field"):
        check_signature(PLACE, moved)
    twice = SIGNED[:-1] + SIGNED[len(BODY) - 1 :]
    with pytest.raises(BadSignature):
        check_signature(PLACE, twice)


def test_an_entry_without_one_is_unsigned() -> None:
    for entry in (BODY, b"", b"{}", dump({"reason": '"signature":"AAAA"}'})):
        with pytest.raises(Unsigned):
            check_signature(PLACE, entry)


def test_a_second_spelling_of_a_signature_is_refused() -> None:
    blob = base64.b64decode(json.loads(SIGNED)["signature"])
    text = base64.b64encode(blob).decode()
    assert text.endswith("="), "the last sign has spare bits"
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    at = len(text.rstrip("=")) - 1
    other = text[:at] + alphabet[alphabet.index(text[at]) + 1] + text[at + 1 :]
    assert base64.b64decode(other) == blob
    with pytest.raises(BadSignature, match="not written as monkey writes it"):
        check_signature(PLACE, with_signature(other.encode()))


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{ "a":1}', b'{"a":1}\n', SIGNED])
def test_what_is_no_bare_compact_object_is_not_signed(body: bytes) -> None:
    with pytest.raises(ValueError, match="compact JSON object"):
        sign_entry(KEY, PLACE, body)


def test_a_reader_that_knows_no_signatures_reads_a_signed_entry() -> None:
    """Older versions of monkey pass over the field: whoever signs does not lock them out."""
    assert decode_order("key", SIGNED)["kind"] == "pause"
    assert fold_entry(SweepState("sweep"), decode_order("key", SIGNED)).paused


def test_what_follows_covers_all_entries_before_and_their_signatures() -> None:
    before = hash_entries("", SIGNED)
    assert before != hash_entries("", BODY) and len(before) == 64
    assert hash_entries(before, BODY) != hash_entries(hash_entries("", BODY), BODY)
