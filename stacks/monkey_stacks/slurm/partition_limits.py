"""What a partition allows, by what `scontrol show partition` says of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey.spec.yaml.units import format_duration


def find_partition(said: str, name: str) -> dict[str, str]:
    """Return what one of the partitions has, the default one for ""; nothing where it is not among them."""
    found = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in said.splitlines() if line.strip()]
    fits = [each for each in found if (each.get("PartitionName") == name if name else each.get("Default") == "YES")]
    return fits[0] if fits else {}


def parse_limit_seconds(text: str) -> float | None:
    """Return a time of Slurm's in seconds ("1-02:00:00", "30:00"); None for one without an end, or no time."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)", text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if found[1] and not found[3]:  # "2-12": days and hours
        return days * 86400.0 + seconds * 3600.0
    return days * 86400.0 + hours * 3600.0 + minutes * 60.0 + seconds


def list_limit_troubles(slurm: SlurmSettings, partition: dict[str, str]) -> Iterator[str]:
    """Yield why pilots would wait for ever, though sbatch takes them."""
    name = partition.get("PartitionName", "?")
    most = parse_limit_seconds(partition.get("MaxTime", ""))
    if most is not None and slurm.time > most:
        limit = partition["MaxTime"]
        yield f"time: {format_duration(slurm.time)} is more than MaxTime {limit} of partition {name}"
    cpus = partition.get("MaxCPUsPerNode", "")
    if cpus.isdigit() and slurm.cpus > int(cpus):
        yield f"cpus: {slurm.cpus} is more than MaxCPUsPerNode {cpus} of partition {name}"
    memory = partition.get("MaxMemPerNode", "")
    if memory.isdigit() and slurm.memory > int(memory) << 20:
        yield f"memory: {slurm.memory >> 20} MiB is more than MaxMemPerNode {memory} of partition {name}"


def describe_partition(partition: dict[str, str]) -> str:
    """Return a line on a partition for a plan; "" where nothing is known of it."""
    if not partition:
        return ""
    limit = partition.get("MaxTime", "UNLIMITED").lower()
    state = "" if partition.get("State", "UP") == "UP" else f", state {partition['State']}"
    nodes, cpus = partition.get("TotalNodes", "?"), partition.get("TotalCPUs", "?")
    return f"partition {partition.get('PartitionName')}: {nodes} nodes, {cpus} CPUs, jobs of {limit} at most{state}"
