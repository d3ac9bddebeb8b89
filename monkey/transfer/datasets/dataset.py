"""Datasets: files and directories that jobs read, named by what is in them in DVC's way, and stored once for everybody.

A file's id is the MD5 of its bytes; a directory's is that of its listing, as DVC writes it, with ".dir" behind it.
What is kept is what DVC keeps: paths and bytes; no rights, no empty directories, and links to files as files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from monkey.errors import CorruptObject
from monkey.store.content.hash_worker import Signature
from monkey.store.content.objects import SourceFile, spell_md5_key

#: What a directory's id ends with.
DIR = ".dir"

#: A directory's id, and the bytes of its listing.
Told = tuple[str, int]


@dataclass(frozen=True)
class Dataset:
    """A dataset as it was when it was looked at: rows of a path below `root`, a signature, an MD5.

    Its repr leaves out the rows: asyncio makes one of what a task returns, which took longer than a look at the files.
    """

    #: The file itself, or the directory; absolute.
    root: str
    #: Relative to `root`, sorted; a single "" for a file.
    names: Sequence[str] = field(repr=False)
    signatures: Sequence[Signature] = field(repr=False)
    md5s: Sequence[str] = field(repr=False)
    #: Where the files are, if not below `root`: in DVC's cache.
    paths: Sequence[str] = field(default=(), repr=False)
    #: What it was known by before, and the bytes of its listing, where that is remembered.
    told: Told | None = None

    @property
    def is_file(self) -> bool:
        """Is it a single file?"""
        return len(self.names) == 1 and not self.names[0]

    @cached_property
    def listing(self) -> bytes:
        """The bytes of a directory's `.dir` object, b"" for a file."""
        return b"" if self.is_file else write_listing(self.names, self.md5s)

    @property
    def listed(self) -> int:
        """Bytes of the listing."""
        return self.told[1] if self.told else len(self.listing)

    @cached_property
    def oid(self) -> str:
        """What the dataset is known by."""
        if self.told:
            return self.told[0]
        if self.is_file:
            return self.md5s[0]
        return hashlib.md5(self.listing, usedforsecurity=False).hexdigest() + DIR

    @cached_property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(found[0] for found in self.signatures)

    @cached_property
    def objects(self) -> Mapping[str, int]:
        """Each MD5 once, with the row of a file that has it."""
        return dict(zip(reversed(self.md5s), range(len(self.md5s) - 1, -1, -1), strict=True))

    def source(self, row: int) -> SourceFile:
        """Return the file of this row, to be stored."""
        return SourceFile(self.path(row), self.signatures[row], self.md5s[row])

    def path(self, row: int) -> str:
        """Return where the file of this row is."""
        if self.paths:
            return self.paths[row]
        return f"{self.root}/{self.names[row]}" if self.names[row] else self.root


def write_listing(names: Sequence[str], md5s: Sequence[str]) -> bytes:
    """Return a directory's listing as DVC writes it: `json.dumps` of {"md5", "relpath"} sorted by path.

    Written out by hand: a hundred thousand dicts would take longer than hashing their files.
    """
    rows = [f'{{"md5": "{md5}", "relpath": {quoted(name)}}}' for name, md5 in zip(names, md5s, strict=True)]
    return f"[{', '.join(rows)}]".encode()


def read_listing(data: bytes, oid: str) -> dict[str, str]:
    """Return path to MD5 of what a `.dir` object lists. Raises CorruptObject where it is none."""
    try:
        rows: Any = json.loads(data)
        return {str(row["relpath"]): str(row["md5"]) for row in rows}
    except (ValueError, LookupError, TypeError) as exc:
        raise CorruptObject(spell_md5_key(oid), "it lists no directory") from exc


def count_changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Return how many files were added, removed or changed between two listings."""
    same = sum(after.get(name) == md5 for name, md5 in before.items())
    return len(before.keys() | after.keys()) - same
