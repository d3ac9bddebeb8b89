"""Output that a runner of CI reads: all of it is text there, and none of it is a command.

Stopping commands by a token would not do. GitLab does not have that, and a pipe to another program would get the lines
with the token. A process that is killed would leave the commands stopped.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from typing import TYPE_CHECKING, TextIO

from monkey.atomic_write import write_all

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: What begins a command. GitHub, Gitea, Forgejo (actions/runner, ActionCommand.cs; nektos/act, command.go): `##[`
#: anywhere, `::` behind blanks at the beginning of a line; a lone \r ends a line, too. GitLab (lib/gitlab/regex.rb,
#: logs_section_suffix_regex): what ends the marker of a section.
_COMMAND = re.compile(rb"##\[|(?<=[\r\n])[^!-~\r\n\x1b]*::|\r\x1b\[0K")
#: Bytes in which no reader sees a letter, at the beginning of a line.
_BLANKS = re.compile(rb"(?<=[\r\n])[^!-~\r\n\x1b]+")
#: Bytes at the end of what was written in which a command may have begun: the longest one's, but the last.
_BEGUN = 4


def make_output_inert() -> None:
    """Make all that this process prints text to CI's runner. In a file, which no runner reads, it stays as it is."""
    sys.stdout = _make_inert(sys.stdout)
    sys.stderr = _make_inert(sys.stderr)


def _make_inert(stream: TextIO) -> TextIO:
    # Without a descriptor, Python has no stream at all.
    if not stream or stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    output = InertOutput(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(output, stream.encoding, "backslashreplace", line_buffering=bool(stream.line_buffering))


class InertOutput(io.FileIO):
    """A descriptor to which no beginning of a command is written: a blank stands before its last byte."""

    #: The end of what was written, without blanks.
    _before = b"\n"

    def write(self, data: ReadableBuffer) -> int:
        """Write all of it at once."""
        added = bytes(data)
        text = self._before + added
        inert = _COMMAND.sub(lambda found: found[0][:-1] + b" " + found[0][-1:], text)
        write_all(self.fileno(), inert[len(self._before) :])
        line = inert[max(inert.rfind(b"\n"), inert.rfind(b"\r"), 0) :]
        self._before = _BLANKS.sub(b"", line)[-_BEGUN:]
        return len(added)
