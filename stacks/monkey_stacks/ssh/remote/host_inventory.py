"""What this host has: CPUs, memory, GPUs and disk, besides all that a plan asks of it. To ask changes nothing."""

from __future__ import annotations

import os
from typing import Any

from monkey.fleet.gpus import describe_gpus
from monkey_stacks.ssh.remote.host_setup import observe_fleet
from monkey_stacks.ssh.remote.paths import FleetDirectory


def describe_host(place: FleetDirectory, said: str, store: str) -> dict[str, Any]:
    """Return what this host is and has.

    `said`: the working directory as the user named it; `store`: a directory that must be here, "" for none.
    """
    facts = observe_fleet(place, said, store)
    models = describe_gpus().models
    disk = os.statvfs(facts["nearest"])
    return {
        **facts,
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "disk": disk.f_blocks * disk.f_frsize,
        "models": [models.get(name, "GPU") for name in facts["gpus"]],
    }
