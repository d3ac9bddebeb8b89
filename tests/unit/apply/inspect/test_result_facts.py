"""Facts as `monkey info` reads them: verified, and never a reason to crash, whatever lies in the store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monkey.apply.inspect.result_facts import ResultFacts, load_facts
from monkey.cli.render.evidence.fact_lines import format_facts, serialize_facts
from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.layout import Keys
from monkey.protocol.record.facts import MAX_FACTS_BYTES, encode_facts, hash_facts
from monkey.store.memory import MemoryStore
from tests.loops import Run

KEYS = Keys("project")
FACTS: dict[str, Any] = {
    "python": "3.11.7",
    "python_build": "CPython: main, GCC 12.2.0",
    "lock": ["numpy==2.4.0", "torch==2.9.0"],
    "blas": "scipy-openblas 0.3.30 (numpy 2.4.0)",
    "os": "Debian GNU/Linux 12",
    "kernel": "Linux 6.1.0",
    "machine": "x86_64",
    "libc": "glibc 2.36",
    "cpu": "AMD EPYC 7B13",
    "cpu_flags": "6a93d771884cba54",
    "cpus": 8,
    "variables": {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "2"},
    "gpus": ["NVIDIA H200"],
    "driver": "550.54.15",
}


def test_facts_are_a_few_lines() -> None:
    assert format_facts(ResultFacts("ab" * 32, FACTS)) == [
        "Python 3.11.7 (CPython: main, GCC 12.2.0), lock of 2 packages, scipy-openblas 0.3.30 (numpy 2.4.0)",
        "Debian GNU/Linux 12, Linux 6.1.0, x86_64, glibc 2.36",
        "AMD EPYC 7B13 (flags 6a93d771884cba54), 8 CPUs",
        "MKL_NUM_THREADS=2 OMP_NUM_THREADS=4",
        "NVIDIA H200, driver 550.54.15",
        "facts abababababab",
    ]
    assert serialize_facts(ResultFacts("ab" * 32, FACTS)) == {"sha256": "ab" * 32, **FACTS}


def test_what_is_not_known_has_no_line() -> None:
    assert format_facts(None) == [] and serialize_facts(None) is None
    assert format_facts(ResultFacts("ab" * 32, {})) == ["facts abababababab"]
    assert format_facts(ResultFacts("x", {}, "not\nthere")) == ["not known: not⏎there"]
    assert serialize_facts(ResultFacts("x", {}, "gone")) == {"sha256": "x", "trouble": "gone"}


@pytest.mark.parametrize("field", ["python", "os", "cpu", "blas", "driver"])
def test_control_characters_of_a_hostile_store_reach_no_terminal(field: str) -> None:
    lines = format_facts(ResultFacts("ab" * 32, {**FACTS, field: "\x1b[2J\nfake line"}))
    assert "\x1b" not in "".join(lines) and "\n" not in "".join(lines)


def test_facts_are_verified_before_they_are_shown(run: Run) -> None:
    async def scenario() -> None:
        store, data = MemoryStore(), encode_facts(FACTS)
        name = hash_facts(data)
        with pytest.raises(KeyMissing):
            await load_facts(store, KEYS, name)
        await store.put(KEYS.facts(name), data)
        assert await load_facts(store, KEYS, name) == FACTS
        await store.put(KEYS.facts(name), json.dumps({"python": "9.9"}).encode())
        with pytest.raises(CorruptObject, match="have the SHA-256"):
            await load_facts(store, KEYS, name)
        store.state.write(KEYS.facts(name), b" " * (MAX_FACTS_BYTES + 1))
        with pytest.raises(CorruptObject, match="at most"):
            await load_facts(store, KEYS, name)
        for text in ("../" * 20, "", "\ud800", "a" * 10_000):
            with pytest.raises(CorruptObject, match="expected a SHA-256"):
                await load_facts(store, KEYS, text)

    run(scenario())
