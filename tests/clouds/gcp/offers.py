"""What there is to be had at Google: zones, types of machines, images."""

from __future__ import annotations

from typing import Any

REGION, ZONES = "europe-west4", ("europe-west4-a", "europe-west4-b", "europe-west4-c")
#: Types of machines: processors, MiB, and what else Google says of them.
TYPES: dict[str, dict[str, Any]] = {
    "e2-standard-2": {"guestCpus": 2, "memoryMb": 8192},
    "e2-standard-4": {"guestCpus": 4, "memoryMb": 16384},
    "c4a-standard-2": {"guestCpus": 2, "memoryMb": 8192, "architecture": "ARM64"},
    "g2-standard-8": {
        "guestCpus": 8,
        "memoryMb": 32768,
        "accelerators": [{"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}],
    },
}
#: Where the last is not to be had.
NOT_THERE = {"g2-standard-8": ZONES[2]}
IMAGES = {
    "debian-cloud": {"debian-12": "debian-12-bookworm-v1", "debian-12-arm64": "debian-12-bookworm-arm64-v1"},
    "team": {"ours": "ours-1"},
}
