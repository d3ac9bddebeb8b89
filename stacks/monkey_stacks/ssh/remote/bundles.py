"""Agents' code on this host: one directory for each content, never changed once it is there."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import IO, Protocol

from monkey.untrusted_files import hold_below, make_private_directory
from monkey_stacks.bundle.unpack import WrongBundle, unpack_bundle
from monkey_stacks.ssh.remote.paths import FleetDirectory, clear_tree, is_unheard, remove_empty

#: Seconds that a bundle which nobody uses is kept: somebody may be about to.
IDLE = 600


class BundlePlace(Protocol):
    """A directory that has bundles."""

    workdir: Path
    bundles: Path

    def bundle(self, sha256: str) -> Path:
        """Return the path of a bundle, whether it exists or not."""


def install_bundle(place: BundlePlace, sha256: str, stream: IO[bytes]) -> None:
    """Unpack a gzipped tar whose unpacked bytes have that hash; what is there already stays.

    Where no caller waits for it any more nothing is left. Raises WrongBundle, OSError.
    """
    make_private_directory(place.workdir)
    with hold_below(place.bundles.parent, place.bundles.name, make=True):
        _clear_stale(place)
    if place.bundle(sha256).is_dir():
        os.utime(place.bundle(sha256))
        return
    aside = place.bundles / f".{sha256}.{os.getpid()}"
    try:
        if unpack_bundle(stream, aside) != sha256:
            raise WrongBundle(f"the bundle that came is not {sha256}")
        os.sync()  # which takes long on a busy disk
        if is_unheard():
            return
        try:
            aside.rename(place.bundle(sha256))
        except OSError:
            if not place.bundle(sha256).is_dir():  # somebody else was faster
                raise
    finally:
        clear_tree(aside, place.workdir)
        remove_empty(place.bundles, place.workdir)


def _clear_stale(place: BundlePlace) -> None:
    """Remove what is left of installations that were cut short."""
    for aside in place.bundles.glob(".*"):
        if time.time() - aside.lstat().st_mtime > IDLE:
            clear_tree(aside, place.workdir)


def list_bundles(place: FleetDirectory) -> list[str]:
    """Return the bundles that are here."""
    try:
        return sorted(path.name for path in place.bundles.iterdir() if re.fullmatch("[0-9a-f]{64}", path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def clear_all(place: FleetDirectory) -> None:
    """Remove all bundles, and what is left of installations; what is not ours stays. The caller holds their lock."""
    for path in (*map(place.bundle, list_bundles(place)), *place.bundles.glob(".*")):
        clear_tree(path, place.workdir)
    remove_empty(place.bundles)


def remove_old_bundles(place: FleetDirectory) -> None:
    """Remove bundles that no agent of any host here was started with. The caller holds `bundles_locked`."""
    used = set()
    for settings in (place.workdir / "hosts").glob("*/*/*/settings.json"):
        try:
            used.add(json.loads(settings.read_bytes())["bundle"])
        except (OSError, ValueError, KeyError):
            continue
    for sha256 in list_bundles(place):
        bundle = place.bundle(sha256)
        if sha256 not in used and time.time() - bundle.stat().st_mtime > IDLE:
            clear_tree(bundle, place.workdir)
