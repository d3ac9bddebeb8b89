"""Entries of a log that count for nothing: ill-formed ones, and those of a kind that this version does not know.

Such an entry keeps its number, and what follows it is read. Anybody who may write to the store can leave any number of
them: their count is kept, and the reasons of the first few.
"""

from __future__ import annotations

from typing import NamedTuple

#: Skipped entries that are named to people; the others are counted.
NAMED = 3


class SkippedEntries(NamedTuple):
    """The skipped entries of one log, or of one kind of objects."""

    total: int = 0
    #: Key and reason of the first `NAMED`.
    named: tuple[tuple[str, str], ...] = ()

    def add(self, key: str, why: str) -> SkippedEntries:
        """Return these and one more."""
        named = self.named if self.total >= NAMED else (*self.named, (key, why))
        return SkippedEntries(self.total + 1, named)

    def merge(self, others: SkippedEntries) -> SkippedEntries:
        """Return these and the others."""
        return SkippedEntries(self.total + others.total, (self.named + others.named)[:NAMED])

    @property
    def summary(self) -> str:
        """Return one short sentence about them all, for heartbeats; "" for none."""
        more = f", and {self.total - 1:,} more" if self.total > 1 else ""
        return f"{self.named[0][0]}{more}: skipped, and counts for nothing" if self.named else ""

    @property
    def lines(self) -> list[str]:
        """Return sentences for people, `NAMED` + 1 at most."""
        lines = [f"{key}: skipped, it counts for nothing: {why}" for key, why in self.named]
        if self.total > len(self.named):
            log = self.named[0][0].rpartition("/")[0]
            lines.append(f"{log}/: {self.total - len(self.named):,} more are skipped")
        return lines


NONE_SKIPPED = SkippedEntries()
