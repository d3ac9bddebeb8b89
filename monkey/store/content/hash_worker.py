# ruff: noqa: PTH116, PTH208
# Paths are plain strings here: pathlib costs as much as the system calls, and more to import.
"""Hashing small files, and copying them on the way: what a file costs here is paid a hundred thousand times.

This file is also a program (see `hash_workers.py`): it imports nothing of ours, so that it starts in 10 ms.
"""

from __future__ import annotations

import gc
import marshal
import os
import stat
import sys

TYPE_CHECKING = False  # not from typing: this must start fast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO, Any, NoReturn

#: Files of one request, and their bytes: a worker holds one file at a time, and tells of progress after each request.
LOT_FILES, LOT_BYTES = 256, 16 * 1024 * 1024

#: The argument with which a worker is started that will hash.
HASHES = "hashes"

#: Bytes that a read or a write moves.
CHUNK_BYTES = 1 << 20

#: What tells that a file is still the same: size, mtime, ctime (nanoseconds), inode.
Signature = tuple[int, int, int, int]

#: A file to take: its path, the signature it must have, its MD5 ("" where not known yet).
Task = tuple[str, Signature, str]

#: What became of it: its MD5 and ""; or "" and why not.
Taken = tuple[str, str]

#: What a worker is asked: see `answer_request`.
Request = tuple[str, "list[Any]", str, str]

#: Files below a directory (path below it, signature), names that are neither file nor directory, names that are not
#: ASCII, and what ended the walk early: a path and an errno.
Walked = tuple["list[tuple[str, Signature]]", "list[str]", "list[str]", "tuple[str, int] | None"]

#: Why a file could not be taken, beside what the system said: "system: NUMBER" is an errno.
CHANGED, SPECIAL = "changed", "special"

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in its place must not stop us
_SHARED = stat.S_IWGRP | stat.S_ISGID
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class SystemRefused(Exception):
    """The place to copy to refuses; the errno is the argument."""


def read_signature(found: os.stat_result) -> Signature:
    """Return what changes whenever the file does, as far as its file system tells."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def read_contents(task: Task) -> tuple[bytes, str]:
    """Return the file's bytes; or none, and why. Its content is compared by `take_file`."""
    path, known, md5 = task
    try:
        fd = os.open(path, _READ)
    except OSError as exc:
        return b"", f"system: {exc.errno}"
    try:
        data, trouble = _read(fd, known[0])
        # One look, afterwards: what is now as it was when it was looked at has not changed while it was read.
        found = os.fstat(fd)
    except OSError as exc:
        return b"", f"system: {exc.errno}"
    finally:
        os.close(fd)
    if not stat.S_ISREG(found.st_mode):
        return b"", SPECIAL
    if trouble:
        return b"", f"system: {trouble}"
    # Where the content is known, a mere `touch` is forgiven.
    if len(data) != known[0] or (not md5 and read_signature(found) != known):
        return b"", CHANGED
    return data, ""


def _read(fd: int, size: int) -> tuple[bytes, int]:
    """Return up to `size` bytes, and one more where there are more; and an errno, 0 for none."""
    try:
        data = os.read(fd, size + 1)
        while len(data) < size and (more := os.read(fd, size + 1 - len(data))):
            data += more
    except OSError as exc:
        return b"", exc.errno or -1
    return data, 0


def spell_place(root: str, directory: str) -> str:
    """Return how requests name a directory below a store's root: a path that shows where the root ends."""
    return f"{root}//{directory}"


def open_place(place: str) -> int:
    """Return a descriptor of such a directory, reached from the root through no link. Raises OSError."""
    root, _, directory = place.rpartition("//")
    at = os.open(root or "/", _DIRECTORY)
    for name in directory.split("/"):
        try:
            inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = inner
    return at


def take_file(task: Task, aside: int | None) -> Taken:
    """Read a file, hash it, and copy what was read into the directory `aside` (None: do not), as objects lie there.

    Raises SystemRefused where the copy cannot be written.
    """
    data, why = read_contents(task)
    if why:
        return "", why
    from hashlib import md5  # slow to import, and who only looks for objects never gets here

    found = md5(data, usedforsecurity=False).hexdigest()
    if task[2] and found != task[2]:
        return "", CHANGED
    if aside is not None:
        try:
            _write(aside, found[:2], found[2:], data)
        except OSError as exc:
            raise SystemRefused(exc.errno) from exc
    return found, ""


def _write(aside: int, directory: str, name: str, data: bytes) -> None:
    at = _open_made(directory, aside)
    try:
        fd = create_file(name, _CREATE, at)
    except FileExistsError:  # another file of the same bytes: who has started it ends it, or all is for nothing
        return
    finally:
        os.close(at)
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, memoryview(data)[written:])
    finally:
        os.close(fd)


def _open_made(name: str, at: int) -> int:
    """Return a descriptor of the directory `name` in the directory `at`, which is made where it is missing."""
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
    except FileNotFoundError:
        _make(name, at)
    return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)


def _make(name: str, at: int) -> None:
    try:
        make_directory(name, at)
    except FileExistsError:
        return


def make_directory(name: str, at: int) -> None:
    """Make a directory in the directory of a store with the descriptor `at`. Raises OSError.

    Where a group shares that one, it shares the new one, whatever the umask says of groups.
    """
    os.mkdir(name, dir_fd=at)
    if is_shared(os.fstat(at).st_mode):
        made = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        try:
            os.fchmod(made, stat.S_IMODE(os.fstat(made).st_mode) | stat.S_IRWXG | stat.S_ISGID)
        finally:
            os.close(made)


