"""Agents' code on this host: one directory for each content, never changed once it is there."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tarfile
import time
from pathlib import Path
from typing import IO

from monkey_stacks.ssh.there.paths import Place, clear, make, remove_empty, unheard

#: Bytes that a bundle may have, unpacked.
MOST = 1 << 30
#: Seconds that a bundle which nobody uses is kept: somebody may be about to.
IDLE = 600


class NotTheBundle(Exception):
    """What came is not what was announced."""


def install(place: Place, sha256: str, stream: IO[bytes]) -> None:
    """Unpack a gzipped tar whose unpacked bytes have that hash; what is there already stays.

    Where nobody waits for it any more nothing is left. Raises NotTheBundle, OSError.
    """
    make(place.workdir)
    make(place.bundles)
    _clear_stale(place.bundles)
    if place.bundle(sha256).is_dir():
        os.utime(place.bundle(sha256))
        return
    aside = place.bundles / f".{sha256}.{os.getpid()}"
    try:
        if _unpack(stream, aside) != sha256:
            raise NotTheBundle(f"the bundle that came is not {sha256}")
        os.sync()  # which takes long on a busy disk
        if unheard():
            return
        try:
            aside.rename(place.bundle(sha256))
        except OSError:
            if not place.bundle(sha256).is_dir():  # somebody else was faster
                raise
    finally:
        clear(aside)
        remove_empty(place.bundles, place.workdir)


def _unpack(stream: IO[bytes], into: Path) -> str:
    """Unpack into a new directory, and return the hash of what was unpacked."""
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
        raise NotTheBundle(f"what came is no bundle: {exc}") from exc
    return reader.digest.hexdigest()


class _Hashing:
    """A stream that hashes what is read from it, and gives no more than MOST."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._size = stream, 0
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._size += len(data)
        if self._size > MOST:
            raise NotTheBundle(f"what came is larger than {MOST >> 20} MiB")
        self.digest.update(data)
        return data


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, into: Path) -> None:
    parts = member.name.split("/")
    if not member.isreg() or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise NotTheBundle(f"what came has something in it that no bundle has: {member.name!r}")
    path = into.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    source = tar.extractfile(member)
    assert source is not None
    with path.open("xb") as file:
        shutil.copyfileobj(source, file)


def _clear_stale(bundles: Path) -> None:
    """Remove what is left of installations that were cut short."""
    for aside in bundles.glob(".*"):
        if time.time() - aside.stat().st_mtime > IDLE:
            clear(aside)


def present(place: Place) -> list[str]:
    """Return the bundles that are here."""
    try:
        return sorted(path.name for path in place.bundles.iterdir() if re.fullmatch("[0-9a-f]{64}", path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def clear_all(place: Place) -> None:
    """Remove all bundles, and what is left of installations; what is not ours stays. The caller as with `tidy`."""
    for path in (*map(place.bundle, present(place)), *place.bundles.glob(".*")):
        clear(path)
    remove_empty(place.bundles)


def tidy(place: Place) -> None:
    """Remove bundles that no agent of any host here was started with. The caller holds `bundles_locked`."""
    used = set()
    for settings in (place.workdir / "hosts").glob("*/*/*/settings.json"):
        try:
            used.add(json.loads(settings.read_bytes())["bundle"])
        except (OSError, ValueError, KeyError):
            continue
    for sha256 in present(place):
        bundle = place.bundle(sha256)
        if sha256 not in used and time.time() - bundle.stat().st_mtime > IDLE:
            clear(bundle)
