"""Resources that are only counted, under names that people choose: `tpu`, `licence`.

A provider says how many each of its machines has, a job how many it takes. CPUs, GPUs and memory are not among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, find_nearest_word, make_mistake_error

#: Names with a number of each, in the names' order.
CountedResources = tuple[tuple[str, int], ...]
#: The resources of a job that are not only counted.
MEASURED_RESOURCES = ("cpus", "gpus", "memory")
#: Words of other tools for those.
RESOURCE_SYNONYMS = {"cpu": "cpus", "gpu": "gpus", "mem": "memory", "ram": "memory", "slots_per_trial": "gpus"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}\Z")
#: Of one resource, on one machine.
_MOST = 1_000_000


def parse_counts(raw: Any) -> CountedResources:
    """Return the resources of a mapping of names to numbers, without zeros. Raises MistakesError."""
    if not isinstance(raw, dict):
        hint = "write how many each machine has: {tpu: 4}"
        raise make_mistake_error(f"expected a mapping, found {describe_value(raw)}", hint)
    if mistakes := [mistake for name, count in raw.items() for mistake in _find_count_mistakes(name, count)]:
        raise MistakesError(mistakes)
    return tuple(sorted((name, count) for name, count in raw.items() if count))


def nest_counts(raw: Any) -> Any:
    """Return a spec's `resources:` with its counted ones under `counted`. Raises MistakesError."""
    if not isinstance(raw, dict):
        return raw
    counted = {name: count for name, count in raw.items() if name not in MEASURED_RESOURCES}
    plain = {name: value for name, value in raw.items() if name in MEASURED_RESOURCES}
    return plain | ({"counted": parse_counts(counted)} if counted else {})


def spell_counts(counted: CountedResources) -> str:
    """Return the resources as one word of a command line: `licence=2,tpu=4`."""
    return ",".join(f"{name}={count}" for name, count in counted)


def read_counts(text: str) -> CountedResources:
    """Read what `spell_counts` wrote. Raises MistakesError."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return parse_counts({name: int(count) if count.isdecimal() else count for name, _, count in pairs})


def _find_count_mistakes(name: Any, count: Any) -> Iterator[Mistake]:
    path = (str(name),)
    meant = RESOURCE_SYNONYMS.get(str(name).lower(), str(name).lower())
    if meant in MEASURED_RESOURCES:
        yield Mistake(path, f"unknown key {name!r}", f"did you mean {meant!r}?", on_key=True)
    elif not isinstance(name, str) or not _NAME.match(name):
        hint = "use letters, digits, '_', '.' and '-': 63 of them at most, the first a letter"
        yield Mistake(path, f"{name!r} cannot name a resource", hint, on_key=True)
    elif isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST:
        near = find_nearest_word(name, MEASURED_RESOURCES)
        hint = f"did you mean {near!r}?" if near else f"write {name}: 1"
        yield Mistake(path, f"expected a whole number from 0 to {_MOST:,}, found {describe_value(count)}", hint)
