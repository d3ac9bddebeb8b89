"""Writing files whole: beside their place, then renamed, so that no reader sees half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat

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
    aside = _name_aside(path)
    try:
        _write_aside(aside, data, mode, durable)
        os.replace(aside, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            remove_file(aside)
        raise


def write_named_file(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write the file that a user named for output: whole, as `write_atomically` does, where it is a file or none.

    A device or a pipe, such as /dev/stdout, is written to. A rename would put a file in its place: root would
    lose /dev/null. What a link names is replaced, and the link stays. Raises OSError.
    """
    try:
        plain = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
    except FileNotFoundError:
        plain = True
    place = os.path.realpath(path)
    if plain and not place.startswith("/proc/"):
        write_atomically(place, data)
        return
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(data.encode() if isinstance(data, str) else data)


def create_atomically(path: str | os.PathLike[str], data: bytes | str, *, mode: int = 0o666) -> bool:
    """Create the file at `path` whole, unless something is there; return whether this call created it.

    Of several that try at once, one creates it. Bytes and name are on disk when this returns True. Raises OSError.
    """
    aside = _name_aside(path)
    try:
        _write_aside(aside, data, mode, durable=True)
        try:
            os.link(aside, path)
        except FileExistsError:
            return False
        _sync_directory(os.path.dirname(path))  # noqa: PTH120
        return True
    finally:
        with contextlib.suppress(OSError):
            remove_file(aside)


def _name_aside(path: str | os.PathLike[str]) -> str:
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name[:100]}.{secrets.token_hex(6)}{SUFFIX}")  # noqa: PTH118


def _write_aside(aside: str, data: bytes | str, mode: int, durable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(aside, flags, mode), "wb") as file:  # noqa: PTH123
        file.write(data.encode() if isinstance(data, str) else data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _sync_directory(directory: str) -> None:
    fd = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of `data` to a descriptor: one call of the system may write less. Raises OSError."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])
