"""The watch over a store on a network mount: it reports a server that does not answer.

While a server is away, a `hard` mount holds every request in the kernel, and the thread that made it. Such a thread
runs no signal handler: Ctrl-C did nothing. So one thread asks the server now and then. Another thread, which asks
nothing and holds no lock, measures how long the answer takes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

#: Seconds without an answer after which a store is reported.
SILENT_SECONDS = 30.0
#: Seconds between questions to the server.
_ASK_SECONDS = 5.0
#: Seconds between looks at how long the answer takes.
_LOOK_SECONDS = 0.5
#: Seconds without an answer after which Ctrl-C that no thread takes ends the process.
_STUCK_SECONDS = 2.0
#: What a shell calls the end by SIGINT.
_INTERRUPTED = 130


def _write_stderr(line: str) -> None:
    """Write one line to stderr past its buffer, whose lock another thread may hold."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(errors="backslashreplace"))


class AnswerWatch:
    """Two threads, from `start` to `close`."""

    def __init__(
        self,
        place: str,
        mount: str,
        ask: Callable[[str], object] = os.statvfs,
        say: Callable[[str], None] = _write_stderr,
        silent: float = SILENT_SECONDS,
    ) -> None:
        """Watch the store in the directory `place`; `mount` describes its mount: "NFS mount, server filer".

        `ask` puts a question to the server that no cache answers, and `say` gets each line. `silent`: seconds.
        """
        self._place, self._mount, self._ask, self._say, self._silent = place, mount, ask, say, silent
        self._closed = threading.Event()
        #: When the question was put that is not answered yet (time.monotonic); None for none.
        self._asked: float | None = None
        self._said = False
        #: Whether the last look saw a signal that no thread takes.
        self._pending = False

    def start(self) -> None:
        """Start to watch."""
        threading.Thread(target=self._run_questions, name="monkey-ask", daemon=True).start()
        threading.Thread(target=self._run_looks, name="monkey-watch", daemon=True).start()

    def close(self) -> None:
        """Stop to watch. Nothing is waited for: a question may be stuck in the kernel."""
        self._closed.set()

    @property
    def is_silent(self) -> bool:
        """Tell whether the server has owed an answer for longer than a moment."""
        return self._count_seconds() > _STUCK_SECONDS

    def _count_seconds(self) -> float:
        asked = self._asked
        return 0.0 if asked is None else time.monotonic() - asked

    def _run_questions(self) -> None:
        while not self._closed.is_set():
            self._asked = time.monotonic()
            with contextlib.suppress(OSError):
                self._ask(self._place)
            self._asked = None
            self._closed.wait(_ASK_SECONDS)

    def _run_looks(self) -> None:
        while not self._closed.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        seconds = self._count_seconds()
        if seconds >= self._silent and not self._said:
            self._said = True
            self._say(self._describe(seconds))
        elif self._said and not seconds:
            self._said = False
            self._say(f"the store at {self._place} answers again")
        pending = seconds > _STUCK_SECONDS and is_signal_pending(signal.SIGINT)
        if pending and self._pending:
            self._say(f"interrupted; {self._describe(seconds)}")
            os._exit(_INTERRUPTED)
        self._pending = pending

    def _describe(self, seconds: float) -> str:
        return f"the store at {self._place} has not answered for {seconds:.0f} s ({self._mount})"


def is_signal_pending(number: signal.Signals, status: Path = Path("/proc/self/status")) -> bool:
    """Tell whether a signal to this process waits for a thread to take it, by the kernel's list; False without one."""
    try:
        text = status.read_text()
    except OSError:
        return False
    masks = dict(line.split(":", 1) for line in text.splitlines() if line.startswith(("ShdPnd:", "SigBlk:")))
    waiting = int(masks.get("ShdPnd", "0"), 16) & ~int(masks.get("SigBlk", "0"), 16)
    return bool(waiting >> (number - 1) & 1)
