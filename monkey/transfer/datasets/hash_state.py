"""What is known of a dataset since it was hashed last: while no file changes, that is its hash.

One file a dataset, below the user's cache, written aside and renamed: the last writer wins, and a loss costs only
time. It is read whole, which for a hundred thousand files takes less than as many look-ups in a data base.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import marshal
import os
import time
import zlib
from array import array
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.store.content.hash_worker import Signature
from monkey.transfer.datasets.dataset import Told
from monkey.transfer.datasets.dataset_scan import FileRow
from monkey.untrusted_files import hold_below

#: Begins the file; changes with its form.
MAGIC = b"monkey dataset 2\n"

#: A file that was changed less than so many nanoseconds before it was looked at may change again without another
#: time: the kernel's clock ticks up to every 10 ms, and some file systems keep no fractions of a second.
TICK, COARSE_TICK = 20_000_000, 2_000_000_000

#: Stands for an MD5 that is not known.
UNKNOWN = bytes(16)


class HashState:
    """What is known of the dataset at one path."""

    def __init__(self, home: Path, root: str) -> None:
        """Read what is kept below `home`; `root` is the dataset's absolute path."""
        self.root = root
        self._path = _path(home, root)
        self._names, self._signatures, self._md5s, self._told = self._load()
        #: What a directory is known by, once `known` has found that all of it is as it was.
        self.told: Told | None = None

    @cached_property
    def oids(self) -> list[str]:
        """What the store is likely to have: all that was ever hashed."""
        return [*filter(None, self._hex()), *(self._told or ())[:1]]

    def known(self, rows: Sequence[FileRow]) -> list[str]:
        """Return the MD5 of each of these rows, "" where it is not known."""
        if not self._names:
            return [""] * len(rows)
        if self._signatures == _packed(rows) and self._names == [name for name, _ in rows]:
            found = self._hex()
            self.told = self._told if all(found) else None
            return found
        return self._some(rows)

    def _hex(self) -> list[str]:
        text, unknown = self._md5s.hex(), UNKNOWN.hex()
        found = [text[at : at + 32] for at in range(0, len(text), 32)]
        return ["" if one == unknown else one for one in found] if unknown in found else found

    def _some(self, rows: Sequence[FileRow]) -> list[str]:
        ints, md5s = array("q", self._signatures), self._md5s
        before = {name: at for at, name in enumerate(self._names)}
        found = []
        for name, signature in rows:
            at = before.get(name, -1)
            same = at >= 0 and tuple(ints[4 * at : 4 * at + 4]) == signature
            md5 = md5s[16 * at : 16 * at + 16] if same else UNKNOWN
            found.append(md5.hex() if md5 != UNKNOWN else "")
        return found

    def save(self, rows: Sequence[FileRow], md5s: Sequence[str], began: int, told: Told | None = None) -> None:
        """Remember these rows; `began`: when their files were first looked at, in nanoseconds since 1970.

        `told`: what a directory of these rows is known by.

        "" is not known, and neither is what may have changed since without showing it. What cannot be written (a full
        disk, no home) is not worth failing for.
        """
        packed = _packed(rows)
        if not packed:
            return
        digests = b"".join(
            bytes.fromhex(md5) if md5 and is_settled(signature, began) else UNKNOWN
            for (_, signature), md5 in zip(rows, md5s, strict=True)
        )
        body = marshal.dumps((self.root, "\0".join(name for name, _ in rows), packed, digests, told))
        place = self._path.parent
        with contextlib.suppress(OSError), hold_below(place.parent, place.name, make=True):
            write_atomically(self._path, MAGIC + zlib.crc32(body).to_bytes(4, "big") + body)

    def _load(self) -> tuple[list[str], bytes, bytes, Told | None]:
        """Return what was saved: names, signatures, MD5s; nothing where there is nothing, or it is not whole."""
        nothing: tuple[list[str], bytes, bytes, None] = [], b"", b"", None
        try:
            data = self._path.read_bytes()
        except OSError:
            return nothing
        begin = len(MAGIC) + 4
        if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : begin] != zlib.crc32(data[begin:]).to_bytes(4, "big"):
            return nothing
        root, names, signatures, md5s, told = marshal.loads(data[begin:])
        return (names.split("\0"), signatures, md5s, told) if root == self.root else nothing


def has_state(home: Path, root: str) -> bool:
    """Tell whether the dataset at the absolute path `root` was ever hashed."""
    return _path(home, os.path.realpath(root)).exists()


def _path(home: Path, root: str) -> Path:
    return home / hashlib.sha256(os.fsencode(root)).hexdigest()[:32]


def is_settled(signature: Signature, at: int) -> bool:
    """Tell whether a change after `at` (nanoseconds since 1970) would show in the file's times."""
    changed = max(signature[1], signature[2])
    tick = TICK if signature[2] % 1_000_000 else COARSE_TICK
    return changed < at - tick


def read_file_clock() -> int:
    """Return nanoseconds since 1970, as file systems stamp files."""
    return time.time_ns()


def _packed(rows: Sequence[FileRow]) -> bytes:
    """Return the signatures of these rows as bytes; none where one of them does not fit."""
    try:
        return array("q", itertools.chain.from_iterable(signature for _, signature in rows)).tobytes()
    except OverflowError:  # some file systems have inodes that need all 64 bits
        return b""
