"""What pilots of any engine may say of themselves: how many, and how large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value
from monkey.spec.yaml.units import parse_size

#: Keys of all engines, besides those of all providers.
PILOT_KEYS = ("pilots", "cpus", "memory", "gpus", "store_path")
#: Pilots of one provider, at most, and CPUs of one.
_MAX_PILOTS, _MAX_CPUS = 1000, 4096


def find_pilot_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with the keys that all engines have; each has its own form of `gpus`."""
    for key, what, most in (("pilots", "a number of pilots", _MAX_PILOTS), ("cpus", "a number of CPUs", _MAX_CPUS)):
        value = raw.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            yield Mistake((key,), f"expected {what}, found {describe_value(value)}", f"write one from 1 to {most}")
    if "memory" in raw:
        try:
            if not parse_size(raw["memory"]):
                yield Mistake(("memory",), "expected a size, found 0", "write it like 32GiB")
        except MistakesError as error:
            yield from (mistake.under(("memory",)) for mistake in error.mistakes)
    path = raw.get("store_path", "/x")
    if not isinstance(path, str) or not path.startswith(("/", "~/")) or ".." in path.split("/"):
        message = f"expected the store's directory on the pilots' nodes, found {describe_value(path)}"
        yield Mistake(("store_path",), message, "write an absolute path, or one below ~/, without '..'")
