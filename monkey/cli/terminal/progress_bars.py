"""Bytes on their way: a bar that is redrawn on a terminal, a plain line now and then elsewhere; on stderr."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

from monkey.plan.text.short_texts import cut_text

#: Seconds between redraws, and between plain lines; what is over sooner needs neither.
REDRAW_EVERY, PLAIN_EVERY = 0.2, 10.0
#: Columns of a bar.
BAR = 24


class ProgressBars:
    """Shows one transfer after the other; any thread may report progress."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Show on `stream` (default: stderr)."""
        self._stream = stream or sys.stderr
        self._redraws = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._every = REDRAW_EVERY if self._redraws else PLAIN_EVERY
        self._lock = threading.Lock()
        self._drawn = False
        self._begun = self._next = 0.0
        self._what, self._total, self._size = "", 0, 0

    def __enter__(self) -> ProgressBars:
        """Return the bars."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """Leave nothing half drawn."""
        self._clear()

    def begin(self, what: str, size: int, objects: int) -> ProgressBars:
        """Begin a transfer of `size` bytes (0: not known); call what is returned with each step."""
        with self._lock:
            self._clear()
            self._what, self._total, self._size = what, size, 0
            self._begun = time.monotonic()
            self._next = self._begun + self._every
        return self

    def __call__(self, objects: int, size: int) -> None:
        """Take so many more objects and bytes."""
        with self._lock:
            self._size += size
            now = time.monotonic()
            if self._total and self._size >= self._total:
                self._clear()
            elif now >= self._next:
                self._next = now + self._every
                self._show(self._text(now))

    def _text(self, now: float) -> str:
        from monkey.plan.sizes import format_size

        rate = format_size(self._size / max(now - self._begun, 1e-9)) + "/s"
        if not self._total:
            return f"{self._what}: {format_size(self._size)}, {rate}"
        share = self._size / self._total
        told = f"{format_size(self._size)} of {format_size(self._total)}, {rate}"
        if not self._redraws:
            return f"{self._what}: {told}"
        full = int(share * BAR)
        return f"{self._what} {'█' * full}{'░' * (BAR - full)} {share:4.0%}  {told}"

    def _show(self, text: str) -> None:
        from monkey.cli.terminal.text import detect_terminal, make_printable

        if self._redraws:
            text = cut_text(make_printable(text), (detect_terminal(self._stream).width or 80) - 1)
            self._stream.write(f"\r\x1b[K{text}")
        else:
            self._stream.write(f"{make_printable(text)}\n")
        self._stream.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn and self._redraws:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._drawn = False
