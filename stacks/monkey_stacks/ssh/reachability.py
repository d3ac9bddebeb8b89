"""The check whether hosts can reach a store at all, as far as this machine knows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from monkey.errors import FleetError
from monkey.spec.project.ssh_host import parse_ssh_host

#: File systems that other machines may share.
_SHARED = re.compile(r"nfs|cifs|smb|lustre|gpfs|beegfs|ceph|glusterfs|orangefs|panfs|9p|afs|fuse\.(?!portal|gvfsd)")
#: Hosts that are this machine.
_HERE = ("localhost", "127.0.0.1", "::1")


def check_reachability(url: str, hosts: Sequence[str]) -> None:
    """Raise FleetError for a store in a directory that only this machine has, though other hosts are to use it."""
    others = [host for host in hosts if parse_ssh_host(host).name not in _HERE]
    if "://" in url or not others or is_shared(Path(url)):
        return
    raise FleetError(
        f"{', '.join(others)} cannot reach the store: {url} is a directory of this machine",
        hint="write a store that all can reach into monkey.yaml: a bucket (store: s3://bucket/prefix), or a directory "
        f"on a host that all reach by SSH: store: ssh://{others[0]}/~/monkey-store",
    )


def is_shared(path: Path) -> bool:
    """Return whether a path is on a file system that other machines may share."""
    return _SHARED.match(find_file_system(path)) is not None


def find_file_system(path: Path) -> str:
    """Return the type of the file system that a path is on, or would be; "" where it is unknown."""
    there = os.path.realpath(next(one for one in (path, *path.parents) if one.exists()))
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ""
    # The last one counts: it lies over those before. Spaces are told as octal numbers.
    found = [(_plain(mount[1]), mount[2]) for mount in mounts if _within(there, _plain(mount[1]))]
    return max(found, key=lambda each: len(each[0]))[1] if found else ""


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")
