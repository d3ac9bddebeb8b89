"""Records as sources give them, before it is known which of their values are new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: Names of splits of the data. Writers that part runs by them give the same metrics in each.
_SPLITS = frozenset({"train", "training", "validation", "val", "valid", "dev", "test", "eval", "evaluation"})


class SourceRecord(NamedTuple):
    """Values of one step, as a source has them."""

    values: Mapping[str, float]
    step: int | None = None
    #: Seconds since the epoch; None where the source does not tell.
    at: float | None = None
    #: Of a record without a step, which one of its source it is: the same whenever the source is read again.
    number: int = 0


def parse_number(text: str) -> float | None:
    """Return the number that a text is, NaN and infinities included; None for any other text."""
    text = text.strip().strip(",;%)]}'\"")
    if not text or not text.isascii() or "_" in text or len(text) > 64:
        return None
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        return None


def parse_step(text: str) -> int | None:
    """Return the step that a text is: a whole number, also one that was written as a float."""
    number = parse_number(text)
    return (
        int(number) if number is not None and number == number and abs(number) < 1 << 62 and number % 1 == 0 else None
    )


def name_split_metric(group: str, name: str) -> str:
    """Return the name of a metric of a group (a directory, a measurement): with the group where that names a split."""
    return f"{group}/{name}" if group.lower() in _SPLITS and not name.startswith(f"{group}/") else name
