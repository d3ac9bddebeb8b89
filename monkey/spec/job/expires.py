"""When a sweep expires: a time after which nothing of it runs any more, anywhere. Times are UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from monkey.spec.project.cloud import LEAST_LIFETIME
from monkey.spec.yaml.mistakes import Mistake, Mistakes, describe, wrong
from monkey.spec.yaml.units import duration, duration_text

if TYPE_CHECKING:
    from monkey.spec.project.provider import Provider

_HINT = 'write how long after it is applied, like 12h, or a time with its zone, like "2026-12-01T18:00:00Z"'
#: No year has four digits from here on.
_MOST = 253_402_300_800.0


@dataclass(frozen=True)
class Expires:
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
        return time_text(self.at) if self.at is not None else duration_text(self.after or 0.0)

    def to_json(self) -> float | str:
        """Return what `from_json` reads: seconds, or a time as people write it."""
        return self.after or 0.0 if self.at is None else datetime.fromtimestamp(self.at, UTC).isoformat()

    @classmethod
    def from_json(cls, data: float | str) -> Expires:
        """Read what `to_json` wrote."""
        return cls(at=_time(data)) if isinstance(data, str) else cls(after=float(data))


def read(raw: Any, hint: str = _HINT) -> Expires:
    """Return what a spec, or a command line, says; `hint`: what to write. Raises Mistakes."""
    try:
        return Expires(after=duration(raw))
    except Mistakes:
        pass
    try:
        return Expires(at=_time(raw))
    except (ValueError, TypeError, OverflowError):
        zoneless = isinstance(raw, str) and _is_zoneless(raw)
        expected = "a time with its zone" if zoneless else "a duration or a time"
        raise wrong(f"expected {expected}, found {describe(raw)}", hint) from None


def time_text(at: float) -> str:
    """Say a time: "2026-12-01 18:00 UTC"."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def mistakes(asked: Expires | None, names: Iterable[str], known: Mapping[str, Provider]) -> Iterator[Mistake]:
    """Yield what is wrong with the `expires` of a spec for these providers: machines that are paid for must end.

    A time is held against the clock by whoever has one.
    """
    for name in names:
        if name not in known or (cloud := known[name].cloud) is None:
            continue
        if asked is None:
            message = f"machines of provider {name!r} are paid for: expected expires, found none"
            yield Mistake(("provider",), message, "say when they must be gone at the latest: expires: 12h")
            return
        # How far away a time is, whoever has a clock says.
        if asked.after is not None and (found := rentable(asked, asked.after, name, cloud.max_lifetime)):
            yield found
            return


def rentable(asked: Expires, left: float, provider: str, most: float) -> Mistake | None:
    """Return what is wrong with an `expires` that is `left` seconds away, where machines are rented for `most`."""
    if left < LEAST_LIFETIME:
        message = f"expected {duration_text(LEAST_LIFETIME)} or more on provider {provider!r}, found {asked.words()}"
        return Mistake(("expires",), message, "write more: rented machines take minutes to boot")
    return too_late(asked, provider, most) if left > most else None


def too_late(asked: Expires, provider: str, most: float) -> Mistake:
    """Return the mistake of a sweep that would be paid for longer than its provider allows (`most`, seconds)."""
    message = f"expected at most {duration_text(most)} on provider {provider!r}, found {asked.words()}"
    hint = "write less; or say `max_lifetime:` in monkey.yaml; `monkey extend` gives a sweep more time later"
    return Mistake(("expires",), message, hint)


def _time(raw: Any) -> float:
    read = datetime.fromisoformat(raw)
    at = read.timestamp()
    if read.tzinfo is None or not 0 < at < _MOST:
        raise ValueError(raw)
    return at


def _is_zoneless(raw: str) -> bool:
    try:
        return datetime.fromisoformat(raw).tzinfo is None
    except ValueError:
        return False