def create_file(name: str, flags: int, at: int) -> int:
    """Return a descriptor of a new file there; it is shared as a directory would be. Raises OSError."""
    fd = os.open(name, flags, 0o666, dir_fd=at)
    if is_shared(os.fstat(at).st_mode):
        os.fchmod(fd, stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRGRP | stat.S_IWGRP)
    return fd


def is_shared(mode: int) -> bool:
    """Say whether a group shares a directory of this mode: it may write, and what is made there gets its group.

    git's setting `core.sharedRepository` does the same for repositories.
    """
    return mode & _SHARED == _SHARED


def split_lots(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Part files of these sizes into what is asked at once: from (inclusive), to (exclusive)."""
    found, first, total = [], 0, 0
    for at, size in enumerate(sizes):
        if at > first and (at - first >= LOT_FILES or total + size > LOT_BYTES):
            found.append((first, at))
            first, total = at, 0
        total += size
    return [*found, (first, len(sizes))] if sizes else []


def take_all(tasks: Sequence[Task], aside: str) -> list[Taken]:
    """Take files one after the other, into the place `aside` ("": only hash them); stops after the first that fails."""
    taken: list[Taken] = []
    try:
        at = open_place(aside) if aside else None
    except OSError as exc:
        return [("", f"store: {exc.errno}")]
    try:
        for task in tasks:
            taken.append(take_file(task, at))
            if not taken[-1][0]:
                break
    except SystemRefused as exc:
        taken.append(("", f"store: {exc.args[0]}"))
    finally:
        if at is not None:
            os.close(at)
    return taken


def name_all(names: Sequence[str], aside: str, target: str) -> int:
    """Move these directories of files from `aside` to `target`, as a whole where nothing is there yet.

    Both are places, see `spell_place`. Returns the errno of the first move that fails, 0 for none.
    """
    opened: list[int] = []
    try:
        for place in (aside, target):
            opened.append(open_place(place))
        for name in names:
            try:
                os.rename(name, name, src_dir_fd=opened[0], dst_dir_fd=opened[1])
            except OSError:
                _merge(name, *opened)
    except OSError as exc:
        return exc.errno or -1
    finally:
        for fd in opened:
            os.close(fd)
    return 0


def _merge(name: str, aside: int, target: int) -> None:
    source = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=aside)
    try:
        into = _open_made(name, target)
        try:
            for each in os.listdir(source):
                os.rename(each, each, src_dir_fd=source, dst_dir_fd=into)
        finally:
            os.close(into)
    finally:
        os.close(source)


def measure_objects(oids: Sequence[str], root: str) -> list[int]:
    """Return the size of each object below `root`, -1 where there is none that can be looked at."""
    return [_size(f"{root}/{oid[:2]}/{oid[2:]}") for oid in oids]


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def walk_files(root: str) -> Walked:
    """Return what is below the directory `root`, its files sorted."""
    files, others, foreign, todo = list[tuple[str, Signature]](), list[str](), list[str](), [""]
    while todo:
        base = todo.pop()
        try:
            with os.scandir(f"{root}/{base}") as entries:
                for entry in entries:
                    name = base + entry.name
                    if not name.isascii():
                        foreign.append(name)
                    if entry.is_file(follow_symlinks=False):
                        files.append((name, read_signature(entry.stat(follow_symlinks=False))))
                    elif entry.is_dir(follow_symlinks=False):
                        todo.append(f"{name}/")
                    else:
                        others.append(name)
        except OSError as exc:
            return files, others, foreign, (exc.filename or f"{root}/{base}", exc.errno or -1)
    files.sort()
    return files, others, foreign, None


def answer_request(request: Request) -> Any:
    """Do what is asked.

    That is ("take", tasks, aside, ""), ("name", directories, aside, target), ("sizes", oids, "", root) or
    ("walk", [root], "", "").
    """
    what, items, aside, target = request
    if what == "take":
        return take_all(items, aside)
    if what == "walk":
        return walk_files(*items)
    return name_all(items, aside, target) if what == "name" else measure_objects(items, target)


def send_message(stream: IO[bytes], value: Any) -> None:
    """Write a request or an answer, and how long it is: to read it item by item takes ten times as long."""
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def receive_message(stream: IO[bytes]) -> Any:
    """Return what `send_message` wrote; raises EOFError at the end."""
    return marshal.loads(stream.read(int.from_bytes(stream.read(8), "big")))


def run_hash_worker() -> NoReturn:
    """Answer requests on stdin with answers on stdout, until stdin ends."""
    gc.disable()  # nothing here is in circles
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    if sys.argv[1:] == [HASHES]:
        _load()
    while True:
        try:
            request = receive_message(requests)
        except EOFError:
            os._exit(0)  # our parent waits, and taking an interpreter apart takes as long as starting it
        try:
            send_message(answers, answer_request(request))
        except BrokenPipeError:  # our parent is gone, or wants no answer any more
            os._exit(0)
        if request[0] == "walk":
            _load()


def _load() -> None:
    """Import what hashing takes, before there is anything to hash."""
    import hashlib  # noqa: F401


if __name__ == "__main__":
    run_hash_worker()
