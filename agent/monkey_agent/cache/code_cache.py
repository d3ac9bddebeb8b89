# ruff: noqa: PTH101, PTH112, PTH115
# Paths are plain strings in what runs once a job: pathlib costs as much as the system calls.
"""Code snapshots on this machine: fetched and unpacked once, then copied for every attempt."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from monkey.errors import JobFailed, KeyMissing
from monkey.removal import remove_below, remove_file
from monkey.store.directory.publish import copy_bytes
from monkey.store.store_port import Store
from monkey.transfer.code.code_manifest import ManifestEntry, PathKind, hash_manifest
from monkey.untrusted_files import UntrustedFile, is_directory, open_directory
from monkey_agent.cache.cache import Cache, CacheUse
from monkey_agent.cache.single_flight import SingleFlight

#: Files up to so many bytes are kept in memory, and so many bytes of a snapshot in all: most code is this small.
_SMALL, _KEPT = 64 * 1024, 8 * 1024 * 1024
#: A snapshot with more bytes or files than this is copied in another thread.
_LARGE, _MANY = 4 * 1024 * 1024, 200


@dataclass(frozen=True)
class SnapshotFile:
    """A file of a snapshot: path, permissions, and its bytes if they are few."""

    path: str
    mode: int
    data: bytes | None


@dataclass
class UnpackedSnapshot:
    """An unpacked snapshot, read once; never linked to, so that no job can change what another gets."""

    root: str
    directories: list[str] = field(default_factory=list)
    files: list[SnapshotFile] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0
    #: What the code hash is over.
    entries: list[ManifestEntry] = field(default_factory=list)

    @property
    def large(self) -> bool:
        """Say whether copying it takes long."""
        return self.size > _LARGE or len(self.files) > _MANY

    def is_snapshot(self, sha: str) -> bool:
        """Say whether these are the files of the code with this hash."""
        try:
            return hash_manifest(self.entries) == sha
        except UnicodeEncodeError:  # a name that no snapshot can have
            return False

    def copy_to(self, target: str) -> None:
        """Copy everything into an empty directory; raises OSError."""
        if not self.directories and not self.files and not self.links:
            return
        directory = open_directory(target, step=True)
        try:
            for path in self.directories:
                os.mkdir(path, dir_fd=directory)
            for file in self.files:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                fd = os.open(file.path, flags, file.mode, dir_fd=directory)
                try:
                    if file.data is None:
                        self._copy(file.path, fd)
                    elif os.write(fd, file.data) != len(file.data):
                        raise OSError(28, os.strerror(28), f"{target}/{file.path}")
                finally:
                    os.close(fd)
            for path, to in self.links:
                os.symlink(to, path, dir_fd=directory)
        finally:
            os.close(directory)

    def _copy(self, path: str, target: int) -> None:
        source = os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            copy_bytes(source, target)
        finally:
            os.close(source)

    def holds(self, path: str, file: UntrustedFile) -> bool:
        """Say whether a job's file is the snapshot's own `path`, byte for byte."""
        ours = Path(self.root, path)
        try:
            return ours.is_file() and _same(ours, file)
        except OSError:
            return False


def _same(one: Path, other: UntrustedFile) -> bool:
    with one.open("rb") as left, os.fdopen(other.open(), "rb") as right:
        if os.fstat(left.fileno()).st_size != os.fstat(right.fileno()).st_size:
            return False
        while piece := left.read(1 << 20):
            if piece != right.read(1 << 20):
                return False
    return True


def read_snapshot(root: str) -> UnpackedSnapshot:
    """Read an unpacked snapshot, and take its files' write permission away."""
    found = UnpackedSnapshot(root)
    for directory, names, files in os.walk(root):
        below = directory[len(root) + 1 :]
        prefix = f"{below}/" if below else ""
        for name in (*names, *files):
            full, path = f"{directory}/{name}", prefix + name
            if os.path.islink(full):  # noqa: PTH114
                found.links.append((path, os.readlink(full)))
                found.entries.append(ManifestEntry(path, PathKind.LINK, found.links[-1][1]))
            elif os.path.isdir(full):
                found.directories.append(path)
            else:
                _read_file(found, full, path)
    return found


def _read_file(found: UnpackedSnapshot, full: str, path: str) -> None:
    with open(full, "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        if status.st_mode & 0o222:
            os.chmod(full, status.st_mode & 0o555)
        keep = status.st_size <= _SMALL and found.size + status.st_size <= _KEPT
        data = file.read() if keep else None
        sha = hashlib.sha256(data) if data is not None else hashlib.file_digest(file, "sha256")
        runs = bool(status.st_mode & 0o100)
        found.files.append(SnapshotFile(path, 0o777 if runs else 0o666, data))
        found.entries.append(ManifestEntry(path, PathKind.EXECUTABLE if runs else PathKind.FILE, sha.hexdigest()))
        found.size += status.st_size


class CodeCache:
    """The snapshots that this machine has, shared by all agents of the user."""

    def __init__(self, store: Store, cache: Cache) -> None:
        """Keep snapshots in `cache`."""
        self._store, self._cache, self._directory = store, cache, cache.root / "code"
        self._flights: SingleFlight[UnpackedSnapshot] = SingleFlight()
        self._known: dict[str, UnpackedSnapshot] = {}
        #: The rights to those that are known: they are asked for by every job, and cost nothing for as long as we live.
        self._uses: dict[str, CacheUse] = {}

    def known(self, sha: str) -> UnpackedSnapshot | None:
        """Return a snapshot that is at hand."""
        return self._known.get(sha)

    async def get(self, sha: str, key: str) -> UnpackedSnapshot:
        """Return the snapshot `sha`, fetched from the store's `key` if need be.

        Raises StoreError, CorruptObject, JobFailed (it is not in the store), OSError (the cache cannot be written).
        """
        if sha not in self._known:
            self._known[sha] = await self._flights.join(sha, lambda: self._load(sha, key))
        return self._known[sha]

    async def _load(self, sha: str, key: str) -> UnpackedSnapshot:
        into = self._directory / sha
        if sha not in self._uses:
            self._uses[sha] = await self._cache.use(into)
        if is_directory(str(into)):
            found = await asyncio.to_thread(read_snapshot, str(into))
            if found.is_snapshot(sha):
                return found
        self.forget(sha)  # a cleaner of caches was here, or a program that changes what it finds
        await self._cache.with_room(lambda: self._fetch(sha, key, into))
        await asyncio.to_thread(self._cache.note, into)
        self._cache.trim_soon()
        return await asyncio.to_thread(read_snapshot, str(into))

    async def _fetch(self, sha: str, key: str, into: Path) -> None:
        from monkey.transfer.code.extract import extract_snapshot

        self._directory.mkdir(parents=True, exist_ok=True)
        archive = self._directory / f".{sha}.{secrets.token_hex(6)}.tar.gz"
        try:
            await self._store.get_file(key, archive)
            await asyncio.to_thread(extract_snapshot, archive, into, sha)
        except KeyMissing as exc:
            raise JobFailed(f"its code is not in the store: {key} (hint: run `monkey apply` again)") from exc
        finally:
            remove_file(archive)

    async def close(self) -> None:
        """Stop what is being fetched."""
        await self._flights.close()
        for use in self._uses.values():
            use.close()
        self._uses.clear()

    def forget(self, sha: str) -> None:
        """Remove a snapshot that turned out to be incomplete: some cleaner of caches was here."""
        self._known.pop(sha, None)
        remove_below(self._cache.root, f"code/{sha}")
