# ruff: noqa: PTH110, PTH208
# Paths are plain strings here: this is part of the supervisor, which starts without pathlib and runs once a job.
"""The processes of this machine, as the kernel shows them.

This module imports next to nothing, since supervisors start with it. Without a /proc (macOS), `ps` gives the parents,
and nothing else: a child whose parent died is found by its process group alone.
"""

from __future__ import annotations

import os
import signal
import sys

#: Whether the kernel lists a process's children (CONFIG_PROC_CHILDREN); else all of /proc is read for them.
LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
HAS_PROC = os.path.exists("/proc/self/stat")
#: Variable in the environment of supervisor and jobs that says whose they are: "STATE_DIRECTORY:KEY".
MARK = "MONKEY_AGENT"
#: Digits that the number of a job has at most.
_KEY_DIGITS = 18
#: The key of builds of environments ("build.TOKEN"), which are the agent's own children and outlive a supervisor.
BUILD = "build"

#: Options of prctl(2).
_SET_PARENT_DEATH_SIGNAL = 1
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
#: Where `_stat` has the end of the command line; its start is the field before.
_ARGUMENTS_END = 46

KILL, STOP, CONT = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT


def read_proc(path: str) -> bytes:
    """Return the content of a file of /proc; b"" where it is gone or not ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


def list_processes() -> list[int]:
    """Return the PIDs of all processes; none without a /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third (state) on; the second may have any text, even brackets."""
    return read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def read_start_time(pid: int) -> float | None:
    """Return the start time of a process, in seconds since the boot (to 10 ms); None where it is not known."""
    fields = _stat(pid)
    return int(fields[19]) / os.sysconf("SC_CLK_TCK") if len(fields) > 19 else None


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, and of the children that it waited for; 0 where it is not known."""
    return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def is_working(pid: int) -> bool:
    """Return whether a process runs, or would if it had a CPU, or waits for a disk."""
    return _stat(pid)[:1] in ([b"R"], [b"D"])


def is_dead(pid: int) -> bool:
    """Return whether a process is gone, or a zombie."""
    return _stat(pid)[:1] in ([], [b"Z"], [b"X"])


def read_mark(pid: int) -> str | None:
    """Return the mark in the environment that a process started with; None where it has none, or hides it."""
    _, found, rest = (b"\0" + read_proc(f"/proc/{pid}/environ")).partition(f"\0{MARK}=".encode())
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None


def read_marked_key(pid: int, state: str) -> int | None:
    """Return the number of the job that a process's mark names; None for a mark of another agent than `state`'s.

    A job may start processes with any mark, so nothing that it can hold raises an error.
    """
    whose, _, key = (read_mark(pid) or "").rpartition(":")
    return int(key) if whose == state and key.isascii() and key.isdigit() and len(key) <= _KEY_DIGITS else None


def list_lock_holders(lock: int) -> list[int]:
    """Return the processes that hold the lock of our descriptor `lock`, by the descriptor or copies of it."""
    inode, found = f":{os.fstat(lock).st_ino} ".encode(), []
    for pid in list_processes():
        try:
            names = os.listdir(f"/proc/{pid}/fdinfo")
        except OSError:  # gone, or not ours
            continue
        if any(_locks(read_proc(f"/proc/{pid}/fdinfo/{name}"), inode) for name in names):
            found.append(pid)
    return found


def _locks(told: bytes, inode: bytes) -> bool:
    """Return whether the kernel's lines about a descriptor name a lock on that inode."""
    return any(line.startswith(b"lock:") and inode in line for line in told.splitlines())


def list_children(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in read_proc(f"/proc/{pid}/task/{thread}/children").split()]


def list_descendants(roots: list[int]) -> list[int]:
    """Return all processes below `roots`, the nearest first; zombies may be among them."""
    parents = None if LISTS_CHILDREN else _by_parent()
    found: list[int] = []
    seen = set(roots)
    level = list(roots)
    while level:
        below = [c for pid in level for c in (list_children(pid) if parents is None else parents.get(pid, ()))]
        level = [pid for pid in below if pid not in seen and not seen.add(pid)]  # type: ignore[func-returns-value]  # add() is the point
        found += level
    return found


def _by_parent() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid, parent in _parents():
        found.setdefault(parent, []).append(pid)
    return found


def _parents() -> list[tuple[int, int]]:
    """Return each process with its parent, from /proc or else from `ps`, without the process of `ps` itself."""
    if HAS_PROC:
        return [(pid, int(fields[1])) for pid in list_processes() if len(fields := _stat(pid)) > 1]
    import subprocess  # 15 ms, which nothing pays for where there is a /proc

    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE) as ps:
        assert ps.stdout is not None
        rows = [tuple(map(int, line.split())) for line in ps.stdout]
    return [(pid, parent) for pid, parent in rows if pid != ps.pid]


def send_signal(pid: int, number: int) -> bool:
    """Signal a process; return False if it is gone or not ours to signal (a job may start one that belongs to root)."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def send_group(pid: int, number: int) -> None:
    """Signal a process group, unless it is gone or not ours to signal."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def read_session(pid: int) -> int:
    """Return the session of a process; -1 where it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def read_group(pid: int) -> int:
    """Return the group of a process; -1 where it is gone."""
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def adopt_orphans() -> bool:
    """Become the parent of all descendants whose parent dies (Linux), so that no double fork escapes.

    Returns whether that worked.
    """
    return ask_kernel(_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int) -> bool:
    """Let the kernel kill this process when `parent` ends, which started it (Linux); False if it has ended by now."""
    return ask_kernel(_SET_PARENT_DEATH_SIGNAL, KILL) and os.getppid() == parent


def ask_kernel(option: int, value: int | bytes) -> bool:
    """Set an attribute of this process by prctl(2); return whether that worked."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def set_title(title: bytes) -> None:
    """Have lists of processes call this one so, in place of its program's name and its command line (Linux).

    `title`: 15 bytes at most. The kernel reads a command line in the process's own memory, whose addresses
    proc_pid_stat(5) names.
    """
    fields = _stat(os.getpid())
    if len(fields) <= _ARGUMENTS_END or not ask_kernel(_SET_NAME, title):
        return
    start = int(fields[_ARGUMENTS_END - 1])
    size = int(fields[_ARGUMENTS_END]) - start
    if size <= 0:  # a kernel that does not tell
        return
    import ctypes

    ctypes.memset(start, 0, size)
    ctypes.memmove(start, title, min(len(title), size - 1))
