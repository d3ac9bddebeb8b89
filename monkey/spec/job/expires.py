"""When a sweep expires: a time after which nothing of it runs any more, anywhere. Times are UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from monkey.spec.project.cloud import MIN_LIFETIME_SECONDS
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, make_mistake_error
from monkey.spec.yaml.units import format_duration, parse_duration

if TYPE_CHECKING:
    from monkey.spec.project.provider import Provider

_HINT = 'write how long after it is applied, like 12h, or a time with its zone, like "2026-12-01T18:00:00Z"'
#: No year has four digits from here on.
_MAX_TIMESTAMP = 253_402_300_800.0


@dataclass(frozen=True)
class Expiry:
    """`expires:` as a spec has it: so long after its revision was applied, or at a time."""

    #: Seconds from the time at which the revision was applied.
    after: float | None = None
    #: Seconds since the epoch, UTC.
    at: float | None = None

    def until(self, applied: float) -> float:
        """Return when that is, for a revision that was applied at this time: both in seconds since the epoch."""
        return self.at if self.at is not None else applied + (self.after or 0.0)

    def words(self) -> str:
        """Say it: "12h", or "2026-12-01 18:00 UTC"."""
        return format_utc_time(self.at) if self.at is not None else format_duration(self.after or 0.0)

    def to_json(self) -> float | str:
        """Return what `from_json` reads: seconds, or a time as people write it."""
        return self.after or 0.0 if self.at is None else datetime.fromtimestamp(self.at, UTC).isoformat()

    @classmethod
    def from_json(cls, data: float | str) -> Expiry:
        """Read what `to_json` wrote."""
        return cls(at=_parse_time(data)) if isinstance(data, str) else cls(after=float(data))


def parse_expiry(raw: Any, hint: str = _HINT) -> Expiry:
    """Return what a spec, or a command line, says; `hint`: what to write. Raises MistakesError."""
    try:
        return Expiry(after=parse_duration(raw))
    except MistakesError:
        pass
    try:
        return Expiry(at=_parse_time(raw))
    except (ValueError, TypeError, OverflowError):
        zoneless = isinstance(raw, str) and _is_zoneless(raw)
        expected = "a time with its zone" if zoneless else "a duration or a time"
        raise make_mistake_error(f"expected {expected}, found {describe_value(raw)}", hint) from None


def format_utc_time(at: float) -> str:
    """Say a time: "2026-12-01 18:00 UTC"."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def find_expiry_mistakes(
    asked: Expiry | None, names: Iterable[str], known: Mapping[str, Provider]
) -> Iterator[Mistake]:
    """Yield what is wrong with the `expires` of a spec for these providers: machines that are paid for must end.

    The caller, who has a clock, compares the time with it.
    """
    for name in names:
        if name not in known or (cloud := known[name].cloud) is None:
            continue
        if asked is None:
            message = f"machines of provider {name!r} are paid for: expected expires, found none"
            yield Mistake(("provider",), message, "say when they must be gone at the latest: expires: 12h")
            return
        # How far away a time is, whoever has a clock says.
        if asked.after is not None and (found := find_rental_mistake(asked, asked.after, name, cloud.max_lifetime)):
            yield found
            return


def find_rental_mistake(asked: Expiry, left: float, provider: str, most: float) -> Mistake | None:
    """Return what is wrong with an `expires` that is `left` seconds away, where machines are rented for `most`."""
    if left < MIN_LIFETIME_SECONDS:
        message = (
            f"expected {format_duration(MIN_LIFETIME_SECONDS)} or more on provider {provider!r}, found {asked.words()}"
        )
        return Mistake(("expires",), message, "write more: rented machines take minutes to boot")
    return make_too_late_mistake(asked, provider, most) if left > most else None


def make_too_late_mistake(asked: Expiry, provider: str, most: float) -> Mistake:
    """Return the mistake of a sweep that would be paid for longer than its provider allows (`most`, seconds)."""
    message = f"expected at most {format_duration(most)} on provider {provider!r}, found {asked.words()}"
    hint = "write less; or say `max_lifetime:` in monkey.yaml; `monkey extend` gives a sweep more time later"
    return Mistake(("expires",), message, hint)


def _parse_time(raw: Any) -> float:
    read = datetime.fromisoformat(raw)
    at = read.timestamp()
    if read.tzinfo is None or not 0 < at < _MAX_TIMESTAMP:
        raise ValueError(raw)
    return at


def _is_zoneless(raw: str) -> bool:
    try:
        return datetime.fromisoformat(raw).tzinfo is None
    except ValueError:
        return False
