"""The metrics file of what was received, in the lines that `monkey.log` writes, and the count of what was not."""

from __future__ import annotations

import fcntl
import json
import os
import time
from functools import lru_cache

from monkey.metrics.metric_log import is_metric_name
from monkey.metrics.record_feed import MAX_LINE, select_tags
from monkey.untrusted_files import open_regular
from monkey_agent.receiving.line_protocol import ReceivedPoint

#: The file in $MONKEY_METRICS_DIR.
RECEIVED_FILE = "received.jsonl"
#: Names of metrics at most: one socket serves any number of writers.
_MOST_NAMES = 10_000
#: Bytes of lines that are written at once.
_PIECE = 1 << 16
#: What is said of each kind of loss, behind a number.
_NOT_LINES, _LARGE, _TEXTS, _NAMES, _TAGS, _DISK, _DROPPED = (
    "lines that were sent are no line protocol, as in `loss,split=val value=0.3,step=10i`",
    "datagrams that were sent are larger than 256 KiB: send fewer lines in each",
    "fields that were sent hold texts, which are no metrics",
    f"values that were sent have a name that no metric can have, or are of more than {_MOST_NAMES:,} metrics",
    "tags that were sent are left out: they are too long, or too many for one point",
    "points that were sent are lost: the metrics file could not be written",
    "datagrams of UDP are lost: they came faster than this machine read them"
    " (hint: MONKEY_METRICS_SOCKET loses none; net.core.rmem_max gives UDP more room)",
)


class ReceivedRecords:
    """The file, and what could not be written into it."""

    def __init__(self, directory: str) -> None:
        """Append to the file in `directory`. Raises OSError."""
        path = f"{directory}/{RECEIVED_FILE}"
        self._fd = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        fcntl.flock(self._fd, fcntl.LOCK_EX)  # until an earlier receiver has gone
        #: Whether the file ends within a line: an earlier receiver was killed, or the disk was full.
        self._torn = os.pread(self._fd, 1, max(os.fstat(self._fd).st_size - 1, 0)) not in (b"", b"\n")
        self._lines: list[str] = []
        self._size = 0
        #: Name of each metric to its JSON; "" for one that none can have.
        self._names: dict[str, str] = {}
        self._counts = dict.fromkeys((_NOT_LINES, _LARGE, _TEXTS, _NAMES, _TAGS, _DISK, _DROPPED), 0)
        self._told: dict[str, int] = {}

    def add(self, point: ReceivedPoint | None) -> None:
        """Add a point; None: there was a line that is none."""
        if point is None:
            self._counts[_NOT_LINES] += 1
            return
        self._counts[_TEXTS] += point.texts
        values = [f"{name}:{_spell(value)}" for key, value in point.metrics.items() if (name := self._admit(key))]
        self._counts[_NAMES] += len(point.metrics) - len(values)
        if not values:
            return
        step = "null" if point.step is None else point.step
        ns = time.time_ns() if point.ns is None else point.ns
        tags = self._write_tags(point.tags) if point.tags else ""
        line = f'{{"m":{{{",".join(values)}}},"step":{step},"t":{ns}e-9{tags}}}\n'
        if len(line) > MAX_LINE:
            self._counts[_LARGE] += 1
            return
        self._lines.append(line)
        self._size += len(line)
        if self._size > _PIECE:
            self.flush()

    def refuse_datagram(self) -> None:
        """Count a datagram that is too large."""
        self._counts[_LARGE] += 1

    def _admit(self, name: str) -> str:
        """Return a metric's name as JSON; "" where it can be none."""
        known = self._names.get(name)
        if known is None:
            if len(self._names) >= _MOST_NAMES or not is_metric_name(name):
                return ""
            known = self._names[name] = json.dumps(name)
        return known

    def _write_tags(self, tags: tuple[tuple[str, str], ...]) -> str:
        text, refused = _encode_tags(tags)
        self._counts[_TAGS] += refused
        return text

    def flush(self) -> None:
        """Write what was added. Where the disk takes none, it is lost and counted: no sender waits for a full disk."""
        if not self._lines:
            return
        data = ("\n" * self._torn + "".join(self._lines)).encode()
        count = len(self._lines)
        self._lines.clear()
        self._size = 0
        try:
            while data:
                data = data[os.write(self._fd, data) :]
                self._torn = True
            self._torn = False
        except OSError:
            self._counts[_DISK] += min(count, data.count(b"\n"))

    def tell(self, dropped: int, *, over: bool) -> list[str]:
        """Return what is to be said: of each loss when there is one, and ten times as many; `over`: all, in the end.

        `dropped`: number of datagrams of UDP that the kernel had no room for.
        """
        self._counts[_DROPPED] = dropped
        told = []
        for what, count in self._counts.items():
            before = self._told.get(what, 0)
            if count >= max(10 * before, 1) or (over and count > before):
                self._told[what] = count
                told.append(f"{count:,} {what}")
        return told


@lru_cache(1024)
def _encode_tags(tags: tuple[tuple[str, str], ...]) -> tuple[str, int]:
    """Return the tags as a part of a line, and how many of them are left out."""
    picked = select_tags(dict(tags))
    return f',"tags":{json.dumps(picked)}' if picked else "", len(tags) - len(picked)


def _spell(value: float) -> str:
    return repr(value) if value - value == 0 else f'"{value}"'
