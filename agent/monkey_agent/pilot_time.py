"""The time that an agent's machine has: a pilot in another's queue ends at a moment that is known from its start."""

from __future__ import annotations

from monkey.protocol.clock import Clock
from monkey.spec.yaml.units import format_duration


class PilotTime:
    """The time of one agent's machine, on the agent's clock."""

    def __init__(self, clock: Clock, leave_at: float = float("inf"), whole: float | None = None) -> None:
        """Count from now to `leave_at` (seconds since the epoch, by the wall clock); infinity: it never ends.

        `whole`: seconds that a machine has in all, as people asked for them; None: those from now to `leave_at`.
        """
        self._clock, left = clock, leave_at - clock.wall()
        self._end = clock.now() + left
        self.whole = max(0.0, left if whole is None else whole)

    @property
    def left(self) -> float:
        """Return the seconds until the agent leaves."""
        return self._end - self._clock.now()

    def fits(self, timeout: float | None) -> bool:
        """Return whether a job that may take `timeout` seconds (None: it is not known) ends before the agent leaves."""
        return self.left > (timeout or 0.0)

    def ever_fits(self, timeout: float | None) -> bool:
        """Return whether such a job would end on a machine whose time begins now."""
        return self.whole > (timeout or 0.0)

    @property
    def is_half_over(self) -> bool:
        """Return whether less than half of it is left: too little for a job that ended with another pilot's time."""
        return self.left < self.whole / 2

    @property
    def reason(self) -> str:
        """Return why jobs are released when it is over."""
        return f"its pilot's time ({format_duration(round(self.whole))}) is over"
