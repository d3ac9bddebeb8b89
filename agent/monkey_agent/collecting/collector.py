"""The collector: a process beside a job that reads the metrics which it writes in other forms, as they come.

`python -m monkey_agent.collecting.collector ORDER`: ORDER is JSON, see `Collector`. Each line on stdin asks for a
look, and is answered by a line when what was found is in the metrics file. At the end of stdin it looks once more.

The metrics file is all that it knows of earlier lives: values that are there are not written again.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from monkey.untrusted_files import open_regular
from monkey_agent.collecting.csv_table import CsvTable
from monkey_agent.collecting.event_file import DamagedEvents, EventReader
from monkey_agent.collecting.log_patterns import LogPatterns
from monkey_agent.collecting.source_files import FoundFile, SourceFiles
from monkey_agent.collecting.source_record import SourceRecord, name_split_metric

#: The file in $MONKEY_METRICS_DIR.
COLLECTED = "collected.jsonl"
#: Names of metrics at most: a table may have any number of columns.
_MOST_NAMES = 10_000
#: Characters of a metric's name.
_LONGEST_NAME = 200
_PIECE = 1 << 20


class Collector:
    """Looks at the sources of one attempt, and appends what is new to a metrics file."""

    def __init__(self, roots: list[str], log: str, metrics: str, sources: Iterable[Mapping[str, str]]) -> None:
        """Read files below the directories `roots`, and the job's `log`; write into the directory `metrics`.

        Raises OSError where that cannot be written.
        """
        sources = list(sources)
        patterns = [source["stdout"] for source in sources if "stdout" in source]
        self._events = [
            SourceFiles(roots, each["tensorboard"], events=True) for each in sources if "tensorboard" in each
        ]
        self._tables = [SourceFiles(roots, source["csv"]) for source in sources if "csv" in source]
        self._log = FoundFile(*_split(log), LogPatterns(patterns)) if patterns else None
        self._out = _Output(f"{metrics}/{COLLECTED}")
        self._noted: set[str] = set()

    def look(self, *, over: bool = False) -> list[str]:
        """Write what is new; `over`: the job has ended. Returns what is to be said in the job's log, each once."""
        notes: list[str] = []
        for files in self._events:
            for file in files.look(EventReader, over=over):
                notes += self._read_events(file)
        for files in self._tables:
            for file in files.look(CsvTable, over=over):
                source = f"csv {file.name}"
                for data in file.read(_PIECE):
                    self._write(source, file.reader.feed(data), again=True)
                if over:
                    self._write(source, file.reader.feed(b"", over=True), again=True)
        if self._log is not None:
            for data in self._log.read(_PIECE):
                self._write("stdout", self._log.reader.feed(data))
            if over:
                self._write("stdout", self._log.reader.feed(b"", over=True))
            notes += self._log.reader.notes
        self._out.flush()
        new = [note for note in notes if note not in self._noted]
        self._noted.update(new)
        return new

    def close(self) -> None:
        """Let another collector have the file."""
        self._out.close()

    def _read_events(self, file: FoundFile) -> list[str]:
        try:
            for data in file.read(_PIECE):
                scalars = file.reader.feed(data)
                found = (SourceRecord({_name(file.path, one.tag): one.value}, one.step, one.at) for one in scalars)
                self._write("tensorboard", found)
        except DamagedEvents as exc:
            file.given_up = True
            return [f"{file.path!r:.200} is read no further: {exc}"]
        return [f"{file.path!r:.200} has damaged records, which are left out"] if file.reader.damaged else []

    def _write(self, source: str, records: Iterable[SourceRecord], *, again: bool = False) -> None:
        for record in records:
            self._out.add(source, record, again=again)


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _name(path: str, tag: str) -> str:
    """Return the metric of a tag: with the last directory where that is what tells it from another's."""
    above, _, last = path.rpartition("/")[0].rpartition("/")
    # Of add_scalars, which gives each scalar a directory: "Loss_train_NAME" is PyTorch's, "Loss/train/NAME" another's.
    if f"/{above}".endswith(f"/{tag}"):
        return f"{tag}/{last}"
    main = tag.replace("/", "_") + "_"
    if last.startswith(main) and len(last) > len(main):
        return f"{tag}/{last.removeprefix(main)}"
    return name_split_metric(last, tag)


class _Output:
    """The metrics file, and what it has."""

    def __init__(self, path: str) -> None:
        self._fd = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        fcntl.flock(self._fd, fcntl.LOCK_EX)  # until an earlier collector has gone
        self._lines: list[str] = []
        #: What is there of each metric and step; and of records without a step, the last one of each source.
        self._seen: dict[tuple[str, int], float] = {}
        self._numbers: dict[str, int] = {}
        self._names: set[str] = set()
        self._recall()
        self._restarted = bool(self._names)

    def _recall(self) -> None:
        with os.fdopen(os.dup(self._fd), "rb") as file:
            last = b"\n"
            for last in file:
                self._remember(last)
        if not last.endswith(b"\n"):
            os.write(self._fd, b"\n")

    def _remember(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            metrics, step = record["m"], record["step"]
            if step is None:
                source, number = record["from"]
                self._numbers[source] = max(number, self._numbers.get(source, 0))
            for name, value in metrics.items():
                self._names.add(name)
                if step is not None:
                    self._seen[name, step] = float(value)
        except (ValueError, LookupError, TypeError, AttributeError):
            return  # cut short by a kill

    def add(self, source: str, record: SourceRecord, *, again: bool) -> None:
        """Add the values of a record that are new; `again`: the source may be read again from its beginning."""
        values = {name: value for name, value in record.values.items() if self._admit(name)}
        step = record.step
        if step is None:
            if record.number <= self._numbers.get(source, 0):
                return
            self._numbers[source] = record.number
        elif again or self._restarted:
            values = {name: value for name, value in values.items() if self._is_new(name, step, value)}
        if values:
            self._lines.append(_encode(values, step, record.at, [source, record.number]))

    def _admit(self, name: str) -> bool:
        if name not in self._names:
            if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or len(self._names) >= _MOST_NAMES:
                return False
            self._names.add(name)
        return True

    def _is_new(self, name: str, step: int, value: float) -> bool:
        known = self._seen.get((name, step))
        if known is not None and (known == value or (known != known and value != value)):
            return False
        self._seen[name, step] = value
        return True

    def close(self) -> None:
        """Let another have the file."""
        os.close(self._fd)

    def flush(self) -> None:
        """Write what was added, in one write."""
        data = "".join(self._lines).encode()
        self._lines.clear()
        while data:
            data = data[os.write(self._fd, data) :]


def _encode(values: Mapping[str, float], step: int | None, at: float | None, source: list[Any]) -> str:
    spelled = {name: value if value - value == 0 else str(value) for name, value in values.items()}
    record: dict[str, Any] = {"m": spelled, "step": step, "t": time.time() if at is None else at}
    if step is None:
        record["from"] = source
    return json.dumps(record) + "\n"


def run_collector() -> None:
    """Collect as the order in the first argument says, until stdin ends."""
    order = json.loads(sys.argv[1])
    collector = Collector(order["roots"], order["log"], order["metrics"], order["sources"])
    for _ in sys.stdin.buffer:
        print(json.dumps(collector.look()), flush=True)
    print(json.dumps(collector.look(over=True)), flush=True)


if __name__ == "__main__":
    run_collector()
