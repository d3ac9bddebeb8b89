"""Patterns that find metrics in what a job prints: regular expressions whose named groups are metrics.

The spec's author writes them, and some take for ever on an unlucky line. So lines are cut at a length, and a signal
ends a search that takes too long. It must not run in a process that has other things to do.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Sequence

from monkey_agent.collecting.source_record import SourceRecord, parse_number, parse_step

#: Bytes of a line that are looked at; matches of one pattern in a line.
MOST_LINE, _MOST_MATCHES = 4096, 200
#: Seconds that one pattern may take for one line; searches that took longer before a pattern is given up.
SEARCH_SECONDS, _PATIENCE = 0.05, 10
#: Names of groups that are no metrics: the step, and a metric's name with its value.
STEPS, NAME, VALUE = ("step", "iteration", "epoch"), "name", "value"


class _SearchTooLong(Exception):
    pass


def _give_up(*_: object) -> None:
    raise _SearchTooLong


class LogPatterns:
    """The patterns of one job, and the log that they are held against as it grows."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Take the patterns; raises re.error. To be used in a process's first thread."""
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._slow = [0] * len(patterns)
        self._rest = b""
        self._cut = False
        self._step: int | None = None
        self._count = 0
        #: What is to be told of patterns that were given up.
        self.notes: list[str] = []
        signal.signal(signal.SIGALRM, _give_up)

    def feed(self, data: bytes, *, over: bool = False) -> Iterator[SourceRecord]:
        """Yield what is found in the lines that are whole by now. A carriage return ends a line, too."""
        *lines, rest = (self._rest + data.replace(b"\r", b"\n")).split(b"\n")
        if over and rest:
            lines, rest = [*lines, rest], b""
        for line in lines:
            if not self._cut:
                yield from self._search(line[:MOST_LINE].decode("utf-8", "replace"))
            self._cut = False
        if len(rest) > MOST_LINE:
            if not self._cut:
                yield from self._search(rest[:MOST_LINE].decode("utf-8", "replace"))
            self._cut, rest = True, b""
        self._rest = rest

    def _search(self, line: str) -> Iterator[SourceRecord]:
        values: dict[str, float] = {}
        step = None
        for at in range(len(self._patterns)):
            for groups in self._find(at, line):
                named = {name: text for name, text in groups.items() if text is not None}
                found = next((parse_step(named.pop(name)) for name in STEPS if name in named), None)
                step = found if found is not None else step
                if NAME in named and VALUE in named:
                    named[named.pop(NAME)] = named.pop(VALUE)
                values |= {name: number for name, text in named.items() if (number := parse_number(text)) is not None}
        if step is not None:
            self._step = step
        if values:
            self._count += 1
            yield SourceRecord(values, self._step, None, self._count)

    def _find(self, at: int, line: str) -> list[dict[str, str | None]]:
        """Return the groups of each match of a pattern."""
        if self._slow[at] >= _PATIENCE:
            return []
        found: list[dict[str, str | None]] = []
        try:
            signal.setitimer(signal.ITIMER_REAL, SEARCH_SECONDS)
            try:
                for match in self._patterns[at].finditer(line):
                    found.append(match.groupdict())
                    if len(found) >= _MOST_MATCHES:
                        break
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _SearchTooLong:
            self._slow[at] += 1
            if self._slow[at] == _PATIENCE:
                text = (
                    f"the pattern {self._patterns[at].pattern!r:.100} of `metrics: from` took too long on {_PATIENCE}"
                )
                self.notes.append(f"{text} lines: it is given up")
        return found
