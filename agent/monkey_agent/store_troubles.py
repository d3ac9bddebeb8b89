"""Troubles with the store: what it refuses or does not answer now, for status and the agent's log."""

from __future__ import annotations

from monkey.errors import MonkeyError
from monkey_agent.ports import Clock
from monkey_agent.unexpected_errors import UnexpectedErrors

#: Seconds for which a trouble counts since it was last met. What fails is tried again every few seconds: a store that
#: is full or read-only answers some requests all the while, so that one success ends no trouble.
LASTS = 15.0
#: Number of messages that a heartbeat carries: where a disk is full, each attempt fails with a key of its own.
MOST = 3


class StoreTroubles:
    """The troubles of the last seconds; each is logged when it begins, and once when all are over."""

    def __init__(self, clock: Clock, errors: UnexpectedErrors) -> None:
        """Start without any; `errors` writes to the agent's log."""
        self._clock, self._errors = clock, errors
        #: Message to when it was last met.
        self._met: dict[str, float] = {}
        #: The one that was met last, since the agent began.
        self.newest: MonkeyError | None = None

    def note(self, exc: MonkeyError) -> None:
        """Note a request that failed."""
        self._forget_old()
        self.newest = exc
        if exc.message not in self._met:
            self._errors.say(exc.message)
        self._met[exc.message] = self._clock.now()

    def expire(self) -> None:
        """Forget the troubles that are over; log it when none is left."""
        if self._met:
            self._forget_old()
            if not self._met:
                self._errors.say("the store answers again")

    def _forget_old(self) -> None:
        since = self._clock.now() - LASTS
        self._met = {message: met for message, met in self._met.items() if met >= since}

    @property
    def messages(self) -> list[str]:
        """Return the messages of the troubles, the oldest first: `MOST` of them, and how many more there are."""
        more = len(self._met) - MOST
        return [*list(self._met)[:MOST], *([f"and {more} more like these"] if more > 0 else [])]
