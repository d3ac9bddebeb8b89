"""Watching on a screen: redrawn in place on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.cli.render.progress_lines import BestJob, draw_progress, format_progress
from monkey.cli.terminal.text import detect_terminal
from monkey.protocol.status.store_snapshot import StoreSnapshot

#: Seconds between plain lines: nobody scrolls through a CI log of thousands.
PLAIN_EVERY = 10.0
#: Seconds until the first: a short sweep needs none.
PLAIN_FIRST = 5.0
#: Seconds between redraws; faster than eyes, slower than jobs.
REDRAW_EVERY = 0.2
#: Seconds between looks for the best job, which reads all of them.
BEST_EVERY = 1.0

#: Finds the best job of a sweep, None where no job has the metric.
FindBest = Callable[[SweepProgress], BestJob | None]


class LiveView:
    """Shows progress on a stream until it is closed."""

    def __init__(self, find_best: FindBest, stream: TextIO | None = None) -> None:
        """Show on `stream` (default: stdout)."""
        self._stream = stream or sys.stdout
        self._find_best = find_best
        self._best: Mapping[str, BestJob] = {}
        self._best_at = self._last = float("-inf")
        self._plain_at = time.monotonic() + PLAIN_FIRST
        self._said: list[str] = []
        self._live: Any = None

    def __enter__(self) -> LiveView:
        """Take the terminal's lower part, where there is a terminal that can redraw."""
        if self._stream.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.live import Live as RichLive

            console = Console(file=self._stream, force_terminal=True, highlight=False, markup=False)
            self._live = RichLive(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Give the terminal back as it was."""
        if self._live is not None:
            self._live.__exit__(*exc)

    def show(self, snapshot: StoreSnapshot | None, progress: Sequence[SweepProgress], trouble: str) -> None:
        """Show one look; costs nothing when it comes too soon after the last."""
        now = time.monotonic()
        if self._live is not None and now - self._last >= REDRAW_EVERY:
            self._last = now
            self._redraw(snapshot, progress, trouble)
        elif self._live is None and now >= self._plain_at:
            self._plain_at = now + PLAIN_EVERY
            self._say(snapshot, progress, trouble)

    def _bests(self, progress: Sequence[SweepProgress]) -> Mapping[str, BestJob]:
        began = time.monotonic()
        # The pause grows with the cost: on a hundred thousand jobs the view must not eat the machine.
        if began >= self._best_at:
            found = {one.name: self._find_best(one) for one in progress}
            self._best = {name: best for name, best in found.items() if best is not None}
            self._best_at = began + BEST_EVERY + 20 * (time.monotonic() - began)
        return self._best

    def _redraw(self, snapshot: StoreSnapshot | None, progress: Sequence[SweepProgress], trouble: str) -> None:
        from rich.text import Text

        lines = draw_progress(snapshot, progress, self._bests(progress), trouble, detect_terminal(self._stream))
        self._live.update(Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def _say(self, snapshot: StoreSnapshot | None, progress: Sequence[SweepProgress], trouble: str) -> None:
        lines = format_progress(snapshot, progress, self._bests(progress), trouble)
        if lines and lines != self._said:
            self._said = lines
            print("\n".join(lines), file=self._stream, flush=True)
