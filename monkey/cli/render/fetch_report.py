"""How a download shows while it runs, and what is said of it at the end."""

from __future__ import annotations

import os
import sys
from typing import Any

from monkey.cli.terminal.text import flatten_text, format_plural
from monkey.plan.sizes import format_size
from monkey.transfer.download import DownloadResult

#: Files that are named where some did not come.
NAMED = 5


class FetchBar:
    """A progress bar on stderr, where that is a terminal."""

    def __init__(self, files: int) -> None:
        """Show progress towards so many files."""
        self._files = files
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> FetchBar:
        """Begin to show."""
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            columns = (BarColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True, markup=False), transient=True)
            self._bar.__enter__()
            self._task = self._bar.add_task("", total=self._files)
        return self

    def __exit__(self, *exc: Any) -> None:
        """Give the terminal back as it was."""
        if self._bar is not None:
            self._bar.__exit__(*exc)

    def show(self, brought: DownloadResult) -> None:
        """Show how far it is."""
        if self._bar is not None:
            text = f"{brought.done:,} of {format_plural(self._files, 'file')}, {format_size(brought.size)}"
            self._bar.update(self._task, completed=brought.done, description=text)


def format_fetched(brought: DownloadResult, jobs: int, directory: str) -> list[str]:
    """Say what came."""
    files = f"{format_plural(brought.fetched, 'file')} ({format_size(brought.size)}) of {format_plural(jobs, 'job')}"
    kept = f"; {format_plural(brought.kept, 'file')} there already" if brought.kept else ""
    return [f"Fetched {files} into {flatten_text(directory)}{kept}."]


def format_unfetched(brought: DownloadResult) -> str:
    """Say what did not come, and why."""
    some = [f"{flatten_text(path)}: {why}" for path, why in list(brought.failed.items())[:NAMED]]
    more = [f"and {len(brought.failed) - NAMED} more"] if len(brought.failed) > NAMED else []
    return "\n  ".join([f"{format_plural(len(brought.failed), 'file')} could not be fetched:", *some, *more])
