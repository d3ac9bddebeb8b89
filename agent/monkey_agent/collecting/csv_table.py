"""CSV files as loggers write them: rows that are appended, or the whole file again with another head.

Loggers of Keras append rows with `epoch`; Lightning's have `epoch` and `step`, leave cells empty, and write the file
again when a metric is new.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from monkey_agent.collecting.source_record import SourceRecord, parse_number, parse_step

#: Columns that are a row's step, the first one that is there.
_STEPS = ("step", "global_step", "iteration", "iter", "epoch")
#: Columns of the head at most, and bytes of a line.
_MOST_COLUMNS, _MOST_LINE = 10_000, 1 << 20


class CsvTable:
    """The reader of one CSV file, fed as it grows; for a file that was written again, a new one begins."""

    def __init__(self) -> None:
        """Expect the head first."""
        self._rest = b""
        self._head: list[str] = []
        self._delimiter = ","
        self._step: int | None = None
        self._rows = 0

    def feed(self, data: bytes, *, over: bool = False) -> Iterator[SourceRecord]:
        """Yield the rows that are whole by now; `over`: the last line may lack its newline."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MOST_LINE:
            self._rest = b""
        elif over and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            text = line.decode("utf-8", "replace").lstrip("\ufeff").rstrip("\r")
            if text and not text.startswith("#") and len(line) <= _MOST_LINE:
                yield from self._read(text)

    def _read(self, text: str) -> Iterator[SourceRecord]:
        if not self._head:
            self._delimiter = max(",;\t", key=text.count)
            self._head = [name.strip() for name in self._split(text)][:_MOST_COLUMNS]
            known = [name.lower() for name in self._head]
            self._step = next((known.index(name) for name in _STEPS if name in known), None)
            return
        cells = self._split(text)
        if cells[: len(self._head)] == self._head:  # appended by a process that began again
            return
        step = parse_step(cells[self._step]) if self._step is not None and self._step < len(cells) else None
        found = {
            name: number
            for at, (name, cell) in enumerate(zip(self._head, cells, strict=False))
            if at != self._step and (number := parse_number(cell)) is not None
        }
        # Rows without a column for steps are numbered: each has a place of its own.
        step = self._rows if self._step is None else step
        self._rows += 1
        if found:
            yield SourceRecord(found, step, None, self._rows)

    def _split(self, text: str) -> Sequence[str]:
        try:
            return next(csv.reader([text], delimiter=self._delimiter), [])
        except csv.Error:
            return []
