"""Code snapshots: the files that a sweep's jobs run with, named by a hash of their contents, stored once.

The hash covers a manifest of paths, executable bits, contents and link targets, not the archive: any gzip may pack it.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from monkey.errors import PlanError
from monkey.plan.text.credential_forms import find_credential
from monkey.store.store_port import Store
from monkey.transfer.code.code_manifest import (
    MAX_FILE,
    MAX_FILES,
    MAX_TOTAL,
    MAX_TREE_DEPTH,
    ManifestEntry,
    PathKind,
    hash_manifest,
    is_inside,
    is_path,
)
from monkey.transfer.code.extract import extract_snapshot
from monkey.transfer.code.file_selection import NOT_CODE, select_files
from monkey.transfer.code.git_files import read_git_info
from monkey.transfer.globs import GlobPatterns

__all__ = [
    "CodeSnapshot",
    "extract_snapshot",
    "pack_code",
    "read_code",
    "read_git_info",
    "spell_code_key",
    "upload_code",
]

#: Number of times that a file which changes meanwhile is read.
READS = 3


@dataclass(frozen=True)
class CodeSnapshot:
    """The code as it was when it was read; `pack_code` notices files that have changed since."""

    root: Path
    hash: str
    entries: tuple[ManifestEntry, ...]
    #: Bytes in all files.
    size: int
    #: Files that are left out because this process's stdout or stderr is sent to them.
    left_out: tuple[str, ...] = ()
    #: Directories that are left out because they are repositories of their own.
    repositories: tuple[str, ...] = ()
    #: Files that git does not track, though it lists the others.
    untracked: tuple[str, ...] = ()
    #: Path to reason of files that are left out because they may hold credentials.
    credentials: Mapping[str, str] = field(default_factory=dict)
    #: Path to reason of files that may hold credentials, and are code because git tracks them or the spec names them.
    vouched: Mapping[str, str] = field(default_factory=dict)
    #: Globs that files must match; without any, all files are code but those of `NOT_CODE`.
    include: tuple[str, ...] = ()

    def would_take(self, file: Path) -> bool:
        """Return whether a new file would be code when it is read again, unless git ignores it."""
        path = os.path.relpath(file, self.root)  # tidied up: of ROOT/../x, the text does not show that it lies outside
        if f"{path}/".startswith("../"):
            return False
        return GlobPatterns(self.include).match(path) if self.include else not NOT_CODE.match(path)

    @property
    def files(self) -> dict[str, str]:
        """Return path to fingerprint: 64 hex that change whenever the path's part of the code hash does.

        For a plain file, it is the SHA-256 of its bytes.
        """
        return {entry.path: entry.fingerprint for entry in self.entries}


def spell_code_key(sha: str) -> str:
    """Return the key in the store of the archive with the code hash `sha`."""
    return f"code/{sha}.tar.gz"


def read_code(
    root: Path,
    include: Sequence[str] = (),
    leave_out: Collection[str] = (),
    *,
    without: Collection[str] = (),
    project: Path | None = None,
    max_total: int = MAX_TOTAL,
) -> CodeSnapshot:
    """Read the code under `root`; `file_selection.select_files` chooses the files.

    `without`: files and trees to leave out. `project`: the root of the project; the code may lie in its repository, or
    in submodules of that. The files that stdout and stderr are sent to change for sure, and are left out. So are files
    with credentials, unless the selection vouches for them.

    Raises PlanError for code elsewhere, and for code that cannot be in a snapshot:

    - links that lead out, devices, names that are not UTF-8, files over 50 MB
    - more than `max_total` bytes or too many files in all
    - files that change while they are read
    """
    trees = tuple(f"{tree}/" for tree in without)
    selected = select_files(root, include, leave_out, project)
    chosen = [path for path in selected.paths if not f"{path}/".startswith(trees)]
    repositories = tuple(path.rstrip("/") for path in chosen if path.endswith("/"))
    paths = [path for path in chosen if not path.endswith("/")]
    left_out = _our_output(root, paths)
    found = {path: "by its name" for path in selected.credentials if not f"{path}/".startswith(trees)}
    vouched: dict[str, str] = {}
    entries: list[ManifestEntry] = []
    size = 0
    for path in paths:
        if path in left_out:
            continue
        read = _read(root, path)
        if read.credential is not None:
            (vouched if path in selected.vouched else found)[path] = f"holds {read.credential}"
        if read.entry is None or path in found:
            continue
        size += read.size
        entries.append(read.entry)
        _check_size(root, size, len(entries), max_total)
    untracked = tuple(entry.path for entry in entries if entry.path in selected.untracked)
    code = hash_manifest(entries)
    return CodeSnapshot(
        root, code, tuple(entries), size, left_out, repositories, untracked, found, vouched, tuple(include)
    )


def _check_size(root: Path, size: int, files: int, max_total: int) -> None:
    if size > max_total or files > MAX_FILES:
        raise PlanError(
            f"the code under {root} is too large for a snapshot: expected at most {max_total / 10**6:g} MB in "
            f"{MAX_FILES} files, found more",
            hint="name what the jobs need with 'code: include:', or add the rest to .gitignore",
        )


class _PathReading(NamedTuple):
    """What was read at a path; no entry where the file is gone."""

    entry: ManifestEntry | None
    size: int = 0
    #: The credential that its bytes hold, if any is known.
    credential: str | None = None


def _our_output(root: Path, paths: Sequence[str]) -> tuple[str, ...]:
    ours = {found for descriptor in (1, 2) if (found := _file_id(descriptor))}
    return tuple(path for path in paths if ours and _file_id(root / path) in ours)


def _file_id(file: Path | int) -> tuple[int, int] | None:
    """Return the identity of a plain file, whatever its name; None for anything else."""
    try:
        status = os.fstat(file) if isinstance(file, int) else file.lstat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _read(root: Path, path: str) -> _PathReading:
    """Read one path of the code. Raises PlanError."""
    if not is_path(path):
        raise PlanError(
            f"the file name {path.encode(errors='surrogateescape')!r} under {root} is not UTF-8, no plain path, or "
            f"deeper than {MAX_TREE_DEPTH} directories",
            hint="rename it, or leave it out with 'code: include:' or .gitignore",
        )
    full = root / path
    try:
        mode = full.lstat().st_mode
        if stat.S_ISLNK(mode):
            return _PathReading(ManifestEntry(path, PathKind.LINK, _link(root, path)))
        if stat.S_ISDIR(mode):
            raise PlanError(
                f"the submodule {path!r} of {root} is not checked out, so the code snapshot would lack it",
                hint="run: git submodule update --init --recursive",
            )
        if not stat.S_ISREG(mode):
            raise PlanError(f"expected a file or a link at {full}, found a device or a pipe")
        return _read_file(full, path)
    except (FileNotFoundError, NotADirectoryError):
        return _PathReading(None)
    except OSError as exc:
        raise PlanError(f"cannot read {full}: {exc.strerror}", hint="make it readable, or leave it out") from exc


def _link(root: Path, path: str) -> str:
    target = os.readlink(root / path)  # noqa: PTH115 - as text: a Path would tidy it up
    real_root, real = os.path.realpath(root), os.path.realpath(root / path)
    if is_inside(path, target) and (real + "/").startswith(real_root.rstrip("/") + "/"):
        return target
    raise PlanError(
        f"the link {root / path} leads out of the code: it points to {target!r}",
        hint="copy the file there, or leave the link out with 'code: include:' or .gitignore",
    )


def _read_file(full: Path, path: str) -> _PathReading:
    for _ in range(READS):
        with _open(full) as file:
            before = os.fstat(file.fileno())
            if before.st_size > MAX_FILE:
                raise PlanError(
                    f"{full} has {before.st_size:,} bytes, too much for a code snapshot (at most {MAX_FILE:,} a file)",
                    hint="make it a dataset, and leave it out with 'code: include:' or .gitignore",
                )
            data = file.read(MAX_FILE + 1)
            after = os.fstat(file.fileno())
        if _same(before, after) and _still(full, after):
            kind = PathKind.EXECUTABLE if after.st_mode & stat.S_IXUSR else PathKind.FILE
            entry = ManifestEntry(path, kind, hashlib.sha256(data).hexdigest())
            return _PathReading(entry, len(data), find_credential(data))
    raise PlanError(f"{full} changes while it is read", hint="wait until nobody writes it any more, and try again")


def _open(full: Path) -> io.BufferedReader:
    # Not blocking: it may have become a pipe since it was looked at.
    fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise PlanError(f"expected a file at {full}, found a device or a pipe")
    return open(fd, "rb")  # noqa: PTH123 - from a descriptor


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return all(getattr(before, of) == getattr(after, of) for of in ("st_size", "st_mtime_ns", "st_ctime_ns"))


def _still(full: Path, known: os.stat_result) -> bool:
    """Return whether the name still leads to the file that was read (editors replace files)."""
    try:
        return full.lstat().st_ino == known.st_ino
    except OSError:
        return False


def pack_code(code: CodeSnapshot, into: BinaryIO) -> None:
    """Write the code's archive to `into`: the same bytes for the same code, given the same zlib.

    Raises PlanError where a file has changed since the snapshot was read.
    """
    with (
        gzip.GzipFile(filename="", fileobj=into, mode="wb", compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in code.entries:
            _add(tar, code.root, entry)


def _add(tar: tarfile.TarFile, root: Path, entry: ManifestEntry) -> None:
    info = tarfile.TarInfo(entry.path)
    if entry.kind is PathKind.LINK:
        if _read(root, entry.path).entry != entry:
            raise _changed(root, entry)
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.content, 0o777
        tar.addfile(info)
        return
    try:
        with _open(root / entry.path) as file:
            data = file.read(MAX_FILE + 1)
    except OSError as exc:
        raise _changed(root, entry) from exc
    if hashlib.sha256(data).hexdigest() != entry.content:
        raise _changed(root, entry)
    info.size, info.mode = len(data), 0o755 if entry.kind is PathKind.EXECUTABLE else 0o644
    tar.addfile(info, io.BytesIO(data))


def _changed(root: Path, entry: ManifestEntry) -> PlanError:
    return PlanError(
        f"{root / entry.path} changed since the plan was made",
        hint="plan again; if a program writes it now, keep it out of the code with 'code: include:' or .gitignore",
    )


async def upload_code(store: Store, code: CodeSnapshot) -> int:
    """Upload the archive unless the store has it; return the number of bytes sent. Raises PlanError, StoreError."""
    key = spell_code_key(code.hash)
    if any(item.key == key for item in await store.list(key)):
        return 0
    with tempfile.TemporaryDirectory(prefix="monkey-code-") as aside:
        archive = Path(aside, "code.tar.gz")
        await asyncio.to_thread(_pack_to, code, archive)
        await store.put_file(key, archive)
        return archive.stat().st_size  # noqa: ASYNC240 - a local file, just written


def _pack_to(code: CodeSnapshot, archive: Path) -> None:
    with archive.open("wb") as file:
        pack_code(code, file)
