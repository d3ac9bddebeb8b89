"""A bundle that came, unpacked: nothing of it is trusted before its hash is known."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
from pathlib import Path
from typing import IO

#: Bytes that a bundle may have, unpacked.
_LIMIT = 1 << 30


class WrongBundle(Exception):
    """What came is not what was announced."""


def unpack_bundle(stream: IO[bytes], into: Path) -> str:
    """Unpack into a new directory, and return the hash of what was unpacked. Raises WrongBundle, OSError."""
    into.mkdir(mode=0o700)
    try:
        with gzip.GzipFile(fileobj=stream) as unzipped:
            reader = _Hashing(unzipped)
            with tarfile.open(fileobj=reader, mode="r|") as tar:  # type: ignore[call-overload]  # it only reads
                for member in tar:
                    _write(tar, member, into)
            while reader.read(1 << 20):
                pass
    except (tarfile.TarError, gzip.BadGzipFile, EOFError) as exc:
        raise WrongBundle(f"what came is no bundle: {exc}") from exc
    return reader.digest.hexdigest()


class _Hashing:
    """A stream that hashes what is read from it, and gives no more than _LIMIT."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._size = stream, 0
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._size += len(data)
        if self._size > _LIMIT:
            raise WrongBundle(f"what came is larger than {_LIMIT >> 20} MiB")
        self.digest.update(data)
        return data


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    parts = member.name.split("/")
    if not member.isreg() or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise WrongBundle(f"what came has something in it that no bundle has: {member.name!r}")
    path = into.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with path.open("xb") as file:
        shutil.copyfileobj(source, file)
