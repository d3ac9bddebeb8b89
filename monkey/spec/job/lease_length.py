"""The lease of an agent as people set it: how long it may be silent before others take its jobs over."""

from __future__ import annotations

from typing import Any

from monkey.spec.yaml.mistakes import describe_value, make_mistake_error
from monkey.spec.yaml.units import format_duration, parse_duration

#: Seconds of the default lease, which is the shortest; and of the longest.
LEASE, LONGEST_LEASE = 90.0, 600.0


def spell_lease_argument(lease: float) -> list[str]:
    """Return the arguments of an agent that has such a lease: none for the default."""
    return [] if lease == LEASE else ["--lease", f"{lease:g}"]


def parse_lease(value: Any) -> float:
    """Return the seconds of a lease: "5m", or a number of seconds. Raises MistakesError."""
    seconds = parse_duration(value)
    if not LEASE <= seconds <= LONGEST_LEASE:
        raise make_mistake_error(
            f"expected a lease from 90s to {format_duration(LONGEST_LEASE)}, found {describe_value(value)}",
            "write 5m where many agents on a bucket cost too much; leave it out for 90s",
        )
    return seconds
