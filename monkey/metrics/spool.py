# ruff: noqa: PTH110, PTH112, PTH123, PTH208
# Paths are plain strings here, as those of workspaces are.
"""The spool: points that InfluxDB has not confirmed yet, on the disk of the machine that made them.

The agent's directory `metrics/` has one directory for each InfluxDB that its sweeps name, with

    influx.json      Which InfluxDB it is, with the names of secrets, never their values.
    sources/NAME     An attempt's tags, and where its metrics files are while it runs.
    kept/NAME/       Its metrics files when it is over: the directory itself, moved out of the attempt's workspace.
    points/N         Lines of points. A new file is started when one has a mebibyte.
    offsets.json     How far each file was confirmed. The exporter writes it, and the two below.
    dead.lp          Lines that were refused for good, with the reason.
    state.json       The exporter's state, for heartbeats.

The agent adds points, and the exporter removes them. Either may be killed at any moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.removal import remove_below
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.untrusted_files import HeldDirectory, hold_below, is_directory, move_directory, open_entry

#: Bytes after which a file of points is closed; it is removed when all of it was confirmed.
SEGMENT = 1 << 20


class Spool:
    """The agent's side of one InfluxDB's directory."""

    def __init__(self, root: str, influx: InfluxSettings) -> None:
        """Make the directory of `influx` below `root` unless it exists. Raises OSError."""
        told = json.dumps(influx.to_json(), sort_keys=True).encode()
        self.influx = influx
        place = hashlib.sha256(told).hexdigest()[:16]
        self.path = f"{root}/{place}"
        for name in ("sources", "kept", "points"):
            with hold_below(root, f"{place}/{name}", make=True):
                pass
        write_atomically(f"{self.path}/influx.json", told, mode=0o600)
        self._number = max(list_segments(self.path), default=0)
        self._fd = -1
        self._size = 0
        #: Bytes of points that could not be written to the disk.
        self.dropped = 0

    def register(self, name: str, directory: str, tags: Mapping[str, str]) -> None:
        """Record that the exporter is to send an attempt's metrics files from `directory`, as they grow.

        Raises OSError.
        """
        _write_source(self.path, name, {"directory": directory, "tags": dict(tags)})

    def keep(self, name: str, directory: str) -> None:
        """Move the metrics directory of an ended attempt into the spool; leave an empty one there. Raises OSError."""
        with hold_below(self.path, "kept") as kept:
            move_directory(directory, name, kept)
        above, _, own = directory.rpartition("/")
        root = open_entry(above, step=True)
        try:
            os.mkdir(own, dir_fd=root)
            os.utime(own, ns=(0, 0), dir_fd=root, follow_symlinks=False)
        finally:
            os.close(root)

    def forget(self, name: str) -> None:
        """Remove the source of an attempt that has logged nothing."""
        remove_below(self.path, f"sources/{name}")

    def add(self, lines: bytes) -> None:
        """Add whole lines of points, to be sent. Never raises: bytes that the disk does not take are counted."""
        try:
            if self._fd < 0 or self._size >= SEGMENT:
                self._begin()
            written = os.write(self._fd, lines)
            self._size += written
            if written < len(lines):
                raise OSError
        except OSError:
            self.dropped += len(lines)
            self._size = SEGMENT  # a torn line is the last one of its file

    def _begin(self) -> None:
        self.close()
        self._number += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        with hold_below(self.path, "points") as points:
            self._fd = os.open(str(self._number), flags, 0o600, dir_fd=points)
        self._size = 0

    def close(self) -> None:
        """Close the file of points."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _write_source(path: str, name: str, told: Mapping[str, Any]) -> None:
    with hold_below(path, "sources"):
        write_atomically(f"{path}/sources/{name}", json.dumps(told).encode(), mode=0o600)


def list_spools(root: str) -> Iterator[str]:
    """Yield the directories of all InfluxDBs below `root`."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(root)):
            path = f"{root}/{name}"
            if is_directory(path) and os.path.exists(f"{path}/influx.json"):
                yield path


def read_influx_settings(path: str) -> InfluxSettings:
    """Return the InfluxDB whose directory `path` is. Raises OSError, ValueError, TypeError."""
    return InfluxSettings.from_json(load_json(f"{path}/influx.json"))


def rescue_points(state: str, root: str) -> None:
    """Move what attempts of an earlier agent logged into the spools below `root`, before their workspaces are removed.

    `state` is the agent's directory, which has these workspaces. Files of a workspace below its `left/` are sent from
    there, and moved when that workspace is given back.
    """
    for path in list_spools(root):
        for name in list_names(f"{path}/sources"):
            with contextlib.suppress(OSError), hold_below(path, "kept") as kept:
                left = f"{state}/left/{name}/metrics"
                if os.path.isdir(left):
                    _write_source(path, name, load_json(f"{path}/sources/{name}") | {"directory": left})
                elif not is_directory(f"{path}/kept/{name}"):
                    move_directory(f"{state}/attempts/{name}/metrics", name, kept)


def is_owed(path: str) -> bool:
    """Return whether an InfluxDB's directory has anything that may not have been sent."""
    return any(list_names(f"{path}/{what}") for what in ("sources", "points"))


def list_segments(path: str) -> list[int]:
    """Return the numbers of the files of points, in their order."""
    return sorted(int(name) for name in list_names(f"{path}/points") if name.isdigit())


def list_names(directory: str) -> list[str]:
    """Return the names in a directory, without those of files in writing (".…"); none where it is a link, or none."""
    try:
        with HeldDirectory(directory) as held:
            return [name for name in os.listdir(held.fd) if not name.startswith(".")]
    except OSError:
        return []


def load_json(path: str) -> dict[str, Any]:
    """Return an object of JSON from a file; {} where it is missing or no such object. Raises OSError otherwise."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
