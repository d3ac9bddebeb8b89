"""Values at equal distances, made when asked for: there may be far too many to hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from monkey.spec.job.job_table import ParameterValue


class SteppedRange(Sequence[ParameterValue]):
    """Numbers that rise, or fall, from one to the next."""

    def __init__(self, steps: range, make: Callable[[int], int | float]) -> None:
        """Take the numbers of the steps, and what makes a value of one."""
        self.steps, self.make = steps, make

    def __len__(self) -> int:
        return len(self.steps)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __getitem__(self, at: Any) -> Any:
        return [self.make(n) for n in self.steps[at]] if isinstance(at, slice) else self.make(self.steps[at])

    def find(self, value: float) -> list[int]:
        """Return where a number stands, without going through all."""
        low, high = 0, count_values(self)
        falls = high > 1 and self[high - 1] < self[0]
        while low < high:
            middle = (low + high) // 2
            if self[middle] > value if falls else self[middle] < value:
                low = middle + 1
            else:
                high = middle
        return [low] if low < count_values(self) and self[low] == value else []


def count_values(values: Sequence[ParameterValue] | range) -> int:
    """Return how many values there are; `len` cannot say it beyond 2**63."""
    steps = values.steps if isinstance(values, SteppedRange) else values
    return max(0, -(-(steps.stop - steps.start) // steps.step)) if isinstance(steps, range) else len(steps)
