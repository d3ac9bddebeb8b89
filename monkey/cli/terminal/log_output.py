"""Where logs go: a pipe takes them as they are, a terminal and CI's runner only what cannot steer it."""

from __future__ import annotations

import sys
from typing import BinaryIO

from monkey.cli.terminal.runner_output import InertOutput
from monkey.cli.terminal.text import make_printable

#: Bytes of a line that are waited for; a longer one is broken.
_MAX_LINE_BYTES = 1_000_000
#: Characters of a job's id in front of its lines.
SHOWN = 8


def open_log_output(*, prefixed: bool) -> LogOutput:
    """Return the output of logs to stdout; `prefixed`: each line behind its job."""
    read_as_text = sys.stdout.isatty() or isinstance(sys.stdout.buffer, InertOutput)
    return LogOutput(sys.stdout.buffer, prefixed=prefixed, raw=not read_as_text)


class LogOutput:
    """Writes what jobs wrote, in whole lines where that matters: not half an escape sequence, not two jobs in one."""

    def __init__(self, out: BinaryIO, *, prefixed: bool, raw: bool) -> None:
        """Write to `out`; `prefixed`: each line behind its job; `raw`: byte for byte."""
        self._out, self._prefixed, self._raw = out, prefixed, raw
        self._rest: dict[str, bytes] = {}
        self.anything = False

    def write(self, job: str, data: bytes) -> None:
        """Take what came of the job's log."""
        self.anything = self.anything or bool(data)
        if self._raw and not self._prefixed:
            self._out.write(data)
        else:
            whole, newline, rest = (self._rest.get(job, b"") + data).rpartition(b"\n")
            if len(rest) > _MAX_LINE_BYTES:
                whole, newline, rest = whole + newline + rest, b"\n", b""
            self._rest[job] = rest
            self._lines(job, whole + newline)
        self._out.flush()

    def close(self) -> None:
        """Write what was left without an end of line."""
        for job, rest in self._rest.items():
            if rest:
                self._lines(job, rest + b"\n")
        self._rest.clear()
        self._out.flush()

    def _lines(self, job: str, data: bytes) -> None:
        if not self._raw:
            data = make_printable(data.decode(errors="replace")).encode()
        if self._prefixed:
            front = f"{job[:SHOWN]} │ ".encode()
            data = b"".join(front + line for line in data.splitlines(keepends=True))
        self._out.write(data)
