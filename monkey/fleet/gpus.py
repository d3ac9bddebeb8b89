"""The GPUs of this machine, as CUDA_VISIBLE_DEVICES names them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection
from pathlib import Path
from shutil import which
from typing import NamedTuple

#: Seconds that nvidia-smi may take: it is slow on a machine with many GPUs and no persistence daemon.
_PATIENCE_SECONDS = 60


class GpuModels(NamedTuple):
    """The models of a machine's GPUs."""

    #: Each name that CUDA_VISIBLE_DEVICES may have for a GPU, or for a part of one (MIG), to its model.
    models: dict[str, str]
    #: Version of the driver; "" where it is not known.
    driver: str


def list_gpus() -> tuple[str, ...]:
    """Return the GPUs that we may use: those of CUDA_VISIBLE_DEVICES where it is set, else all of the driver."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        names = [name.strip() for name in given.split(",")]
        # CUDA itself ends the list at the first that is none: "-1" hides all.
        until = next((i for i, name in enumerate(names) if not name or name.startswith("-")), len(names))
        return tuple(names[:until])
    return parse_gpu_list(_ask("-L"))


def select_gpus(numbers: Collection[int]) -> tuple[str, ...]:
    """Return the GPUs that the driver counts so; those that are not there are left out."""
    return tuple(name for number, name in number_gpus(_ask("-L")) if number in numbers)


def list_busy_gpus() -> frozenset[str]:
    """Return the GPUs on which any process computes now."""
    return frozenset(re.findall(r"GPU-[^\s,]+", _ask("--query-compute-apps=gpu_uuid", "--format=csv,noheader")))


def describe_gpus() -> GpuModels:
    """Return the models of all GPUs and the version of their driver; blocks until the driver answers."""
    models = parse_gpu_models(_ask("-L"))
    versions = _ask("--query-gpu=driver_version", "--format=csv,noheader").split() if models else []
    return GpuModels(models, versions[0] if versions else "")


def parse_gpu_models(listing: str) -> dict[str, str]:
    """Read the models in `nvidia-smi -L`; a part of a GPU (MIG) has the model of the whole before its own."""
    models: dict[str, str] = {}
    whole = ""
    for line in listing.splitlines():
        if found := re.match(r"GPU (\d+): (.+) \(UUID: (GPU-[^)\s]+)\)", line):
            whole = models[found[1]] = models[found[3]] = found[2].strip()
        elif found := re.match(r"\s+(MIG \S+)\s.*\(UUID: (MIG-[^)\s]+)\)", line):
            models[found[2]] = f"{whole} {found[1]}"
    return models


def _ask(*words: str) -> str:
    """Return what nvidia-smi says; "" where there is none, or no driver."""
    program = which("nvidia-smi")
    if program is None or not (Path("/proc/driver/nvidia").exists() or Path("/dev/dxg").exists()):
        return ""
    try:
        run = subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout if run.returncode == 0 else ""


def parse_gpu_list(listing: str) -> tuple[str, ...]:
    """Read `nvidia-smi -L`."""
    return tuple(name for _, name in number_gpus(listing))


def number_gpus(listing: str) -> list[tuple[int, str]]:
    """Read `nvidia-smi -L`, with the driver's numbers. A GPU that is split (MIG) can only be used by its instances."""
    found: list[tuple[int, str]] = []
    number = 0
    for line in listing.splitlines():
        if counted := re.match(r"GPU (\d+):", line):
            number = int(counted[1])
        match = re.search(r"\(UUID: ((GPU|MIG)-[^)\s]+)\)", line)
        if match is None:
            continue
        if match[2] == "MIG" and found and found[-1][1].startswith("GPU-"):
            found.pop()
        found.append((number, match[1]))
    return found
