"""The memory that processes hold for themselves, as /proc tells: what the kernel could not drop and read again.

This is part of the supervisor, which imports next to nothing.
"""

from __future__ import annotations

from monkey.processes.process_tree import read_proc


def sum_own_memory(pids: list[int]) -> int:
    """Return the bytes of all processes together; pages that several have count several times. Cheap."""
    return sum(_sum(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:")) for pid in pids)


def measure_own_memory(pids: list[int]) -> int:
    """Return the bytes that the processes hold; pages that several have count once. Slow: 2 ms for each GB."""
    return sum(_measure(pid) for pid in pids)


def _measure(pid: int) -> int:
    most = sum_own_memory([pid])
    held = _sum(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))
    # Kernels before 5.9 do not tell files apart.
    return min(most, held or _sum(f"/proc/{pid}/smaps_rollup", (b"Pss:",)) or most)


def _sum(path: str, names: tuple[bytes, ...]) -> int:
    lines = (line.split() for line in read_proc(path).splitlines())
    return 1024 * sum(int(words[1]) for words in lines if words and words[0] in names)
