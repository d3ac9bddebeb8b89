"""The file systems that a provider wants mounted: without one of them, jobs would run on an empty directory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from monkey.spec.project.mounts import Mount
from monkey.store.directory.network_mount import MOUNTS, list_mounted_sources

#: Seconds for which an answer holds.
_FRESH = 1.0
#: Seconds between accesses to a mount that waits for one.
_PAUSE = 10.0


class RoomGuard(Protocol):
    """What may hinder all jobs on this machine."""

    @property
    def lacking(self) -> str:
        """What hinders jobs now, in words; "" for nothing."""


class MountGuard:
    """Whether all mounts are there, by the kernel's list. The agent asks no file system itself: a server may hang."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        other: RoomGuard,
        listed: Path = MOUNTS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Want these `mounts`, and ask the `other` guard where they are there."""
        self._mounts, self._other, self._listed, self._now = mounts, other, listed, now
        self._known, self._since = "", float("-inf")
        self._asking: dict[str, threading.Thread] = {}
        self._asked: dict[str, float] = {}

    @property
    def lacking(self) -> str:
        """See `RoomGuard.lacking`."""
        if self._mounts and self._now() - self._since > _FRESH:
            self._known, self._since = self._look(), self._now()
        return f"{self._known}: no job begins until that is right" if self._known else self._other.lacking

    @property
    def missing(self) -> str:
        """Which mount is not there as wanted, in words; "" where all are."""
        return self._look()

    def _access(self, path: str) -> None:
        """Have a mount made that waits for an access, by a process of its own: a server that hangs holds only that."""
        asking = self._asking.get(path)
        if (asking and asking.is_alive()) or self._now() - self._asked.get(path, -_PAUSE) < _PAUSE:
            return
        self._asked[path] = self._now()
        self._asking[path] = threading.Thread(target=_access_mount, args=(path,), daemon=True)
        self._asking[path].start()

    def _look(self) -> str:
        there = list_mounted_sources(self._listed)
        for mount in self._mounts:
            kind, source = "", "" if there is None and os.path.ismount(mount.path) else None
            if there is not None:
                kind, source = there.get(mount.path, (kind, source))
            if kind == "autofs":
                self._access(mount.path)
            if source is None or kind == "autofs":
                wanted = f": expected {mount.source}" if mount.source else ""
                return f"{mount.path} is not mounted{wanted}"
            if there is not None and mount.source and source.rstrip("/") != mount.source.rstrip("/"):
                return f"{mount.path}: expected {mount.source}, found {source} mounted"
        return ""


def _access_mount(path: str) -> None:
    with contextlib.suppress(OSError):  # asked again later
        null = subprocess.DEVNULL
        subprocess.run(["stat", f"{path}/."], stdin=null, stdout=null, stderr=null, cwd="/", start_new_session=True)
