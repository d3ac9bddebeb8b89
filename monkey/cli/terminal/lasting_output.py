"""Output whose reader may leave, as `head` does, without ending what is done meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

from monkey.process_exit import drop_output


class LastingOutput:
    """A stream of text; once its reader has left, the rest is dropped."""

    #: Whether the reader has left.
    unread = False

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Be the stream in all else."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text at once, if anyone reads it."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            self.unread = True
            drop_output(self._stream.fileno())
        return len(text)


@contextmanager
def ignore_lost_readers() -> Iterator[None]:
    """Let nothing that is done within be ended by a reader of stdout or stderr who leaves."""
    out, err = (cast("TextIO", LastingOutput(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def is_output_read() -> bool:
    """Return whether stdout has its reader, as far as the last text showed."""
    return not getattr(sys.stdout, "unread", False)
