# ruff: noqa: PTH116
"""The network mount that a directory lies on, by the kernel's list of mounts; and the mounts that a store cannot be on.

Machines that share a mount learn of each other's writes through the caches of their kernels. A store is safe on a mount
whose caches can be passed by.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from monkey.errors import StoreUnsafe

#: Types of file systems that machines share.
_SHARED = re.compile(r"nfs|cifs|smb|lustre|gpfs|beegfs|ceph|glusterfs|orangefs|panfs|9p|afs|fuse\.(?!portal|gvfsd)")

#: The kernel's list of this process's mounts. macOS has none.
MOUNTS = Path("/proc/self/mountinfo")

#: Largest number of seconds for which an NFSv3 mount with `nocto` may believe an attribute. Such a mount does not ask
#: the server as a file is opened. With 120 s, living agents looked dead for the 90 s after which claims are taken over.
MOST_CACHED_SECONDS = 60


@dataclass(frozen=True, slots=True)
class NetworkMount:
    """One mount of a file system that machines share."""

    #: Device number of its files, as "0:26".
    device: str
    #: Where it is mounted.
    place: str
    type: str
    #: What is mounted: "filer:/export".
    source: str
    #: The options of the file system, as the kernel lists them.
    options: str

    @property
    def server(self) -> str:
        """Return the server's name or address, as it was mounted."""
        return self.source.partition(":/")[0]

    def describe(self) -> str:
        """Return the mount in words: "NFS mount, server filer"."""
        kind = "NFS" if self.type.startswith("nfs") else self.type
        return f"{kind} mount, server {self.server}"

    def count_option(self, name: str, default: int) -> int:
        """Return the number of the option `name`; `default` where it is not listed."""
        found = re.search(rf"(?:^|,){name}=(\d+)", self.options)
        return int(found[1]) if found else default

    def has_option(self, name: str) -> bool:
        """Tell whether the option `name`, which has no value, is set."""
        return name in self.options.split(",")


def list_network_mounts(mounts: Path = MOUNTS) -> list[NetworkMount]:
    """Return the mounts of shared file systems; none where the kernel has no list."""
    try:
        text = mounts.read_text(errors="surrogateescape")
    except OSError:
        return []
    return list(_parse_mounts(text.splitlines()))


def _parse_mounts(lines: Iterable[str]) -> Iterator[NetworkMount]:
    for line in lines:
        before, _, after = line.partition(" - ")
        if _SHARED.match(after):
            fields, [type_, source, options] = before.split(), [*after.split(), "", "", ""][:3]
            yield NetworkMount(fields[2], _unescape(fields[4]), type_, _unescape(source), options)


def list_mounted_sources(mounts: Path = MOUNTS) -> dict[str, tuple[str, str]] | None:
    """Return type and source of what is mounted at each place, the topmost; None where the kernel has no list.

    Type "autofs" stands where a mount waits for a first access.
    """
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    found = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, source = [*after.split(), "", ""][:2]
        found[_unescape(before.split()[4])] = kind, _unescape(source)
    return found


def _unescape(text: str) -> str:
    """Return a field as it was before the kernel wrote its blanks and backslashes in octal."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def find_mount_by_text(path: str, mounts: Path = MOUNTS) -> NetworkMount | None:
    """Return the network mount whose place `path` is below, by its text alone: the server is not asked."""
    found = [one for one in list_network_mounts(mounts) if f"{path}/".startswith(f"{one.place.rstrip('/')}/")]
    return max(found, key=lambda one: len(one.place), default=None)


def find_network_mount(path: str, mounts: Path = MOUNTS) -> NetworkMount | None:
    """Return the network mount that `path` lies on, or would; None for another file system. Links are followed."""
    listed = list_network_mounts(mounts)
    if not listed:
        return None
    device = _find_device(path)
    return next((one for one in listed if one.device == device), None)


def _find_device(path: str) -> str:
    """Return the device of `path`, or of the nearest directory above that is there."""
    for place in (path, *map(str, Path(path).parents)):
        try:
            device = os.stat(place).st_dev
        except OSError:
            continue
        return f"{os.major(device)}:{os.minor(device)}"
    return ""


def check_network_mount(path: str, mounts: Path = MOUNTS) -> NetworkMount | None:
    """Return the network mount that `path` lies on, or would. Raises StoreUnsafe where no store can be on it.

    NFSv3 with `nocto` does not ask the server as a file is opened. Such a client sees a change once its attributes
    expire.
    """
    mount = find_network_mount(path, mounts)
    if mount is None or mount.type != "nfs" or not mount.has_option("nocto"):
        return mount
    seconds = max(mount.count_option(name, 60) for name in ("acregmax", "acdirmax"))
    if mount.count_option("vers", 3) > 3 or seconds <= MOST_CACHED_SECONDS:
        return mount
    raise StoreUnsafe(
        f"{path} is not safe as a store: expected an NFS mount that sees what other machines write, found "
        f"{mount.source} on {mount.place} with 'nocto' and attributes cached for {seconds} s ({mount.options})",
        hint="mount it without 'nocto' (best), with 'actimeo=60' or less, or with 'vers=4.1'",
    )


def describe_store_mount(url: str, mounts: Path = MOUNTS) -> tuple[str, str]:
    """Return what to add of the mount to words about the store at `url`, and a hint; "" for each that there is not."""
    mount = None if "://" in url else find_network_mount(url, mounts)
    if mount is None:
        return "", ""
    late = "mount it without 'nocto': what other machines write is seen late" if mount.has_option("nocto") else ""
    return f" ({mount.describe()})", late
