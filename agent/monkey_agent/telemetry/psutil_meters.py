"""The meters of machines without /proc (macOS), by psutil: what they cannot tell is left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psutil

from monkey_agent.telemetry.meters import ProcessUsage, measure_disk_fill


class PortableHostMeter:
    """See `host_meter.Meter`."""

    def __init__(self, place: Path) -> None:
        """Begin to count the CPUs' time."""
        self._place = place
        psutil.cpu_percent()

    def read(self) -> dict[str, float]:
        """See `Meter.read`."""
        memory, disks, network = psutil.virtual_memory(), psutil.disk_io_counters(), psutil.net_io_counters(pernic=True)
        real = [counted for name, counted in network.items() if not name.startswith("lo")]
        return {
            "cpu_percent": psutil.cpu_percent(),
            "memory_bytes": memory.total - memory.available,
            "memory_percent": memory.percent,
            **measure_disk_fill(self._place),
            **({"disk_read_bytes": disks.read_bytes, "disk_write_bytes": disks.write_bytes} if disks else {}),
            "net_received_bytes": sum(counted.bytes_recv for counted in real),
            "net_sent_bytes": sum(counted.bytes_sent for counted in real),
        }


class PortableJobMeter:
    """See `job_meter.JobMeter`; a process whose parent died is not found, memory that is shared counts twice."""

    def read(self, supervisor: int, mains: Mapping[int, int]) -> dict[int, ProcessUsage]:
        """See `JobMeter.read`."""
        return {key: use for key, pid in mains.items() if (use := _use(pid)) is not None}


def _use(main: int) -> ProcessUsage | None:
    cpu, memory, found = 0.0, 0, False
    try:
        family = [first := psutil.Process(main), *first.children(recursive=True)]
    except psutil.Error:
        return None
    for process in family:
        try:
            with process.oneshot():
                cpu += sum(process.cpu_times()[:4])
                memory += process.memory_info().rss
                found = True
        except psutil.Error:
            continue
    return ProcessUsage(round(cpu, 2), memory, 0, 0) if found else None
