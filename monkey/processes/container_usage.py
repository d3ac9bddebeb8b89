"""What a container used: its first process reads the counters of its control group, and writes them down at its end.

From outside they cannot be read in time: the runtime removes the group before its client exits.
"""

from __future__ import annotations

import os
import stat

from monkey.processes.process_tree import read_proc

TYPE_CHECKING = False
if TYPE_CHECKING:  # the supervisor starts without typing
    from collections.abc import Iterable

#: Variable that asks for that: the file of the counters; "" where the container has no control group of its own. Then
#: nothing of its usage is known: what the kernel counts for the first process is of the runtime's client.
USAGE_REPORT = "MONKEY_CONTAINER_USAGE"
#: Files of a control group, of version 2 and 1: the most bytes of memory, kills for want of it, and CPU time.
_PEAKS = ("memory.peak", "memory/memory.max_usage_in_bytes")
_KILLS = ("memory.events", "memory/memory.oom_control")
_CPU = ("cpu.stat", "cpuacct/cpuacct.usage")
#: Bytes of the file that are read, and digits of a number.
_MOST, _DIGITS = 8192, 18
#: It starts no programs, since an image may have none.
_SCRIPT = """\
{{ for name in {names}; do
if [ -r "/sys/fs/cgroup/$name" ]; then
while read -r line; do echo "$name $line"; done <"/sys/fs/cgroup/$name"
fi
done >{path}; }} 2>/dev/null
"""


class ContainerUsage:
    """The usage of a container; zeros where it is not known."""

    __slots__ = ("cpu", "killed", "peak")

    def __init__(self, peak: int = 0, cpu: float = 0.0, killed: bool = False) -> None:
        """Note the most bytes of memory, seconds of CPU time, and whether it had a kill for want of memory."""
        self.peak, self.cpu, self.killed = peak, cpu, killed


def make_usage_script(path: str) -> str:
    """Return the lines of a shell that write the counters to the file `path`, which a shell must take as one word."""
    return _SCRIPT.format(names=" ".join(_PEAKS + _KILLS + _CPU), path=path)


def read_container_usage(path: str) -> ContainerUsage:
    """Return what is in the file, in which a job can put anything."""
    usage = ContainerUsage()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return usage
    try:
        said = os.read(fd, _MOST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return usage
    finally:
        os.close(fd)
    for line in said.decode(errors="replace").splitlines():
        _note(line.split(), usage)
    return usage


def _note(words: list[str], usage: ContainerUsage) -> None:
    """Take a line: the file, a name where the file has several values, and the value."""
    if len(words) < 2 or not (words[-1].isascii() and words[-1].isdigit()) or len(words[-1]) > _DIGITS:
        return
    file, name, value = words[0], words[1], int(words[-1])
    if file in _PEAKS:
        usage.peak = value
    elif file in _KILLS and name == "oom_kill":
        usage.killed = value > 0
    elif file == _CPU[0] and name == "usage_usec":
        usage.cpu = value / 1e6
    elif file == _CPU[1]:
        usage.cpu = value / 1e9


def list_contained(pids: Iterable[int]) -> list[int]:
    """Return those processes that are in a namespace of processes below ours: in a container, not its runtime's."""
    depth = len(_read_numbers("self"))
    return [pid for pid in pids if len(_read_numbers(str(pid))) > depth]


def find_first_contained(pids: Iterable[int]) -> int:
    """Return the first process of the container to which some of these processes belong; 0 where none does."""
    depth = len(_read_numbers("self"))
    return next((pid for pid in pids if _read_numbers(str(pid))[depth:] == [b"1"]), 0)


def _read_numbers(pid: str) -> list[bytes]:
    """Return the numbers of a process: in our namespace of processes, and in each below up to its own."""
    lines = read_proc(f"/proc/{pid}/status").splitlines()
    return next((line.split()[1:] for line in lines if line.startswith(b"NSpid:")), [])
