"""Troubles with the store are shown while they last, and logged when they begin and end."""

from __future__ import annotations

from monkey.errors import StoreUnavailable
from monkey_agent.store_troubles import LASTS, StoreTroubles
from monkey_agent.unexpected_errors import UnexpectedErrors


class StoppedClock:
    """A clock that is moved by hand."""

    at = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


def test_a_trouble_is_logged_at_its_start_and_end_however_often_it_is_met() -> None:
    log: list[str] = []
    clock = StoppedClock()
    troubles = StoreTroubles(clock, UnexpectedErrors(log.append))
    full, away = StoreUnavailable("the disk is full"), StoreUnavailable("the store is away")
    for _ in range(10):
        clock.at += LASTS / 2  # between them, other requests succeed
        troubles.note(full)
        troubles.expire()
        assert troubles.messages == ["the disk is full"]
    troubles.note(away)
    assert troubles.messages == ["the disk is full", "the store is away"]
    clock.at += LASTS + 1
    troubles.expire()
    troubles.expire()
    assert troubles.messages == []
    assert log == ["the disk is full", "the store is away", "the store answers again"]


def test_many_troubles_are_counted_and_those_of_a_long_outage_forgotten() -> None:
    clock = StoppedClock()
    troubles = StoreTroubles(clock, UnexpectedErrors())
    for n in range(10):
        troubles.note(StoreUnavailable(f"key {n}"))
    assert troubles.messages == ["key 0", "key 1", "key 2", "and 7 more like these"]
    clock.at += LASTS + 1
    troubles.note(StoreUnavailable("key 10"))
    assert troubles.messages == ["key 10"]
