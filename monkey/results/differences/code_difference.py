"""Two code snapshots: which files differ, and how, by the archives in the store, which their hashes verify.

A snapshot that is gone, or is not what its hash promises, is compared by the hashes that the revision lists.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from monkey.errors import CorruptObject, KeyMissing, OneName
from monkey.plan.text.credential_forms import find_credential
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.revision import Revision
from monkey.results.differences.line_diff import MAX_TEXT_BYTES, TooDifferent, compare_lines, is_text
from monkey.results.differences.value_change import HIDDEN
from monkey.store.store_port import Store
from monkey.transfer.code.code_manifest import PathKind
from monkey.transfer.code.code_snapshot import extract_snapshot
from monkey.transfer.code.credential_names import is_credential_name

#: Files that are compared line by line, and characters of their lines in all.
_MAX_FILES, _MAX_CHARACTERS = 1_000, 20_000_000

#: Characters of the shortest value of a secret that is looked for in code.
_MIN_SECRET = 4


class ComparedFile(NamedTuple):
    """A file of a snapshot. By a revision's list alone, only its hash is known."""

    #: SHA-256 of its bytes, or of a link's target; 64 hex.
    sha256: str
    #: Bytes; None where they are not known.
    size: int | None = None
    kind: PathKind | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it for programs, without what is not known."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class FileChange(NamedTuple):
    """A file that differs; None for a side that does not have it."""

    path: str
    before: ComparedFile | None
    after: ComparedFile | None
    #: The hunks of a unified diff; empty where it has a `reason`, or only its kind changed.
    lines: tuple[str, ...] = ()
    #: Why no lines are shown; "" where there are some.
    reason: str = ""

    @property
    def status(self) -> str:
        """Return "added", "removed" or "changed"."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        sides = {"a": self.before, "b": self.after}
        told: dict[str, Any] = {"path": self.path, "status": self.status}
        told |= {side: state.to_json() for side, state in sides.items() if state}
        return told | ({"reason": self.reason} if self.reason else {}) | {"diff": self.lines}


class CodeDifference(NamedTuple):
    """What differs between two snapshots, by their code hashes."""

    before: str
    after: str
    files: tuple[FileChange, ...]
    #: Why nothing but hashes was compared; "" for most.
    trouble: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        told: dict[str, Any] = {"a": self.before, "b": self.after}
        told |= {"trouble": self.trouble} if self.trouble else {}
        return told | {"files": [one.to_json() for one in self.files]}


async def compare_code(store: Store, keys: Keys, before: Revision, after: Revision) -> CodeDifference | None:
    """Return what differs in the code of two revisions; None where it is the same. Raises StoreError, OSError."""
    old, new = before.recipe.code, after.recipe.code
    if old == new:
        return None
    with tempfile.TemporaryDirectory(prefix="monkey-code-") as name:
        sides = {"a": old, "b": new}
        reads = (_unpack_code(store, keys, sha, Path(name, side)) for side, sha in sides.items())
        troubles = [trouble for trouble in await asyncio.gather(*reads) if trouble]
        if not troubles:
            files = await asyncio.to_thread(_compare_trees, Path(name, "a"), Path(name, "b"))
            return CodeDifference(old, new, tuple(_mask_lines(files, _list_secret_values(before, after))))
    return CodeDifference(old, new, _compare_lists(before.code_files, after.code_files), "; ".join(troubles))


def _list_secret_values(*revisions: Revision) -> list[str]:
    """Return the values that `env` had of what is a secret of any of these revisions: code may have them, as specs do.

    Values of a few characters stand in too many other places to be taken out.
    """
    names = {name for one in revisions for name in one.settings.secrets}
    values = {one.recipe.env[name] for one in revisions for name in names if name in one.recipe.env}
    return sorted((value for value in values if len(value) >= _MIN_SECRET), key=len, reverse=True)


def _mask_lines(files: Iterable[FileChange], values: Sequence[str]) -> Iterator[FileChange]:
    for one in files:
        lines = one.lines
        for value in values:
            lines = tuple(line.replace(value, HIDDEN) for line in lines)
        yield one._replace(lines=lines)


async def _unpack_code(store: Store, keys: Keys, sha: str, into: Path) -> str:
    """Unpack a snapshot to `into`; return why there is none, or ""."""
    archive = into.with_suffix(".tar.gz")
    try:
        await store.get_file(keys.code(sha), archive)
        await asyncio.to_thread(extract_snapshot, archive, into, sha)
    except KeyMissing:
        return f"code {sha[:12]} is not in the store any more"
    except (CorruptObject, OneName) as exc:
        return exc.message
    return ""


def _compare_lists(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FileChange, ...]:
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    states = [[ComparedFile(of[path]) if path in of else None for of in (before, after)] for path in paths]
    return tuple(FileChange(path, old, new) for path, (old, new) in zip(paths, states, strict=True))


class _Content(NamedTuple):
    data: bytes
    kind: PathKind

    def describe(self) -> ComparedFile:
        return ComparedFile(hashlib.sha256(self.data).hexdigest(), len(self.data), self.kind)


def _compare_trees(before: Path, after: Path) -> tuple[FileChange, ...]:
    found = list[FileChange]()
    room = _MAX_CHARACTERS
    for path in sorted(_list_paths(before) | _list_paths(after)):
        old, new = _read_content(before / path), _read_content(after / path)
        if old == new:
            continue
        if len(found) < _MAX_FILES and room > 0:
            lines, reason = _compare_contents(path, old, new)
            room -= sum(map(len, lines))
        else:
            lines, reason = (), "too many files differ"
        states = [one.describe() if one else None for one in (old, new)]
        found.append(FileChange(path, states[0], states[1], lines, reason))
    return tuple(found)


def _list_paths(root: Path) -> set[str]:
    """Return the files and links below a directory; links are not followed."""
    found = set[str]()
    for directory, names, files in os.walk(root):
        links = [name for name in names if Path(directory, name).is_symlink()]
        found.update(Path(directory, name).relative_to(root).as_posix() for name in (*links, *files))
    return found


def _read_content(path: Path) -> _Content | None:
    """Return what is at a path of an unpacked snapshot, which has nothing but files, links and directories."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(mode):
        return _Content(os.fsencode(path.readlink()), PathKind.LINK)
    if stat.S_ISDIR(mode):
        return None
    return _Content(path.read_bytes(), PathKind.EXECUTABLE if mode & stat.S_IXUSR else PathKind.FILE)


def _compare_contents(path: str, old: _Content | None, new: _Content | None) -> tuple[tuple[str, ...], str]:
    """Return the hunks of a diff of one path, or why there are none."""
    both = [one.data if one else b"" for one in (old, new)]
    held = next(filter(None, map(find_credential, both)), None)
    if held or is_credential_name(path):
        return (), f"not shown: it holds {held}" if held else "not shown: credentials have such names"
    if not all(map(is_text, both)):
        return (), "binary"
    if max(map(len, both)) > MAX_TEXT_BYTES:
        return (), "large"
    try:
        return tuple(compare_lines(*both)), ""
    except TooDifferent:
        return (), "too different to compare line by line"
