"""Facts: the same bytes for the same facts, and anything else in their place is refused in a sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey.protocol.record import facts

FACTS = {"python": "3.11.7", "lock": ["numpy==2.4.0"], "cpus": 2, "gpus": [], "variables": {"OMP_NUM_THREADS": "1"}}


def test_what_is_written_is_read_and_its_order_makes_no_difference() -> None:
    data = facts.encode_facts(FACTS)
    assert facts.decode_facts("k", data) == FACTS
    assert facts.encode_facts(dict(reversed(FACTS.items()))) == data
    assert facts.is_facts_hash(facts.hash_facts(data))


def test_a_field_of_a_newer_monkey_is_left_out() -> None:
    assert facts.decode_facts("k", json.dumps({"python": "3.11.7", "microcode": {"a": 1}}).encode()) == {
        "python": "3.11.7"
    }


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {"python": 3},
        {"lock": "numpy"},
        {"lock": [1]},
        {"cpus": -1},
        {"cpus": 1e400},
        {"variables": {"A": 1}},
    ],
)
def test_what_is_of_another_shape_is_refused(body: Any) -> None:
    with pytest.raises(CorruptObject, match="key: expected facts as JSON"):
        facts.decode_facts("key", json.dumps(body).encode())


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * 20_000, b'{"python": "3.11'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptObject, match="expected facts as JSON"):
        facts.decode_facts("key", data)


def test_what_is_too_large_is_not_parsed() -> None:
    with pytest.raises(CorruptObject, match="at most 65,536 bytes"):
        facts.decode_facts("key", b" " * facts.MAX_FACTS_BYTES + b"{}")


@pytest.mark.parametrize("text", ["", "a" * 63, "A" * 64, "../" + "a" * 61, "a" * 64 + "\n"])
def test_what_could_lead_elsewhere_is_no_hash(text: str) -> None:
    assert not facts.is_facts_hash(text)


def test_a_lock_is_sorted_and_a_very_long_one_ends_with_the_hash_of_the_rest() -> None:
    assert facts.bound_lock(["b==1", "a==1", "b==1"]) == ["a==1", "b==1"]
    lines = [f"package-{i:05}==1.0" for i in range(10_000)]
    kept = facts.bound_lock(lines)
    assert len(facts.encode_facts({"lock": kept})) < facts.MAX_FACTS_BYTES
    assert kept[-1].startswith(f"and {10_000 - len(kept) + 1:} more, sha256 ")
    assert facts.bound_lock([*lines, "z==2"])[-1] != kept[-1]
