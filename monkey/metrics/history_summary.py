"""The summary of a history: what earlier attempts logged, as far as a later one continues from it.

- Values with a step count if their step is lower than the first step of every later attempt.
- Values without a step count if they were logged before the checkpoint that the attempt was resumed from. The
  checkpoint notes how many bytes of each metrics file there were: a count, as the clocks of machines differ.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from monkey.metrics.record_feed import RecordFeed
from monkey.metrics.records import RecordCut
from monkey.metrics.summary import MetricSummary, merge_summaries
from monkey.untrusted_files import HeldDirectory, UntrustedFile

_PIECE_BYTES = 256 * 1024
_F = TypeVar("_F", bound=RecordFeed)


class LoggedPart(Protocol):
    """An attempt of a history, as `monkey.protocol.record.history_parts` has it."""

    @property
    def k(self) -> int: ...
    @property
    def places(self) -> Mapping[str, int]: ...


def summarize_history(
    parts: Sequence[LoggedPart], directory: Path, until: int | None, needed: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return the summary of a history whose files `restore_history` brought.

    `until`: the first step of the attempt that continues it; None where that has logged no step yet. `needed` is as in
    `MetricSummary`. Slow.
    """
    found: dict[str, dict[str, Any]] = {}
    for _, _, summary in fold_parts(parts, directory, until, lambda: MetricSummary(needed=needed)):
        found = merge_summaries(summary.result(), found)
    return found


def find_cuts(parts: Sequence[LoggedPart], directory: Path, until: int | None) -> dict[tuple[int, str], RecordCut]:
    """Return where each file of a history is cut, by the position of its attempt and its name.

    `directory`, `until` are as in `summarize_history`. Slow.
    """
    found = {}
    for part, first, _ in fold_parts(parts, directory, until, MetricSummary):
        for name in _list_files(directory, part):
            step = float("inf") if first is None else first
            found[part.k, name] = RecordCut(step, part.places.get(name, 0))
    return found


def fold_parts(
    parts: Sequence[LoggedPart], directory: Path, until: int | None, start: Callable[[], _F]
) -> Iterator[tuple[LoggedPart, int | None, _F]]:
    """Yield each part, the last one first, the step at which it is cut, and the feed that has it up to there.

    `start` makes a feed. `directory` and `until` are as in `summarize_history`. Slow.
    """
    for part in reversed(parts):
        feed = start()
        feed.until = until
        for name in _list_files(directory, part):
            _feed_file(feed, UntrustedFile(str(directory), f"{part.k}/{name}"), part.places.get(name, 0))
        feed.end_lines()
        yield part, until, feed
        first = feed.first_step
        until = first if until is None else until if first is None else min(first, until)


def _list_files(directory: Path, part: LoggedPart) -> list[str]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), HeldDirectory(str(directory)) as held:
        return sorted(os.listdir(held.descend(str(part.k))))  # noqa: PTH208 - of a descriptor
    return []


def _feed_file(summary: RecordFeed, file: UntrustedFile, place: int) -> None:
    try:
        fd = file.open()
    except OSError:
        return
    name = file.path.rpartition("/")[2]
    with os.fdopen(fd, "rb") as opened:
        summary.stepped_only = False
        while place > 0 and (data := opened.read(min(place, _PIECE_BYTES))):
            summary.feed(data, name)
            place -= len(data)
        summary.stepped_only = True
        while data := opened.read(_PIECE_BYTES):
            summary.feed(data, name)
    summary.stepped_only = False
