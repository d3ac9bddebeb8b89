"""Troubles with the store: what it refuses or does not answer now, for status and the agent's log."""

from __future__ import annotations

from monkey.errors import MonkeyError
from monkey_agent.ports import Clock
from monkey_agent.unexpected_errors import UnexpectedErrors

#: Seconds for which a trouble counts since it was last met. What fails is tried again every few seconds: a store that
#: is full or read-only answers some requests all the while, so that one success ends no trouble.
LASTS = 15.0


class StoreTroubles:
    """The troubles of the last seconds; each is logged when it begins, and once when all are over."""

    def __init__(self, clock: Clock, errors: UnexpectedErrors) -> None:
        """Start without any; `errors` writes to the agent's log."""
        self._clock, self._errors = clock, errors
        #: Message to when it was last met.
        self._met: dict[str, float] = {}

    def note(self, exc: MonkeyError) -> None:
        """Note a request that failed."""
        if exc.message not in self._met:
            self._errors.say(exc.message)
        self._met[exc.message] = self._clock.now()

    def expire(self) -> None:
        """Forget the troubles that are over; log it when none is left."""
        since = self._clock.now() - LASTS
        left = {message: met for message, met in self._met.items() if met >= since}
        if self._met and not left:
            self._errors.say("the store answers again")
        self._met = left

    @property
    def messages(self) -> list[str]:
        """Return the messages of the troubles, the oldest first."""
        return list(self._met)
