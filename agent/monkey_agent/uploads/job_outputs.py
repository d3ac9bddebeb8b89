# ruff: noqa: PTH116
# Paths are plain strings here: pathlib costs as much as the system calls.
"""What a job made: the files to keep, and their way to the store."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from monkey.concurrency import run_in_lanes
from monkey.store.keys import is_encodable, shorten_key
from monkey.store.store_port import Store
from monkey.transfer.globs import GlobPatterns
from monkey.untrusted_files import stat_directory
from monkey_agent.cache.code_cache import UnpackedSnapshot
from monkey_agent.execution.workspace import Workspace
from monkey_agent.local_files import LARGE_BYTES, UPLOADS, hash_local_file

#: How often a file is sent that changes while it is sent.
CHANGES = 3

#: Bytes that the path of an output may have: buckets take keys of 1,024, and ours begin with project, job and attempt.
MAX_PATH = 800

Note = Callable[[str], None]


def find_outputs(
    space: Workspace, globs: GlobPatterns | None, code: UnpackedSnapshot | None, note: Note
) -> dict[str, str]:
    """Return path to file: all that is in MONKEY_OUTPUT_DIR, and what `globs` name in the working directory.

    Files of the code snapshot that the job left as they were are none of its outputs. What cannot be kept (links,
    devices, names that are not UTF-8) goes to `note`.
    """
    found: dict[str, str] = {}
    if globs is not None:
        for path, full in _walk(space.work, note, globs):
            if code is None or not code.holds(path, full):
                found[path] = full
    for path, full in _walk(space.outputs, note, None):
        if path in found:
            note(f"{path} is both in MONKEY_OUTPUT_DIR and in the working directory; the former is kept")
        found[path] = full
    return found


def _walk(root: str, note: Note, globs: GlobPatterns | None) -> Iterator[tuple[str, str]]:
    waiting = [""]
    while waiting:  # no recursion: a job may nest directories deeper than that goes
        below = waiting.pop()
        try:
            stat_directory(root)
            entries = sorted(os.scandir(f"{root}/{below}"), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue  # the job removed it
        except OSError as exc:
            note(f"{shorten_key(below or root)} cannot be read, so nothing of it is kept: {exc.strerror}")
            continue
        for entry in entries:
            path = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            elif globs is None or globs.match(path):
                why = _refusal(path, entry)
                if why:
                    note(f"{shorten_key(path)!r} is not kept: {why}")
                else:
                    yield path, entry.path


def _refusal(path: str, entry: os.DirEntry[str]) -> str:
    if not is_encodable(path):
        return "its name is not UTF-8"
    if len(path.encode()) > MAX_PATH:
        return f"its path has more than {MAX_PATH} bytes"
    if entry.is_symlink():
        return "it is a symbolic link; copy the file instead"
    return "" if entry.is_file(follow_symlinks=False) else "it is no regular file"


class OutputUpload:
    """The uploads of one attempt; what is done stays done when the store fails in the middle."""

    def __init__(self, store: Store, prefix: str) -> None:
        """Upload to keys that begin with `prefix`."""
        self._store, self._prefix = store, prefix
        self.digests: dict[str, str] = {}

    async def send(self, files: dict[str, str]) -> None:
        """Bring path → file to the store, durably. Raises StoreError; OSError where a file cannot be read."""
        waiting = [(path, full) for path, full in files.items() if path not in self.digests]
        await run_in_lanes(waiting, self._send, min(UPLOADS, len(waiting)))

    async def _send(self, item: tuple[str, str]) -> None:
        """Send one file. What changes meanwhile (a process that could not be killed has it) is sent again."""
        path, full = item
        for _ in range(CHANGES):
            before = os.stat(full)
            digest = (
                await asyncio.to_thread(hash_local_file, full)
                if before.st_size > LARGE_BYTES
                else hash_local_file(full)
            )
            await self._store.put_file(self._prefix + path, Path(full))
            if _same(before, os.stat(full)):
                self.digests[path] = digest
                return
        raise OSError(errno.EBUSY, "somebody goes on writing to it", full)


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns)
