"""A Python that is no package of a machine's: unpacked from a Go module, where uv's own downloads cannot be reached."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.services import CACHE

#: The version of tests/tools/python/go.mod.
EMBEDDED = "python@3.14.6"
MODULE = "github.com/kluctl/go-embed-python"
#: The module's names of processors.
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def embedded_directory() -> Path:
    """Return where the unpacked Python is, or would be."""
    return CACHE / EMBEDDED


def install_embedded() -> None:
    """Unpack the Python of the module, which Go checks by our go.sum: aside, then renamed.

    Raises OSError and CalledProcessError.
    """
    if embedded_directory().exists():
        return
    packed = _fetch_module() / "python/internal/data" / _name_platform()
    aside = CACHE / f"{EMBEDDED}.{os.getpid()}"
    aside.mkdir(parents=True)
    try:
        for entry in json.loads((packed / "files.json").read_text())["files"]:
            _unpack(packed, aside, entry)
        with contextlib.suppress(FileExistsError, OSError):  # somebody else was faster
            aside.rename(embedded_directory())
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _fetch_module() -> Path:
    """Return the directory to which Go unpacked the module."""
    command = ["go", "mod", "download", "-json", MODULE]
    there = Path(__file__).parent / "tools/python"
    said = subprocess.run(command, cwd=there, check=True, stdout=subprocess.PIPE).stdout
    return Path(json.loads(said)["Dir"])


def _name_platform() -> str:
    machine = platform.machine()
    return f"{sys.platform}-{MACHINES.get(machine, machine)}"


def _unpack(packed: Path, into: Path, entry: dict[str, Any]) -> None:
    """Write one file, link or directory of the module's list."""
    target = into / entry["name"]
    if "symlink" in entry:
        target.symlink_to(entry["symlink"])
        return
    mode = stat.S_IMODE(entry["perm"])
    # Go has a bit of its own for a directory.
    if entry["perm"] >> 31:
        target.mkdir()
        return
    if entry.get("compressed"):
        content = gzip.decompress((packed / f"{entry['name']}.gz").read_bytes())
    else:
        content = (packed / entry["name"]).read_bytes()
    target.write_bytes(content)
    target.chmod(mode)
