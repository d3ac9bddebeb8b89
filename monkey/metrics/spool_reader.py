# ruff: noqa: PTH112, PTH116
# Paths are plain strings here, as those of workspaces are.
"""The exporter's side of a spool: what is to be sent next, and how far everything was confirmed."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from monkey.atomic_write import write_atomically
from monkey.metrics.influx.influx_points import make_metric_tags
from monkey.metrics.record_feed import MAX_LINE
from monkey.metrics.records import Records
from monkey.metrics.spool import list_names, list_segments, load_json
from monkey.removal import remove_below
from monkey.untrusted_files import HeldDirectory, is_directory, open_regular

#: Bytes of a file that are read at once.
_PIECE_BYTES = 256 * 1024
#: Bytes of lines after which a batch is full: 2,000 to 5,000 records.
BATCH_BYTES = 512 * 1024


class SpooledFile:
    """One file: how far it was read, and what must be known to read on."""

    def __init__(self, tags: dict[str, str] | None, state: dict[str, Any] | None = None) -> None:
        """Begin with a file of records with these tags, or of points (None); continue from an earlier `state`."""
        state = state or {}
        self.at: int = state.get("at", 0)
        #: In the middle of a line that is too long to be anything.
        self._skipping: bool = state.get("skipping", False)
        self._records = Records(tags, state.get("records")) if tags is not None else None

    def state(self) -> dict[str, Any]:
        """Return what `__init__` continues from."""
        told: dict[str, Any] = {"at": self.at}
        if self._skipping:
            told["skipping"] = True
        if self._records is not None:
            told["records"] = self._records.state()
        return told

    def read(self, path: str, *, over: bool) -> bytes:
        """Return points of what comes next; `over`: nothing more is written, so what lacks its newline is a line, too.

        Raises OSError.
        """
        fd, asked = open_regular(path, os.O_RDONLY), _PIECE_BYTES
        try:
            data = os.pread(fd, asked, self.at)
            if b"\n" not in data and len(data) == asked:
                asked = MAX_LINE + 1
                data = os.pread(fd, asked, self.at)
        finally:
            os.close(fd)
        end = data.rfind(b"\n") + 1
        if not end and len(data) > MAX_LINE:
            self.at += len(data)
            self._skipping = True
            return b""
        if over and len(data) < asked:
            end = len(data)
        self.at += end
        return self._points(data[:end])

    def _points(self, lines: bytes) -> bytes:
        if self._skipping and lines:
            lines = lines.partition(b"\n")[2]
            self._skipping = False
        if self._records is not None:
            return self._records.convert(lines)
        return lines[: lines.rfind(b"\n") + 1]


class PointBatch(NamedTuple):
    """Lines to be sent, and what is to be remembered when they were."""

    body: bytes
    #: (source, file) to its state.
    states: dict[tuple[str, str], dict[str, Any]]


class UnreadFile(NamedTuple):
    """A file that has more than was read of it."""

    source: str
    name: str
    path: str
    #: Nothing more is written to it.
    over: bool
    size: int


#: The name of what is no attempt: the files of points.
POINTS = ""


class SpoolBacklog:
    """All that one InfluxDB's directory holds."""

    def __init__(self, path: str) -> None:
        """Continue from what was confirmed. Raises OSError."""
        self._path = path
        told = load_json(f"{path}/offsets.json")
        self._confirmed: dict[str, dict[str, Any]] = told.get("files", {})
        #: Points that were confirmed, that were refused for good, and that were dropped for want of room.
        self.counts: dict[str, int] = {"sent": 0, "dead": 0, "dropped": 0, **told.get("counts", {})}
        self._files: dict[tuple[str, str], SpooledFile] = {}
        self._sources: dict[str, dict[str, Any]] = {}
        self._found: deque[UnreadFile] = deque()
        #: Bytes that are not confirmed, by the last look; and bytes that lie here.
        self.owed = 0
        self._held = 0

    # -- what is there ------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Find out what is to be sent, and remove what was."""
        self._found.clear()
        self.owed = self._held = 0
        present = set(list_names(f"{self._path}/sources"))
        for source in self._sources.keys() - present | self._confirmed.keys() - present - {POINTS}:
            self._forget(source)
        for source in sorted(present):
            self._look_at(source)
        numbers = list_segments(self._path)
        for name in self._confirmed.get(POINTS, {}).keys() - set(map(str, numbers)):
            self._forget(POINTS, name)
        sizes = _list_sizes(f"{self._path}/points")
        for number in numbers:
            over, size = number != numbers[-1], sizes.get(str(number), 0)
            if not self._see(UnreadFile(POINTS, str(number), f"{self._path}/points/{number}", over, size)) and over:
                remove_below(self._path, f"points/{number}")

    def _look_at(self, source: str) -> None:
        kept = f"{self._path}/kept/{source}"
        told = self._source(source)
        over = is_directory(kept)
        if not told.get("tags"):
            self._drop(kept)  # a loss of power took it
            return
        directory = kept if over else str(told.get("directory", ""))
        if not over and not is_directory(directory):
            over, directory = is_directory(kept), kept  # it may have been moved between the two looks
            if not over:
                remove_below(self._path, f"sources/{source}")
                return
        sizes = _list_sizes(directory)
        left = [self._see(UnreadFile(source, name, f"{directory}/{name}", over, sizes[name])) for name in sizes]
        if over and not any(left):
            # In this order: what is kept without a source would stay for ever.
            remove_below(self._path, f"kept/{source}")
            remove_below(self._path, f"sources/{source}")

    def _source(self, source: str) -> dict[str, Any]:
        told = self._sources.get(source, {})
        if not told.get("directory") or not os.path.isdir(told["directory"]):
            with contextlib.suppress(OSError):
                told = self._sources[source] = load_json(f"{self._path}/sources/{source}")
        return told

    def _see(self, found: UnreadFile) -> bool:
        """Say whether there is more of a file than was confirmed."""
        self._held += found.size if found.over or found.source == POINTS else 0
        confirmed = self._confirmed.get(found.source, {}).get(found.name, {}).get("at", 0)
        if found.size > self._file(found).at:
            self._found.append(found)
        self.owed += max(found.size - confirmed, 0)
        return bool(found.size > confirmed)

    def _file(self, found: UnreadFile) -> SpooledFile:
        key = found.source, found.name
        if key not in self._files:
            tags = None
            if found.source != POINTS:
                told = self._source(found.source).get("tags", {})
                tags = make_metric_tags(file=found.name, **told)
            self._files[key] = SpooledFile(tags, self._confirmed.get(found.source, {}).get(found.name))
        return self._files[key]

    # -- what is sent -------------------------------------------------------------------------------------------------

    def batch(self) -> PointBatch | None:
        """Return what is to be sent next; None where, since the last look, nothing is."""
        parts: list[bytes] = []
        states: dict[tuple[str, str], dict[str, Any]] = {}
        size = 0
        while self._found and size < BATCH_BYTES:
            found = self._found.popleft()
            file = self._file(found)
            before = file.at
            try:
                lines = file.read(found.path, over=found.over)
            except OSError:
                lines = b""  # it was moved; or nobody can read it, ever
                file.at = found.size if found.over and os.path.lexists(found.path) else before
            if file.at == before:
                continue
            if file.at < found.size:
                self._found.append(found)
            parts.append(lines)
            size += len(lines)
            states[found.source, found.name] = file.state()
        return PointBatch(b"".join(parts), states) if states else None

    def confirm(self, batch: PointBatch, counts: dict[str, int]) -> None:
        """Remember that a batch is over; `counts`: what became of its points. Raises OSError, and remembers it yet."""
        for (source, name), state in batch.states.items():
            self._confirmed.setdefault(source, {})[name] = state
        self.count(counts)
        self.save()

    def count(self, counts: dict[str, int]) -> None:
        """Add to the counts."""
        for what, number in counts.items():
            self.counts[what] += number

    def save(self) -> None:
        """Write down what was confirmed, durably. Raises OSError."""
        told = {"counts": self.counts, "files": self._confirmed}
        write_atomically(
            f"{self._path}/offsets.json", json.dumps(told, separators=(",", ":")).encode(), mode=0o600, durable=True
        )

    # -- what is removed ----------------------------------------------------------------------------------------------

    def make_room(self, most: int) -> bool:
        """Remove what is oldest while more than `most` bytes lie here; say whether anything was dropped."""
        dropped = False
        while self._held > most and (oldest := min(self._over(), default=None)) is not None:
            self._drop(oldest[1])
            self.look()
            dropped = True
        return dropped

    def _over(self) -> Iterator[tuple[float, str]]:
        paths = [f"{self._path}/kept/{name}" for name in list_names(f"{self._path}/kept")]
        paths += [f"{self._path}/points/{number}" for number in list_segments(self._path)[:-1]]
        for path in paths:
            with contextlib.suppress(OSError):
                yield os.stat(path).st_mtime, path

    def _drop(self, path: str) -> None:
        below = path.removeprefix(f"{self._path}/")
        kind, _, name = below.partition("/")
        source = name if kind == "kept" else POINTS
        files = [(one, f"{path}/{one}") for one in list_names(path)] if source else [(name, path)]
        for one, at in files:
            self.counts["dropped"] += _lines(at, self._confirmed.get(source, {}).get(one, {}).get("at", 0))
        remove_below(self._path, below)
        if source:
            remove_below(self._path, f"sources/{source}")
        else:
            self._forget(POINTS, name)

    def _forget(self, source: str, name: str | None = None) -> None:
        if name is None:
            self._sources.pop(source, None)
            self._confirmed.pop(source, None)
        else:
            self._confirmed.get(source, {}).pop(name, None)
        for key in [key for key in self._files if key[0] == source and name in (None, key[1])]:
            del self._files[key]


def _list_sizes(directory: str) -> dict[str, int]:
    """Return name to size of what is in a directory that a job can replace; 0 for what is no regular file."""
    sizes = {}
    with contextlib.suppress(OSError), HeldDirectory(directory) as held, os.scandir(held.fd) as found:
        for entry in found:
            if not entry.name.startswith("."):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    sizes[entry.name] = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return sizes


def _lines(path: str, at: int) -> int:
    """Count the lines of a file from the offset `at` on."""
    count = 0
    with contextlib.suppress(OSError):
        fd = open_regular(path, os.O_RDONLY)
        try:
            while data := os.pread(fd, _PIECE_BYTES, at):
                count += data.count(b"\n")
                at += len(data)
        finally:
            os.close(fd)
    return count
