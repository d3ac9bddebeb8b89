"""Writing files whole: beside their place, then renamed, so that no reader sees half of one."""

from __future__ import annotations

import contextlib
import os
import secrets

from monkey.removal import remove_file

#: How the names end of files that are being written; they begin with a dot.
SUFFIX = ".part"


def write_atomically(
    path: str | os.PathLike[str], data: bytes | str, *, mode: int = 0o666, durable: bool = False
) -> None:
    """Replace the file at `path`, or create it: a reader sees the old bytes or the new ones, also after a crash.

    `data`: text is written as UTF-8. `mode`: permissions, less the umask. `durable`: the bytes are on disk when this
    returns; the name may still be the old one after a loss of power. Raises OSError; then the old file is unchanged.
    """
    directory, name = os.path.split(path)
    aside = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(6)}{SUFFIX}")  # noqa: PTH118
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(aside, flags, mode), "wb") as file:  # noqa: PTH123
            file.write(data.encode() if isinstance(data, str) else data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(aside, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            remove_file(aside)
        raise


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data` to a descriptor: one call of the system may write less. Raises OSError."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])
