"""When pilots begin to leave before their engine ends them, and when they are reminded. Pure.

The agent leaves by its own clock. The reminder comes later, for an end that was moved while it ran.
"""

from __future__ import annotations

#: Seconds beyond the jobs' grace in which a pilot ships what is left and says goodbye.
_GOODBYE_SECONDS = 60.0
#: Seconds by which an engine's reminder may come late or early, each; and the least time for which there is one.
_UNSURE_SECONDS = 30.0
_REMINDED_SECONDS = 900.0


def count_leaving_seconds(whole: float, grace: float) -> float:
    """Return how long before its end a pilot of `whole` seconds begins to leave; `grace`: the jobs' longest."""
    if whole < _REMINDED_SECONDS:
        return min(grace + _GOODBYE_SECONDS, whole / 3)
    return max(180.0, grace + 2 * _GOODBYE_SECONDS + _UNSURE_SECONDS)


def count_reminder_seconds(whole: float, grace: float) -> float:
    """Return how long before its end an engine reminds a pilot to leave; 0 for never, as its time is too short."""
    if whole < _REMINDED_SECONDS:
        return 0.0
    return count_leaving_seconds(whole, grace) - _GOODBYE_SECONDS - _UNSURE_SECONDS
