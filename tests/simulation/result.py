"""What one seed showed, as it travels between processes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass
class Result:
    """What one seed showed."""

    seed: int
    violations: Counter[str]
    counts: Counter[str]
    executions: int
    jobs: int
    ended: float
    #: Were there more executions than jobs, and slots of those that were killed?
    dear: bool
