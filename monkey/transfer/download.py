"""Files from the store into a directory: several at a time, verified, and never fetched twice."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from monkey.concurrency import run_in_lanes
from monkey.errors import KeyMissing, MonkeyError, StoreUnavailable
from monkey.removal import remove_file
from monkey.store.folded_names import check_names
from monkey.store.keys import is_encodable
from monkey.store.store_port import Store
from monkey.transfer.fetch_directory import FetchDirectory

#: Files that are under way at a time.
LANES = 16
#: How often a file is asked for while the store gives no answer, and seconds before the second time (then twice that).
_MAX_TRIES, _BACKOFF_SECONDS = 4, 0.5


@dataclass(frozen=True)
class DownloadFile:
    """A file to bring: its key, where it goes below the directory ('/'-separated), and its SHA-256, 64 hex."""

    key: str
    path: str
    sha256: str


@dataclass
class DownloadResult:
    """What became of a download."""

    fetched: int = 0
    #: Bytes that were fetched.
    size: int = 0
    #: Files that were there already, with the right bytes.
    kept: int = 0
    #: Path to why it did not come.
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Files that need no more."""
        return self.fetched + self.kept + len(self.failed)


class Download:
    """Brings files; what is there stays there, so one that was cut short continues where it was."""

    def __init__(
        self, store: Store, directory: FetchDirectory, progress: Callable[[DownloadResult], None] = lambda brought: None
    ):
        """Write below `directory`; `progress` is called after each file."""
        self._store, self._directory, self._progress = store, directory, progress
        self.brought = DownloadResult()

    async def run(self, files: Iterable[DownloadFile]) -> DownloadResult:
        """Bring the files. One that cannot come is in `failed` with the reason; the others come.

        Raises MonkeyError for a path that leads elsewhere, and OneName for two that are one in the directory: then
        nothing is written. Raises OSError where nothing can be written, StoreError.
        """
        wanted = list(files)
        for file in wanted:
            check_path(file.path)
        check_names([file.path for file in wanted], str(self._directory.root))
        await run_in_lanes(wanted, self._bring, min(LANES, len(wanted)))
        return self.brought

    async def _bring(self, file: DownloadFile) -> None:
        if await asyncio.to_thread(self._directory.holds, file.path, file.sha256):
            self.brought.kept += 1
        elif why := await asyncio.to_thread(self._directory.find_obstacle, file.path):
            self.brought.failed[file.path] = why
        else:
            await self._fetch(file)
        self._progress(self.brought)

    async def _fetch(self, file: DownloadFile) -> None:
        target = self._directory.root / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{secrets.token_hex(8)}.fetching")
        try:
            await load_stored_file(self._store, file.key, aside)
            found = await asyncio.to_thread(hash_file, aside)
            if found != file.sha256:
                self.brought.failed[file.path] = (
                    f"its bytes in the store are not those recorded (SHA-256 {found[:16]}…)"
                )
                return
            self.brought.size += aside.stat().st_size
            self._directory.record(file.path, file.sha256)
            aside.replace(target)
            self.brought.fetched += 1
        except KeyMissing:
            self.brought.failed[file.path] = "it is not in the store any more"
        finally:
            remove_file(aside)


async def load_stored_file(store: Store, key: str, path: Path) -> None:
    """Write an object to the file `path`, and ask a few times while the store does not answer.

    Raises KeyMissing, and whatever else the store raises.
    """
    for turn in range(_MAX_TRIES):
        try:
            await store.get_file(key, path)
            return
        except StoreUnavailable:
            if turn == _MAX_TRIES - 1:
                raise
            await asyncio.sleep(_BACKOFF_SECONDS * 2**turn)


def check_path(path: str) -> None:
    """Raise MonkeyError unless `path` stays below the directory that it is joined to: names in a store are foreign."""
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in path or not is_encodable(path):
        raise MonkeyError(
            f"the store names a file that leads elsewhere: {path!r}", hint="whoever wrote it meant no good"
        )


def hash_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, 64 hex."""
    with Path(path).open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
