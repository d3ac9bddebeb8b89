"""Rows of include and exclude: values by parameter, groups nested or dotted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from monkey.spec.parameters.ranges import SteppedRange


def flatten_row(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Write a row's nested groups as dotted names, where they are groups of parameters."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict) and key not in names and any(name.startswith(f"{key}.") for name in names):
            inner = [name.removeprefix(f"{key}.") for name in names if name.startswith(f"{key}.")]
            found |= {f"{key}.{name}": v for name, v in flatten_row(value, inner).items()}
        else:
            found[key] = value
    return found


def is_same_value(left: Any, right: Any) -> bool:
    """Compare values as people do: 1 is 1.0, but neither is true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def find_value_indexes(values: Sequence[Any] | range, value: Any) -> list[int]:
    """Return where a value stands among others."""
    if isinstance(values, SteppedRange):
        return values.find(value) if isinstance(value, int | float) and not isinstance(value, bool) else []
    if not isinstance(values, range):
        return [at for at, other in enumerate(values) if is_same_value(value, other)]
    # A range looks for a float by counting up to it.
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    return [values.index(int(value))] if whole and int(value) in values else []


def find_key_path(raw: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the keys by which a dotted name is reached in a row."""
    steps: list[str] = []
    rest, here = name, raw
    while rest not in here and isinstance(here, dict):
        key = next((k for k in here if rest.startswith(f"{k}.") and isinstance(here[k], dict)), None)
        if key is None:
            break
        steps.append(key)
        rest, here = rest.removeprefix(f"{key}."), here[key]
    return (*steps, rest)
