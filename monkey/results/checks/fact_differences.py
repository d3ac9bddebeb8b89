"""What is not the same of what two results came from: packages by name, all other facts as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from monkey.protocol.record.facts import name_package


class FactDifference(NamedTuple):
    """A fact, or a package of the lock, that two results do not share; "" where one lacks it."""

    name: str
    recorded: str
    now: str


def list_fact_differences(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[FactDifference]:
    """Return what differs, packages first: they are the likeliest cause."""
    found = [*_compare(_read_packages(recorded), _read_packages(now))]
    for part in ("python", "python_build", "blas", "variables", "gpus", "driver", "cpu", "cpu_flags", "cpus"):
        found += _compare({part: recorded.get(part)}, {part: now.get(part)})
    for part in ("machine", "libc", "os", "kernel"):
        found += _compare({part: recorded.get(part)}, {part: now.get(part)})
    return found


def _compare(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[FactDifference]:
    for name in sorted({*recorded, *now}):
        before, after = recorded.get(name), now.get(name)
        if before != after:
            yield FactDifference(name, _spell(before), _spell(after))


def _read_packages(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the packages of a lock with their versions."""
    return {name_package(line): line.partition("==")[2] or line for line in facts.get("lock", ())}


def _spell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)
