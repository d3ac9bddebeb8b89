# ruff: noqa: PTH116, PTH115
# Paths are plain strings here: a hundred thousand Paths cost more than looking at the files.
"""The scan of a dataset before anything is read: which files it has, and whether they can be taken at all.

Links to files are followed, as DVC does. Links to directories are refused, since DVC would leave them out without a
word. Files without bytes of their own are refused, too: pipes, sockets, devices, links that lead nowhere or in a
circle.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable

from monkey.errors import DatasetError
from monkey.store.content.hash_worker import Signature, Walked, read_signature, walk_files
from monkey.store.keys import is_encodable, shorten_key

#: A path below the dataset's root ("" for the root itself, a file), and the file's signature.
FileRow = tuple[str, Signature]


def scan_dataset(root: str, walked: Callable[[], Walked] | None = None) -> list[FileRow]:
    """Return the files of the dataset, sorted; `walked` waits for the result of `walk_files` in another process.

    Raises DatasetError, with the file's name, for a file that cannot be taken.
    """
    found = _look(root)
    if stat.S_ISREG(found.st_mode):
        return [("", read_signature(found))]
    if not stat.S_ISDIR(found.st_mode):
        raise DatasetError(f"expected a file or a directory at {root}, found {_kind(found.st_mode)}")
    rows, others, foreign, ended = walked() if walked else walk_files(root)
    for name in foreign:
        _check_name(f"{root}/{name}", name)
    if ended:
        path, number = ended
        raise translate_scan_error(path, OSError(number, os.strerror(number)))
    return sort_rows(root, rows + [_row(name, f"{root}/{name}") for name in others])


def scan_listed(root: str, directories: Iterable[tuple[str, Iterable[str], Iterable[str]]]) -> list[FileRow]:
    """Return, as `scan_dataset`, the files of `directories`: path, directories' and files' names, as `os.walk` yields.

    This is for trees whose files another program lists, such as DVC.
    """
    rows: list[FileRow] = []
    for path, inside, names in directories:
        base = f"{path[len(root) + 1 :]}/" if len(path) > len(root) else ""
        for name in inside:
            if os.path.islink(f"{path}/{name}"):  # noqa: PTH114
                raise _refuse(f"{path}/{name}", stat.S_IFDIR)
        rows += [_row(base + name, f"{path}/{name}") for name in names]
    return sort_rows(root, rows)


def sort_rows(root: str, rows: list[FileRow]) -> list[FileRow]:
    """Sort the rows, and return them. Raises DatasetError where there are none."""
    if not rows:
        raise DatasetError(f"expected files in {root}, found none", hint="a dataset has at least one file")
    rows.sort()
    return rows


def _look(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as exc:
        raise translate_scan_error(path, exc) from exc


def _row(name: str, path: str) -> FileRow:
    """Return the row of a file, or of a link to one. Raises DatasetError for anything else."""
    _check_name(path, name)
    found = _look(path)
    if not stat.S_ISREG(found.st_mode):
        raise _refuse(path, found.st_mode)
    return name, read_signature(found)


def _check_name(path: str, name: str) -> None:
    if not is_encodable(name):
        raise DatasetError(
            f"the file name {os.fsencode(path)!r} is not UTF-8", hint="rename it; DVC's listings are UTF-8"
        )


def _refuse(path: str, mode: int) -> DatasetError:
    if stat.S_ISDIR(mode):
        return DatasetError(
            f"{path} is a link to a directory, which DVC would leave out",
            hint="copy the directory there, or make what it points to a dataset of its own",
        )
    return DatasetError(f"expected a file at {path}, found {_kind(mode)}", hint="move it out of the dataset")


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a directory"))
    return next((kind for test, kind in kinds if test(mode)), "a device")


def translate_scan_error(path: str, exc: OSError) -> DatasetError:
    """Return the error to raise for the system's error at a file of the dataset."""
    name = shorten_key(path)
    if exc.errno == errno.ELOOP:
        return DatasetError(f"the link {name} leads in a circle", hint="remove it")
    if exc.errno in (errno.ENOENT, errno.ENOTDIR) and os.path.islink(path):  # noqa: PTH114
        return DatasetError(f"the link {name} leads nowhere: to {os.readlink(path)!r}", hint="mend it, or remove it")
    if exc.errno in (errno.ENOENT, errno.ENOTDIR):
        return DatasetError(f"there is no {name}", hint="if it vanished just now: wait until nobody writes there")
    return DatasetError(f"cannot read {name}: {exc.strerror}", hint="make it readable, or move it out of the dataset")
