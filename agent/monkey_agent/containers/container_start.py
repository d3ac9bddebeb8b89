"""Whether a container ran its job's command, and what its runtime said where it did not.

No exit code tells that: podman also ends with 126 or 127 where the machine is at fault, and a command may end with 125.
So the agent first writes a secret number into a file of the workspace. The container's first process empties the file,
and runs the command only then. While the number is there, the command never ran.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from monkey.atomic_write import write_all
from monkey.untrusted_files import open_regular
from monkey_agent.supervisor.process import ProcessExit

#: Kind of runtime to how the line of its error begins. docker says more after it, and podman more before it.
_PREFIXES = {"podman": "Error: ", "docker": "docker: ", "apptainer": "FATAL:", "charliecloud": "ch-run["}
#: Last lines of a log among which that line stands, and characters of it that a reason quotes.
_LOOKED_AT, _QUOTED = 8, 300
#: The image's own shell, in a runtime's words. A shell of this machine would name a line of its script.
_SHELL = r"/bin/sh(?!: (line )?\d)"
#: What runtimes say where it is missing; and where that, or a place for a mount, is not as it must be.
_MISSING = re.compile(rf"{_SHELL}.*(no such file|not found)", re.IGNORECASE)
_OF_IMAGE = re.compile(
    rf"{_MISSING.pattern}|{_SHELL}.*permission denied|exec format error|open executable"
    r"|can't bind: destination not found|can't open: /ch/|to rootfs at .*not a directory",
    re.IGNORECASE,
)

#: Bytes of a mark that are read: more than one has.
_MARK_BYTES = 100
#: What podman says of an image whose files are of more users than the agent's user may have in containers.
_FEW_IDS = "insufficient UIDs or GIDs"


def write_start_mark(path: str, number: str) -> None:
    """Write the number of a container that is to be started; nothing may be at `path`. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, number.encode())
    finally:
        os.close(fd)


def has_begun(path: str, number: str) -> bool:
    """Return whether the container with this number may have run its command: whether its mark is not as written.

    A job can do anything to the file, but not bring the number back.
    """
    return _read_mark(path) != number.encode()


def is_mark_whole(path: str) -> bool:
    """Return whether a mark, whose number is not known any more, looks like that of a container that did not begin."""
    return bool(_read_mark(path))


def _read_mark(path: str) -> bytes:
    """Return what is in a mark; b"" for one that was removed, or replaced by anything but a file."""
    try:
        fd = open_regular(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, _MARK_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)


def is_image_at_fault(said: Sequence[str]) -> bool:
    """Return whether a runtime said of a container that never ran that its image is why: it would be so anywhere."""
    return any(_OF_IMAGE.search(line) for line in said[-_LOOKED_AT:])


def explain_start_failure(kind: str, how: ProcessExit, said: Sequence[str], why: str = "") -> str:
    """Return why a runtime started no container, in its own words.

    `said`: the lines of the attempt's log; `why`: why the agent ended it, "" if it ended by itself.
    """
    if how.kind == "failed":
        return f"{kind} could not be started: {os.strerror(how.code) if how.code else how.file}"
    if any(_MISSING.search(line) for line in said[-_LOOKED_AT:]):
        return f"{kind} could not start the container: the image has no /bin/sh (hint: install a shell in it)"
    ended = why or (f"exit code {how.code}" if how.code >= 0 else f"killed by signal {-how.code}")
    return f"{kind} could not start the container ({ended}): {quote_runtime(kind, said)}"


def explain_missing_ids(kind: str, said: Sequence[str]) -> str:
    """Return why a pull failed, if the agent's user has too few ids for containers; "" if that is not why."""
    return quote_runtime(kind, said) if any(_FEW_IDS in line for line in said) else ""


def quote_runtime(kind: str, said: Sequence[str]) -> str:
    """Return the line of a runtime's error; if there is none, the last line."""
    lines = [line.strip() for line in said[-_LOOKED_AT:] if line.strip() and not line.startswith(("monkey: ", "$ "))]
    line = next((line for line in reversed(lines) if line.startswith(_PREFIXES[kind])), lines[-1] if lines else "")
    if len(line) > _QUOTED:
        line = f"{line[: _QUOTED // 4]}…{line[1 - _QUOTED + _QUOTED // 4 :]}"
    return line or "it said nothing"
