"""Leases: how long an agent may be silent before others take its jobs over, and what follows from that.

Each agent has a lease of its own. Its claims and its heartbeats tell it, and all others judge the agent by it.
"""

from __future__ import annotations

from typing import Any

from monkey.protocol import entry_shape
from monkey.spec.job.lease_length import LEASE, LONGEST_LEASE

#: Seconds before the end of its lease at which a silent agent's jobs are frozen.
_MARGIN = 30.0
#: Heartbeats in a lease, so that three may be lost; and in a fleet that shares a roster, where one may be lost.
_BEATS, _BEATS_CROWDED = 6, 3
#: Times the longest pause between heartbeats in which every living agent has beaten.
_SURELY = 1.25


def read_lease(told: Any) -> float:
    """Return the lease that a stored value tells, in seconds: anybody may have written anything there.

    No value, and what is no number, stands for the default.
    """
    return min(max(float(told), LEASE), LONGEST_LEASE) if entry_shape.is_finite_number(told) else LEASE


def compute_fence(lease: float) -> float:
    """Return for how many seconds an agent's jobs may run after its last acknowledged heartbeat *started*."""
    return lease - _MARGIN


def compute_beat_pause(lease: float, *, crowded: bool = False) -> float:
    """Return the seconds between heartbeats; `crowded`: in a fleet that shares a roster."""
    return lease / (_BEATS_CROWDED if crowded else _BEATS)


def compute_round(lease: float) -> float:
    """Return the seconds in which every living agent has beaten whose lease is so long, or shorter."""
    return _SURELY * compute_beat_pause(lease, crowded=True)


def compute_gap(lease: float) -> float:
    """Return the seconds without a look after which an observer starts its observations of an agent again."""
    return lease / 2
