"""What a job made: the files to keep, and their way to the store."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

from monkey.concurrency import run_in_lanes
from monkey.errors import KeyMissing, OneName
from monkey.store.folded_names import find_twins
from monkey.store.keys import is_encodable, shorten_key
from monkey.store.store_port import Store
from monkey.transfer.globs import GlobPatterns
from monkey.untrusted_files import HeldDirectory, UntrustedFile, name_descriptor
from monkey_agent.cache.code_cache import UnpackedSnapshot
from monkey_agent.execution.workspace import Workspace
from monkey_agent.local_files import UPLOADS, hash_local_file

#: How often a file is sent that changes while it is sent.
CHANGES = 3

#: Bytes that the paths of all outputs may have together, with their hashes: ends list them.
MAX_LIST_BYTES = 16 * 2**20
_HASH_BYTES = 70
#: Bytes that the path of an output may have: buckets take keys of 1,024, and ours begin with project, job and attempt.
MAX_PATH = 800

Note = Callable[[str], None]
Lose = Callable[[OSError], None]


def find_outputs(
    space: Workspace, globs: GlobPatterns | None, code: UnpackedSnapshot | None, note: Note, lose: Lose
) -> dict[str, UntrustedFile]:
    """Return path to file: all that is in MONKEY_OUTPUT_DIR, and what `globs` name in the working directory.

    Files of the code snapshot that the job left as they were are none of its outputs. What cannot be kept (links,
    devices, names that are not UTF-8) goes to `note`. `lose` gets the error of each directory that cannot be read.
    """
    found: dict[str, UntrustedFile] = {}
    if globs is not None:
        for path in _walk(space.work, note, lose, globs):
            file = UntrustedFile(space.work, path)
            if code is None or not code.holds(path, file):
                found[path] = file
    for path in _walk(space.outputs, note, lose, None):
        if path in found:
            note(f"{path} is both in MONKEY_OUTPUT_DIR and in the working directory; the former is kept")
        found[path] = UntrustedFile(space.outputs, path)
    return _take_listable(found, note)


def _take_listable(found: dict[str, UntrustedFile], note: Note) -> dict[str, UntrustedFile]:
    left = MAX_LIST_BYTES
    taken: dict[str, UntrustedFile] = {}
    for path, file in found.items():
        left -= len(path.encode()) + _HASH_BYTES
        if left < 0:
            note(f"{len(found) - len(taken):,} of {len(found):,} outputs are not kept: a record has no room for more")
            break
        taken[path] = file
    return taken


def _walk(root: str, note: Note, lose: Lose, globs: GlobPatterns | None) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        try:
            held = stack.enter_context(HeldDirectory(root))
        except FileNotFoundError:
            return  # the job removed it
        except OSError as exc:
            lose(exc)
            return
        waiting = [""]
        while waiting:  # no recursion: a job may nest directories deeper than that goes
            below = waiting.pop()
            for path, entry in _look_into(held, below, lose if globs is None or globs.reaches(below) else None):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(path)
                elif globs is None or globs.match(path):
                    why = _refusal(path, entry)
                    if why:
                        note(f"{shorten_key(path)!r} is not kept: {why}")
                    else:
                        yield path


def _look_into(held: HeldDirectory, below: str, lose: Lose | None) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is in the directory `below`, which is open meanwhile, sorted by name.

    `lose`: None where no output can be there, so that nothing is lost.
    """
    try:
        with os.scandir(held.descend(below)) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return  # the job removed it
    except OSError as exc:
        if lose is not None:
            lose(exc)
        return
    for entry in entries:
        yield f"{below}/{entry.name}".lstrip("/"), entry


def _refusal(path: str, entry: os.DirEntry[str]) -> str:
    if not is_encodable(path):
        return "its name is not UTF-8"
    if len(path.encode()) > MAX_PATH:
        return f"its path has more than {MAX_PATH} bytes"
    if entry.is_symlink():
        return "it is a symbolic link; copy the file instead"
    return "" if entry.is_file(follow_symlinks=False) else "it is no regular file"


async def resolve_twins(store: Store, prefix: str, found: dict[str, UntrustedFile]) -> AsyncIterator[str]:
    """Rename outputs that would replace others, as the store takes two names for one; yield why that is refused.

    The store is asked, by small objects at `prefix`, where two names may be one. Raises StoreError.
    """
    # What is in a directory comes before the directory.
    for one, other in sorted(set(find_twins(found)), key=lambda pair: pair[1], reverse=True):
        mark = secrets.token_hex(4)
        await store.put(f"{prefix}{one}.{mark}", b"")
        with contextlib.suppress(KeyMissing):
            await store.get(f"{prefix}{other}.{mark}")
            for path in [path for path in found if f"{path}/".startswith(f"{other}/")]:
                found[f"{other}.{mark}{path.removeprefix(other)}"] = found.pop(path)
            yield f"{OneName(one, other, store.url).message}; the latter is kept as {f'{other}.{mark}'!a}"
        await store.delete(f"{prefix}{one}.{mark}")


class OutputUpload:
    """The uploads of one attempt; what is done stays done when the store fails in the middle."""

    def __init__(self, store: Store, prefix: str) -> None:
        """Upload to keys that begin with `prefix`."""
        self._store, self._prefix = store, prefix
        self.digests: dict[str, str] = {}

    async def send(self, files: Mapping[str, UntrustedFile]) -> None:
        """Bring path → file to the store, durably. Raises StoreError; OSError where a file cannot be read."""
        waiting = [(path, file) for path, file in files.items() if path not in self.digests]
        await run_in_lanes(waiting, self._send, min(UPLOADS, len(waiting)))

    async def _send(self, item: tuple[str, UntrustedFile]) -> None:
        """Send one file. What changes meanwhile (a process that could not be killed has it) is sent again."""
        path, file = item
        fd = file.open()
        try:
            name = name_descriptor(fd)
            for _ in range(CHANGES):
                before = os.fstat(fd)
                digest = await hash_local_file(name)
                await self._store.put_file(self._prefix + path, Path(name))
                after = os.fstat(fd)
                if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                    self.digests[path] = digest
                    return
        finally:
            os.close(fd)
        raise OSError(errno.EBUSY, "somebody goes on writing to it", "/".join(file))
