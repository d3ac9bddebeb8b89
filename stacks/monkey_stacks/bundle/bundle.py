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
from monkey.concurrency import run_in_lanes
from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.user_directories import open_cache_home
from monkey.plan.sizes import format_size
from monkey.removal import remove_file
from monkey.store.content.upload_progress import Begin, show_no_progress
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
#: Bytes of the tar in one part, and parts that are sent at once: on a slow line, none takes as long as a request may.
_PART_BYTES, _LANES = 4 * 2**20, 2


@dataclass(frozen=True)
class Bundle:
    """A bundle, and where its gzipped tar lies on this machine.

    Each part is a piece of the tar, gzipped by itself: one that another machine sent fits to ours.
    """

    sha256: str
    path: Path
    #: Sizes of the parts in bytes, in their order in the file.
    parts: tuple[int, ...]

    @property
    def keys(self) -> list[str]:
        """The keys of its parts in a store (shared by all projects)."""
        return [f"bundle/{self.sha256}/{number}" for number in range(len(self.parts))]

    def read_parts(self) -> dict[str, bytes]:
        """Return the bytes of its parts, by their keys. Raises OSError."""
        with self.path.open("rb") as file:
            return {key: file.read(size) for key, size in zip(self.keys, self.parts, strict=True)}


def build_bundle(scheme: str, target: WheelTarget, cache: Path | None = None, tools: Sequence[str] = ()) -> Bundle:
    """Return the bundle for agents of a store of this scheme ("" for a directory), built unless it is in `cache`.

    `tools`: programs that are to lie in it, of those that are installed here. Raises FleetError where a wheel is not to
    be had, OSError.
    """
    cache = (cache or open_cache_home()) / "bundles"
    found = wheels.list_distributions(scheme)
    kept = cache / f"{_fingerprint([*found, *wheels.select_installed(tools)], scheme, target)}.json"
    try:
        bundle = _recall(kept)
        if bundle.path.exists():
            os.utime(kept)
            return bundle
    except (OSError, ValueError, KeyError):
        pass
    with tempfile.TemporaryDirectory() as scratch:
        beside = {name: path.read_bytes() for name, path in wheels.list_tools(tools, target, Path(scratch)).items()}
        tar = pack_files({**collect_contents(found, target, Path(scratch)), **beside})
    pieces = (tar[at : at + _PART_BYTES] for at in range(0, len(tar), _PART_BYTES))
    parts = [gzip.compress(piece, 6, mtime=0) for piece in pieces]
    said = {"sha256": hashlib.sha256(tar).hexdigest(), "parts": [*map(len, parts)]}
    with hold_below(cache.parent, cache.name, make=True):
        write_atomically(kept.with_suffix(".tar.gz"), b"".join(parts))
        write_atomically(kept, json.dumps(said).encode())
        _tidy(cache)
    return _recall(kept)


def _recall(kept: Path) -> Bundle:
    said = json.loads(kept.read_bytes())
    return Bundle(said["sha256"], kept.with_suffix(".tar.gz"), tuple(said["parts"]))


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


async def publish_bundle(store: Store, bundle: Bundle, say: Say, bars: Begin = show_no_progress) -> None:
    """Put the parts that the store lacks into it, for machines that fetch them themselves. Raises StoreError, OSError.

    Each part is a file of its own: what is there after a break is not sent again.
    """
    there = {item.key for item in await store.list(f"bundle/{bundle.sha256}/")}
    lacking = {key: part for key, part in bundle.read_parts().items() if key not in there}
    if not lacking:
        return
    size = sum(map(len, lacking.values()))
    moved = bars("agent's code: uploading", size, len(lacking))
    with tempfile.TemporaryDirectory(prefix="monkey-bundle-") as scratch:

        async def send(key: str) -> None:
            aside = Path(scratch, key.rpartition("/")[2])
            aside.write_bytes(lacking[key])  # noqa: ASYNC240 - a small local file
            await store.put_file(key, aside)
            moved(1, len(lacking[key]))

        await run_in_lanes(lacking, send, _LANES)
    say(f"{format_size(size)} of the agent's code uploaded")
