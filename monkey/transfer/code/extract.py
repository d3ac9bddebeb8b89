"""The extraction of a code snapshot from an untrusted writer: no path outside, no device, no endless data."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import tarfile
import zlib
from pathlib import Path
from typing import BinaryIO

from monkey.errors import CorruptObject
from monkey.removal import remove_tree
from monkey.store.directory.disk_sync import flush_directory, flush_file
from monkey.store.folded_names import check_names
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

#: Bytes of headers and padding that a tar may have beside its files.
_OVERHEAD = 10_240 + MAX_FILES * 4096

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def extract_snapshot(archive: Path, into: Path, sha: str, *, max_total: int = MAX_TOTAL) -> None:
    """Unpack the snapshot with the code hash `sha` to `into`, whole or not at all; do nothing where `into` exists.

    Raises CorruptObject where the archive is not what its hash promises. That may be a path or link that leads out, a
    device, more than `max_total` bytes, or a cut archive. Raises OneName where two of its names are one on this disk,
    OSError where `into` cannot be written.
    """
    if into.exists():
        return
    aside = into.with_name(f".{into.name}.{secrets.token_hex(6)}.part")
    aside.mkdir(parents=True)
    try:
        found = hash_manifest(_Unpacking(f"code/{sha}.tar.gz", aside, max_total).run(archive))
        if found != sha:
            raise CorruptObject(f"code/{sha}.tar.gz", f"its contents have the code hash {found}")
        for directory, _, _ in os.walk(aside, topdown=False):
            flush_directory(directory)
        _publish(aside, into)
    finally:
        remove_tree(str(aside))


def _publish(aside: Path, into: Path) -> None:
    try:
        aside.rename(into)
    except OSError:
        if not into.is_dir():
            raise
        # Another unpacked the same meanwhile: same hash, same files.


class _Unpacking:
    """One archive that is unpacked to a directory. Links come last: no file is ever written through one."""

    def __init__(self, key: str, root: Path, max_total: int) -> None:
        self.key, self.root, self.max_total = key, root, max_total
        self.entries: dict[str, ManifestEntry] = {}
        #: Those of all entries, and of the one that is being unpacked.
        self.names: list[str] = []
        self.total = 0

    def run(self, archive: Path) -> list[ManifestEntry]:
        """Unpack the archive, and return its entries. Raises CorruptObject, OSError."""
        with archive.open("rb") as file:
            try:
                with tarfile.open(fileobj=_Capped(file, self.key, self.max_total), mode="r|") as tar:  # type: ignore[call-overload] # only read() is used
                    for member in tar:
                        self._member(tar, member)
            except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as exc:
                raise self._corrupt(f"no archive, or cut short ({exc})") from exc
        check_names(self.names, str(self.root.parent))
        for entry in self.entries.values():
            if entry.kind is PathKind.LINK:
                self._link(entry)
        for entry in self.entries.values():
            if entry.kind is PathKind.LINK:
                self._check_link(entry)
        return list(self.entries.values())

    def _member(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if not is_path(member.name):
            raise self._corrupt(f"{member.name!r} is no path inside, or deeper than {MAX_TREE_DEPTH} directories")
        if member.name in self.entries or len(self.entries) >= MAX_FILES:
            raise self._corrupt(f"{member.name!r} comes twice, or there are too many files")
        self.names.append(member.name)
        if member.issym():
            self.entries[member.name] = ManifestEntry(member.name, PathKind.LINK, member.linkname)
        elif member.isreg():
            self.entries[member.name] = self._file(tar, member)
        else:
            raise self._corrupt(f"{member.name!r} is neither a file nor a link")

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> ManifestEntry:
        self.total += member.size
        if member.size > MAX_FILE or self.total > self.max_total:
            raise self._corrupt(f"{member.name!r} is too large")
        source = tar.extractfile(member)
        data = source.read() if source else b""
        if len(data) != member.size:
            raise self._corrupt(f"{member.name!r} is cut short")
        executable = bool(member.mode & 0o100)
        self._write(member.name, data, 0o777 if executable else 0o666)
        kind = PathKind.EXECUTABLE if executable else PathKind.FILE
        return ManifestEntry(member.name, kind, hashlib.sha256(data).hexdigest())

    def _write(self, name: str, data: bytes, mode: int) -> None:
        path = self._room(name)
        try:
            fd = os.open(path, _CREATE, mode)
        except (FileExistsError, IsADirectoryError) as exc:
            raise self._corrupt(f"{name!r} is a file and a directory") from exc
        with open(fd, "wb") as file:  # noqa: PTH123 - from a descriptor
            file.write(data)
            file.flush()
            flush_file(fd)  # a cache outlives a loss of power, and is not read again to be verified

    def _room(self, name: str) -> Path:
        """Return the path of `name`, after making the directories above it. Raises CorruptObject, OSError."""
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as exc:
            raise self._corrupt(f"{name!r} lies below a file") from exc
        return path

    def _link(self, entry: ManifestEntry) -> None:
        if not is_inside(entry.path, entry.content):
            raise self._corrupt(f"the link {entry.path!r} leads out, to {entry.content!r}")
        try:
            self._room(entry.path).symlink_to(entry.content)
        except FileExistsError as exc:
            raise self._corrupt(f"{entry.path!r} is a link and a directory") from exc

    def _check_link(self, entry: ManifestEntry) -> None:
        """Raise CorruptObject if the link leads out, now that all exist: it may lead out through another link."""
        real, root = os.path.realpath(self.root / entry.path), os.path.realpath(self.root)
        if not (real + "/").startswith(root + "/"):
            raise self._corrupt(f"the link {entry.path!r} leads out, to {entry.content!r}")

    def _corrupt(self, why: str) -> CorruptObject:
        check_names(self.names, str(self.root.parent))  # whatever went wrong may have gone wrong by this
        return CorruptObject(self.key, why)


class _Capped:
    """A reader that unzips the archive, up to the number of bytes that a snapshot can have."""

    def __init__(self, file: BinaryIO, key: str, max_total: int) -> None:
        self._unzipped, self._key = gzip.GzipFile(fileobj=file, mode="rb"), key
        self._left = max_total + _OVERHEAD

    def read(self, size: int) -> bytes:
        data = self._unzipped.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise CorruptObject(self._key, "it unpacks to more than a snapshot can have")
        return data
