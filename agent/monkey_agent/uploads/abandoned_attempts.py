"""Attempts that ran when an earlier agent was killed: their logs and metrics are still on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection
from pathlib import Path

from monkey.errors import FleetError, StoreError
from monkey.protocol import entry_shape
from monkey.protocol.layout import Keys
from monkey.removal import remove_below
from monkey.store.store_port import Store
from monkey.untrusted_files import HeldDirectory, UntrustedFile, hold_below, is_directory, load_json
from monkey_agent.execution.workspace import LOG_FILE, Workspace
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.logs.masking import LogMask
from monkey_agent.uploads.job_outputs import OutputUpload
from monkey_agent.uploads.metric_files import MetricFiles

#: The directory of them in the state.
_ABANDONED = "abandoned"
#: In a workspace: the names of the secrets that its attempt had.
SECRETS = "secrets.json"
#: In a workspace: the limit of its attempt's log, if that has one.
LIMIT_FILE = "log_limit.json"
#: Bytes of them that are read.
_MOST_BYTES = 1 << 20


class AbandonedAttempts:
    """The workspaces of such attempts, in `abandoned/` of the state directory."""

    def __init__(self, state: Path, recorded: Collection[str], read_secrets: Callable[[list[str]], dict[str, str]]):
        """Link logs and metrics of workspaces there, but for those `recorded`: the next attempt continues from these.

        `read_secrets` returns the values of secrets, or raises FleetError. Raises OSError.
        """
        self._state, self._read_secrets = state, read_secrets
        self._jobs: dict[str, list[Path]] = {}
        with hold_below(state, _ABANDONED, make=True):
            for path in (state / "attempts").glob("*.*"):
                if path.name not in recorded:
                    with contextlib.suppress(OSError):
                        _link_files(path, state)
            for path in sorted((state / _ABANDONED).glob("[!.]*")):
                self._jobs.setdefault(path.name.partition(".")[0], []).append(path)
        self._lock = asyncio.Lock()

    async def upload(self, store: Store, keys: Keys, job: str) -> None:
        """Bring what earlier attempts at a job left to the store, and remove it. Raises StoreError."""
        async with self._lock:
            while paths := self._jobs.get(job):
                path = paths[-1]
                k = path.name.partition(".")[2]
                if k.isdecimal() and is_directory(str(path)):
                    with contextlib.suppress(OSError):
                        await self._upload(store, keys.out(job, int(k)), Workspace(job, str(path)))
                await asyncio.to_thread(remove_below, self._state, f"{_ABANDONED}/{path.name}")
                paths.pop()
            self._jobs.pop(job, None)

    async def upload_all(self, store: Store, keys: Keys) -> None:
        """Bring all of it to the store, as far as the store takes it; the rest stays for the next agent."""
        with contextlib.suppress(StoreError):
            for job in list(self._jobs):
                await self.upload(store, keys, job)

    async def _upload(self, store: Store, prefix: str, space: Workspace) -> None:
        names = MetricFiles(space.metrics).names()
        files = {name: UntrustedFile(space.metrics, name) for name in names}
        await OutputUpload(store, f"{prefix}metrics/").send(files)
        with contextlib.suppress(FleetError, ValueError):  # what cannot be masked is not uploaded
            log = AttemptLog(store, f"{prefix}log/", space.log, self._mask(space), _read_limit(space))
            await log.ship()

    def _mask(self, space: Workspace) -> LogMask | None:
        try:
            names = load_json(f"{space.root}/{SECRETS}", _MOST_BYTES)
        except FileNotFoundError:
            return None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"{space.root}/{SECRETS}: is no list of names")  # a job can put anything there
        return LogMask(self._read_secrets(names).values())


def _read_limit(space: Workspace) -> int:
    """Return the limit of the log; 0 for none. Raises ValueError."""
    try:
        limit = load_json(f"{space.root}/{LIMIT_FILE}", _MOST_BYTES)
    except FileNotFoundError:
        return 0
    if not entry_shape.is_count(limit):
        raise ValueError(f"{space.root}/{LIMIT_FILE}: is no number of bytes")
    return int(limit)


def _link_files(path: Path, state: Path) -> None:
    """Link what a workspace has of a log and of metrics, if it has any; InfluxDB's spool moves the originals."""
    space = Workspace("", str(path))
    names = [f"metrics/{name}" for name in MetricFiles(space.metrics).names()]
    with HeldDirectory(space.root) as held:
        if not names and not os.stat(LOG_FILE, dir_fd=held.fd, follow_symlinks=False).st_size:
            return
        to = state / _ABANDONED / path.name
        aside = to.with_name(f".{to.name}")
        remove_below(state, f"{_ABANDONED}/{aside.name}")
        (aside / "metrics").mkdir(parents=True)
        for name in (*names, LOG_FILE, SECRETS, LIMIT_FILE):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                at, own = held.reach(name)
                os.link(own, aside / name, src_dir_fd=at, follow_symlinks=False)
        aside.rename(to)
