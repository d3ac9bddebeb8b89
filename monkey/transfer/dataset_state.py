"""What is known of a dataset since it was hashed last: while no file changes, that is its hash.

One file a dataset, below the user's cache, written aside and renamed: whoever comes last wins, and a loss costs only
time. It is read whole, which for a hundred thousand files takes less than as many look-ups in a data base.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import marshal
import os
import secrets
import time
import zlib
from array import array
from collections.abc import Sequence
from pathlib import Path

from monkey.store.copier import Signature
from monkey.transfer.dataset_scan import Row

#: Begins the file; changes with its form.
MAGIC = b"monkey dataset 1\n"

#: A file that was changed less than so many nanoseconds before it was looked at may change again without another
#: time: the kernel's clock ticks up to every 10 ms, and some file systems keep no fractions of a second.
TICK, COARSE_TICK = 20_000_000, 2_000_000_000

#: Bytes of a state that knows many files: some thousands.
MANY = 256 * 1024

#: Stands for an MD5 that is not known.
UNKNOWN = bytes(16)


class State:
    """What is known of the dataset at one path."""

    def __init__(self, home: Path, root: str) -> None:
        """Keep it below `home`; `root` is the dataset's absolute path."""
        self._root = root
        self._path = home / hashlib.sha256(os.fsencode(root)).hexdigest()[:32]

    @property
    def many(self) -> bool:
        """Were there many files, when they were last looked at?"""
        try:
            return self._path.stat().st_size > MANY
        except OSError:
            return False

    def known(self, rows: Sequence[Row]) -> list[str]:
        """Return the MD5 of each of these rows, "" where it is not known."""
        names, signatures, md5s = self._load()
        if not names:
            return [""] * len(rows)
        if len(names) == len(rows) and signatures == _packed(rows) and names == [name for name, _ in rows]:
            text = md5s.hex()
            found = [text[at : at + 32] for at in range(0, len(text), 32)]
            return found if UNKNOWN.hex() not in found else ["" if one == UNKNOWN.hex() else one for one in found]
        return self._some(rows, names, signatures, md5s)

    def _some(self, rows: Sequence[Row], names: list[str], signatures: bytes, md5s: bytes) -> list[str]:
        ints = array("q", signatures)
        before = {name: at for at, name in enumerate(names)}
        found = []
        for name, signature in rows:
            at = before.get(name, -1)
            same = at >= 0 and tuple(ints[4 * at : 4 * at + 4]) == signature
            md5 = md5s[16 * at : 16 * at + 16] if same else UNKNOWN
            found.append(md5.hex() if md5 != UNKNOWN else "")
        return found

    def save(self, rows: Sequence[Row], md5s: Sequence[str], began: int) -> None:
        """Remember these rows; `began`: when their files were first looked at, in nanoseconds since 1970.

        "" is not known, and neither is what may have changed since without showing it. What cannot be written (a full
        disk, no home) is not worth failing for.
        """
        packed = _packed(rows)
        if not packed:
            return
        digests = b"".join(
            bytes.fromhex(md5) if md5 and settled(signature, began) else UNKNOWN
            for (_, signature), md5 in zip(rows, md5s, strict=True)
        )
        body = marshal.dumps((self._root, "\0".join(name for name, _ in rows), packed, digests))
        aside = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(MAGIC + zlib.crc32(body).to_bytes(4, "big") + body)
            aside.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()

    def _load(self) -> tuple[list[str], bytes, bytes]:
        """Return names, signatures and MD5s; nothing where there is nothing, or it is not whole."""
        nothing: tuple[list[str], bytes, bytes] = [], b"", b""
        try:
            data = self._path.read_bytes()
        except OSError:
            return nothing
        begin = len(MAGIC) + 4
        if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : begin] != zlib.crc32(data[begin:]).to_bytes(4, "big"):
            return nothing
        root, names, signatures, md5s = marshal.loads(data[begin:])
        return (names.split("\0"), signatures, md5s) if root == self._root else nothing


def settled(signature: Signature, at: int) -> bool:
    """Tell whether a change after `at` (nanoseconds since 1970) would show in the file's times."""
    changed = max(signature[1], signature[2])
    tick = TICK if signature[2] % 1_000_000 else COARSE_TICK
    return changed < at - tick


def now() -> int:
    """Return nanoseconds since 1970, as file systems stamp files."""
    return time.time_ns()


def _packed(rows: Sequence[Row]) -> bytes:
    """Return the signatures of these rows as bytes; none where one of them does not fit."""
    try:
        return array("q", itertools.chain.from_iterable(signature for _, signature in rows)).tobytes()
    except OverflowError:  # some file systems have inodes that need all 64 bits
        return b""
