# ruff: noqa: PTH104, PTH108
# Paths are plain strings here: pathlib costs as much as the system calls, and more to import.
"""Hashing small files, and copying them on the way: what a file costs here is paid a hundred thousand times.

This file is also a program (see `monkey.store.crew`): it imports nothing of ours, so that it starts in 10 ms.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import stat
import sys

TYPE_CHECKING = False  # not from typing: this must start fast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

#: Files of one request, and their bytes: a worker holds one file at a time, and tells of progress after each request.
LOT_FILES, LOT_BYTES = 256, 16 * 1024 * 1024

#: Bytes that a read or a write moves.
CHUNK = 1 << 20

#: What tells that a file is still the same: size, mtime, ctime (nanoseconds), inode.
Signature = tuple[int, int, int, int]

#: A file to take: its path, the signature it must have, its MD5 ("" where not known yet).
Task = tuple[str, Signature, str]

#: What became of it: its MD5 and the copy's path ("" for none); or "" and why not.
Taken = tuple[str, str]

#: What a worker is asked: see `answer`.
Request = tuple[str, "list[Any]", str]

#: Why a file could not be taken, beside what the system said: "system: NUMBER" is an errno.
CHANGED, SPECIAL = "changed", "special"

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in its place must not stop us
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class SystemRefused(Exception):
    """The place to copy to refuses; the errno is the argument."""


def signature(found: os.stat_result) -> Signature:
    """Return what changes whenever the file does, as far as its file system tells."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def read(task: Task) -> tuple[bytes, str]:
    """Return the file's bytes; or none, and why. Its content is compared by `take`."""
    path, known, md5 = task
    try:
        fd = os.open(path, _READ)
    except OSError as exc:
        return b"", f"system: {exc.errno}"
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return b"", SPECIAL
        # Where the content is known, a mere `touch` is forgiven.
        if signature(before) != known and (not md5 or before.st_size != known[0]):
            return b"", CHANGED
        data = os.read(fd, before.st_size + 1)
        while len(data) < before.st_size and (more := os.read(fd, before.st_size + 1 - len(data))):
            data += more
        if len(data) != before.st_size or (not md5 and signature(os.fstat(fd)) != known):
            return b"", CHANGED
    except OSError as exc:
        return b"", f"system: {exc.errno}"
    finally:
        os.close(fd)
    return data, ""


def take(task: Task, aside: str) -> Taken:
    """Read a file, hash it, and copy what was read to the new file `aside` ("": do not).

    Raises SystemRefused where the copy cannot be written.
    """
    data, why = read(task)
    if why:
        return "", why
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if task[2] and found != task[2]:
        return "", CHANGED
    if aside:
        _write(aside, data)
    return found, aside


def _write(aside: str, data: bytes) -> None:
    try:
        fd = os.open(aside, _CREATE, 0o666)
        try:
            written = os.write(fd, data)
            while written < len(data):
                written += os.write(fd, memoryview(data)[written:])
        except BaseException:
            os.unlink(aside)
            raise
        finally:
            os.close(fd)
    except OSError as exc:
        raise SystemRefused(exc.errno) from exc


def lots(tasks: Sequence[Task]) -> list[tuple[int, int]]:
    """Part the files into what is asked at once: from (inclusive), to (exclusive)."""
    found, first, size = [], 0, 0
    for at, task in enumerate(tasks):
        if at > first and (at - first >= LOT_FILES or size + task[1][0] > LOT_BYTES):
            found.append((first, at))
            first, size = at, 0
        size += task[1][0]
    return [*found, (first, len(tasks))] if tasks else []


def take_all(tasks: Sequence[Task], aside: str) -> list[Taken]:
    """Take files one after the other, to `aside` with a number behind it each; stops after the first that fails."""
    taken: list[Taken] = []
    for at, task in enumerate(tasks):
        try:
            taken.append(take(task, f"{aside}{at}" if aside else ""))
        except SystemRefused as exc:
            taken.append(("", f"store: {exc.args[0]}"))
        if not taken[-1][0]:
            break
    return taken


def name_all(renames: Sequence[tuple[str, str]]) -> int:
    """Rename files to names in directories that exist; returns the errno of the first that fails, 0 for none."""
    try:
        for aside, target in renames:
            os.rename(aside, target)
    except OSError as exc:
        return exc.errno or -1
    return 0


def answer(request: Request) -> list[Taken] | int:
    """Do what is asked: ("take", tasks, aside) or ("name", renames, "")."""
    what, items, aside = request
    return take_all(items, aside) if what == "take" else name_all(items)


def main() -> None:
    """Answer requests on stdin with answers on stdout, until stdin ends."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            request = marshal.load(requests)
        except EOFError:
            return
        # In one write: the reader is our parent, and may be gone.
        answers.write(marshal.dumps(answer(request)))
        answers.flush()


if __name__ == "__main__":
    main()
