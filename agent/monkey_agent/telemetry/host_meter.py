# ruff: noqa: PTH208
"""The meter of a whole machine: CPUs, memory, disk, network.

It reads /proc, and needs nothing to install. With a compiled library, an agent's bundle would need one for each kind of
host, and a host without a wheel would have no agent. Other systems (macOS) use `psutil_meters.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

from monkey.fleet.machine_capacity import measure_memory
from monkey.processes.process_tree import HAS_PROC, read_proc
from monkey_agent.telemetry.meters import Meter, measure_disk_fill

#: Bytes of a sector in /proc/diskstats, whatever the disk's sectors are.
SECTOR = 512
#: Block devices that are made of others, or of memory: their bytes are counted at the devices below them.
_UNREAL = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


def make_host_meter(place: Path) -> Meter:
    """Return the meter of this machine; `place`: a path on the disk whose room counts."""
    if HAS_PROC:
        return HostMeter(place)
    from monkey_agent.telemetry.psutil_meters import PortableHostMeter

    return PortableHostMeter(place)


class HostMeter:
    """The meter of a machine with Linux. `cpu_percent`: of all CPUs, since the last reading."""

    def __init__(self, place: Path) -> None:
        """Start to count the CPUs' time."""
        self._place = place
        self._cpu = _cpu_times()

    def read(self) -> dict[str, float]:
        """See `Meter.read`."""
        return {**self._cpu_percent(), **_memory(), **measure_disk_fill(self._place), **_disks(), **_network()}

    def _cpu_percent(self) -> dict[str, float]:
        before, self._cpu = self._cpu, _cpu_times()
        total = self._cpu[0] - before[0]
        if total <= 0:
            return {}
        return {"cpu_percent": round(100 * min(1.0, max(0.0, 1 - (self._cpu[1] - before[1]) / total)), 2)}


def _cpu_times() -> tuple[int, int]:
    """Return the time of all CPUs so far, and the idle part of it, in the kernel's ticks."""
    # user, nice, system, idle, iowait, irq, softirq, steal; what guests take is in the first two.
    times = [int(word) for word in read_proc("/proc/stat").partition(b"\n")[0].split()[1:9]]
    return sum(times), sum(times[3:5])


def _memory() -> dict[str, float]:
    used, total = measure_memory()
    return {"memory_bytes": used, "memory_percent": round(100 * used / total, 2)} if total else {}


def _disks() -> dict[str, float]:
    real = _real("/sys/block", _UNREAL)
    fields = [line.split() for line in read_proc("/proc/diskstats").decode().splitlines()]
    mine = [line for line in fields if line[2] in real]
    if not mine:
        return {}
    return {
        "disk_read_bytes": SECTOR * sum(int(line[5]) for line in mine),
        "disk_write_bytes": SECTOR * sum(int(line[9]) for line in mine),
    }


def _network() -> dict[str, float]:
    real = _real("/sys/class/net", ("lo",))
    lines = [line.partition(":") for line in read_proc("/proc/net/dev").decode().splitlines()]
    mine = [rest.split() for name, _, rest in lines if name.strip() in real]
    if not mine:
        return {}
    return {
        "net_received_bytes": sum(int(line[0]) for line in mine),
        "net_sent_bytes": sum(int(line[8]) for line in mine),
    }


def _real(directory: str, unreal: tuple[str, ...]) -> set[str]:
    """Return the devices with hardware behind them; where there are none (in a container), all but `unreal` ones."""
    try:
        names = [name for name in os.listdir(directory) if not name.startswith(unreal)]
    except OSError:
        return set()
    hardware = {name for name in names if Path(directory, name, "device").exists()}
    return hardware or set(names)
