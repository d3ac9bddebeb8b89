"""An agent's code, as one file: our packages and what they import, for a host's Python and platform.

The same contents make the same bytes, and their hash is the bundle's name. It is one of the unpacked tar: what
compresses it may differ from machine to machine.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from monkey import origin
from monkey.atomic_write import write_atomically
from monkey.errors import FleetError
from monkey.fleet.user_directories import open_cache_home
from monkey.removal import remove_file
from monkey.store.create import create_object
from monkey.store.store_port import Store
from monkey.untrusted_files import hold_below
from monkey.version import __version__
from monkey_stacks.bundle import wheels
from monkey_stacks.bundle.wheels import WheelTarget

#: Our packages that an agent is made of.
PACKAGES = ("monkey", "monkey_agent")
#: Runs where `python BUNDLE` is called.
_MAIN = b"from monkey_agent.bootstrap.bundle_entry import run_bundle\n\nrun_bundle()\n"
#: Bundles that are kept here.
_KEPT = 12


@dataclass(frozen=True)
class Bundle:
    """A bundle, and where its gzipped tar lies on this machine."""

    sha256: str
    path: Path

    @property
    def key(self) -> str:
        """Return its key in a store."""
        return spell_bundle_key(self.sha256)


def spell_bundle_key(sha256: str) -> str:
    """Return a bundle's key in a store (shared by all projects)."""
    return f"bundle/{sha256}.tar.gz"


def build_bundle(scheme: str, target: WheelTarget, cache: Path | None = None, tools: Sequence[str] = ()) -> Bundle:
    """Return the bundle for agents of a store of this scheme ("" for a directory), built unless it is in `cache`.

    `tools`: programs that are to lie in it, of those that are installed here. Raises FleetError where a wheel is not to
    be had, OSError.
    """
    cache = (cache or open_cache_home()) / "bundles"
    found = wheels.list_distributions(scheme)
    kept = cache / f"{_fingerprint([*found, *wheels.select_installed(tools)], scheme, target)}.json"
    try:
        bundle = Bundle(json.loads(kept.read_bytes())["sha256"], kept.with_suffix(".tar.gz"))
        if bundle.path.exists():
            os.utime(kept)
            return bundle
    except (OSError, ValueError, KeyError):
        pass
    with tempfile.TemporaryDirectory() as scratch:
        beside = {name: path.read_bytes() for name, path in wheels.list_tools(tools, target, Path(scratch)).items()}
        tar = pack_files({**collect_contents(found, target, Path(scratch)), **beside})
    sha256 = hashlib.sha256(tar).hexdigest()
    with hold_below(cache.parent, cache.name, make=True):
        write_atomically(kept.with_suffix(".tar.gz"), gzip.compress(tar, 6, mtime=0))
        write_atomically(kept, json.dumps({"sha256": sha256}).encode())
        _tidy(cache)
    return Bundle(sha256, kept.with_suffix(".tar.gz"))


def describe_version(scheme: str) -> str:
    """Return what tells this agent's code from others', for a store of this scheme, whatever the host: by contents."""
    told = hashlib.sha256(repr(sorted((one.name, one.version) for one in wheels.list_distributions(scheme))).encode())
    for name, path in sorted(list_sources().items()):
        told.update(f"{name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return f"{__version__} ({told.hexdigest()[:12]})"


def collect_contents(
    found: list[importlib.metadata.Distribution], target: WheelTarget, scratch: Path
) -> Mapping[str, bytes]:
    """Return all files of a bundle. Raises FleetError, OSError."""
    said = {"version": __version__, "python": list(target.python), "platform": target.platform, "libc": target.libc}
    files = {name: path.read_bytes() for name, path in wheels.list_wheel_files(found, target, scratch).items()}
    for name, path in list_sources().items():
        files[name] = path.read_bytes()
    return {**files, "__main__.py": _MAIN, "bundle.json": json.dumps(said, sort_keys=True).encode()}


def list_sources() -> dict[str, Path]:
    """Return name to file of our own packages, wherever they are installed."""
    found = {}
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise FleetError(f"{package} is not installed as files here", hint=origin.hint_install())
        root = Path(spec.origin).parent
        for path in root.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found[f"{package}/{path.relative_to(root).as_posix()}"] = path
    return found


def pack_files(files: Mapping[str, bytes]) -> bytes:
    """Return a tar of the files: the same for the same contents."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    return out.getvalue()


def _fingerprint(found: list[importlib.metadata.Distribution], scheme: str, target: WheelTarget) -> str:
    """Return what a bundle is made of, without reading it: our files as they lie there, others by their versions."""
    ours = [(name, path.stat().st_size, path.stat().st_mtime_ns) for name, path in sorted(list_sources().items())]
    theirs = [(one.name, one.version) for one in found]
    told = [3, __version__, scheme, target.python, target.platform, target.libc, target.others, ours, theirs]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _tidy(cache: Path) -> None:
    for kept in sorted(cache.glob("*.json"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
        for path in (kept, kept.with_suffix(".tar.gz")):
            remove_file(path)


async def publish_bundle(store: Store, bundle: Bundle) -> None:
    """Put the bundle into the store, for machines that fetch it themselves. Raises StoreError."""
    if any(item.key == bundle.key for item in await store.list(bundle.key)):
        return
    await create_object(store, bundle.key, bundle.path.read_bytes())
