# ruff: noqa: PTH102, PTH103, PTH106, PTH110, PTH119, PTH120, PTH208
# Paths are plain strings here: this is part of the supervisor, which starts without pathlib.
"""Limits of memory that the kernel keeps: a control group for each job, of version 2 or of version 1.

Version 2 needs a group that was delegated to us (`Delegate=memory` of a systemd unit), with no process of others in it.
Version 1 needs root. The process that starts a job enters the job's group before, and leaves it after: so the job
begins there.
"""

from __future__ import annotations

import errno
import os
import sys
import zlib

from monkey.processes.process_tree import read_proc

#: The group of agent and supervisor, since version 2 wants processes in leaves only.
_LEAF = "monkey-agent"
#: Times that processes are moved there: one of them may start another meanwhile.
_TRIES = 20


class MemoryGroup:
    """The control group of one job."""

    def __init__(self, path: str, version: int) -> None:
        """Stand for the directory `path`, which exists."""
        self._path, self._version = path, version

    def enter(self) -> None:
        """Move this process here. Raises OSError."""
        write_control(f"{self._path}/cgroup.procs", "0")

    def limit(self, most: int) -> bool:
        """Let the kernel end the job when it takes more than `most` bytes, without swap, which would hide that.

        Returns False where the job has more already. Raises OSError.
        """
        if self._version == 1:
            try:
                write_control(f"{self._path}/memory.limit_in_bytes", str(most))
            except OSError as exc:
                if exc.errno == errno.EBUSY:
                    return False
                raise
        for name, value in _EXTRAS[self._version]:
            try:
                write_control(f"{self._path}/{name}", value or str(most))
            except OSError:  # a kernel without swap, or an older one
                continue
        if self._version == 2:
            write_control(f"{self._path}/memory.max", str(most))
        return True

    def has_killed(self) -> bool:
        """Return whether the kernel ended any process of the job, as the job had taken too much."""
        lines = read_proc(f"{self._path}/{_KILLS[self._version]}").splitlines()
        return any(line.startswith(b"oom_kill ") and int(line.split()[1]) > 0 for line in lines)

    def peak(self) -> int:
        """Return the most bytes that the job held; 0 where the kernel does not tell."""
        return int(read_proc(f"{self._path}/{_PEAKS[self._version]}") or 0)

    def remove(self) -> bool:
        """Remove the group; returns False while processes are in it, or were until just now."""
        return _remove(self._path)


#: After the limit of version 1, before that of version 2: files, and what is written; "": the limit.
_EXTRAS = {1: [("memory.memsw.limit_in_bytes", "")], 2: [("memory.oom.group", "1"), ("memory.swap.max", "0")]}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}
_PEAKS = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}


class MemoryGroups:
    """The control groups of one supervisor's jobs."""

    def __init__(self, base: str, home: str, version: int, state: str) -> None:
        """Make groups in `base`, and belong to `home` ourselves; `state`: the agent's state directory."""
        self._base, self._home, self.version = base, home, version
        self._prefix = f"{base}/monkey-{zlib.crc32(os.fsencode(state)):08x}-"

    def make(self, key: int) -> MemoryGroup:
        """Return a new group for the job `key`. Raises OSError."""
        path = f"{self._prefix}{key}"
        _remove(path)  # of an agent that was killed
        os.mkdir(path, 0o700)
        return MemoryGroup(path, self.version)

    def leave(self) -> None:
        """Move this process out of a job's group. Raises OSError."""
        write_control(f"{self._home}/cgroup.procs", "0")

    def clear(self) -> None:
        """Remove the groups that an agent of this state directory left, as far as no process is in them."""
        try:
            names = os.listdir(self._base)
        except OSError:
            return
        for name in names:
            if f"{self._base}/{name}".startswith(self._prefix):
                _remove(f"{self._base}/{name}")


def find_memory_groups(state: str, ours: list[int]) -> MemoryGroups | None:
    """Return where this process may limit memory; None where it may not.

    `ours`: all processes that may be moved, ourselves among them. `state`: the agent's state directory.
    """
    for line in os.fsdecode(read_proc("/proc/self/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        try:
            if "memory" in controllers.split(","):
                found = _find_first("/sys/fs/cgroup/memory", path, state)
            elif number == "0":
                found = _find_second(path, state, ours)
            else:
                continue
        except OSError:
            continue
        if found:
            found.clear()
            return found
    return None


def has_first_version() -> bool:
    """Return whether this process may limit memory by control groups of version 1; changes nothing."""
    for line in os.fsdecode(read_proc("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(",") and _find_first("/sys/fs/cgroup/memory", path, ""):
            return True
    return False


def find_container_group(pid: int, client: int) -> MemoryGroup | None:
    """Return the control group of the process `pid` of a container; None where the runtime's client is in it, too."""
    found = _read_group(pid)
    return MemoryGroup(*found) if found and found != _read_group(client) else None


def _read_group(pid: int) -> tuple[str, int] | None:
    for line in os.fsdecode(read_proc(f"/proc/{pid}/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return f"/sys/fs/cgroup/memory{path}", 1
        if number == "0":
            return f"/sys/fs/cgroup{path}", 2
    return None


def _find_first(root: str, path: str, state: str) -> MemoryGroups | None:
    for home in (root + path.rstrip("/"), root):  # in a container, the path may be the host's
        if os.access(f"{home}/cgroup.procs", os.W_OK) and os.access(home, os.W_OK):
            return MemoryGroups(home, home, 1, state)
    return None


def _find_second(path: str, state: str, ours: list[int]) -> MemoryGroups | None:
    root = "/sys/fs/cgroup"
    if not os.path.exists(f"{root}/cgroup.controllers"):
        root += "/unified"
    home = root + path.rstrip("/")
    base = os.path.dirname(home) if os.path.basename(home) == _LEAF else home
    if b"memory" not in read_proc(f"{base}/cgroup.controllers").split() or not _is_delegated(base):
        return None
    home = f"{base}/{_LEAF}"
    for _ in range(_TRIES):
        there = [int(pid) for pid in read_proc(f"{base}/cgroup.procs").split()]
        if not set(there) <= set(ours):
            return None  # somebody else's
        os.makedirs(home, exist_ok=True)
        for pid in there:
            write_control(f"{home}/cgroup.procs", str(pid))
        try:
            write_control(f"{base}/cgroup.subtree_control", "+memory")
        except OSError as exc:
            if exc.errno != errno.EBUSY:
                raise
            continue
        return MemoryGroups(base, home, 2, state)
    return None


def _is_delegated(base: str) -> bool:
    """Return whether a group is ours to divide. Root may write everywhere, so systemd's note of it counts."""
    files = ("", "/cgroup.procs", "/cgroup.subtree_control")
    if not all(os.access(f"{base}{name}", os.W_OK) for name in files):
        return False
    return os.geteuid() != 0 or any(_attribute(base, name) == b"1" for name in ("trusted.delegate", "user.delegate"))


def _attribute(path: str, name: str) -> bytes:
    if sys.platform != "linux":
        return b""
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""


def write_control(path: str, text: str) -> None:
    """Write a kernel's file at once. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _remove(path: str) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
