"""Facts of the machine: CPU, kernel, C library, GPUs. They do not change during an agent's life."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from monkey.fleet.gpus import GpuModels
from monkey.protocol.record.facts import MAX_FACT_LENGTH

#: Bytes of /proc/cpuinfo that are read: its first CPU, of perhaps hundreds.
_CPUINFO_BYTES = 16 * 1024


def read_machine_facts(proc: Path = Path("/proc")) -> dict[str, Any]:
    """Return what is known of the machine; files below `proc` describe its CPU. Takes a millisecond."""
    system = os.uname()
    facts = {
        "os": _name_system(),
        "kernel": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "libc": _name_libc(),
        **_describe_cpu(proc),
    }
    return {name: text[:MAX_FACT_LENGTH] for name, text in facts.items() if text} | {"cpus": _count_cpus()}


def select_gpu_facts(found: GpuModels, names: Sequence[str]) -> dict[str, Any]:
    """Return the facts of a job's GPUs, given as CUDA_VISIBLE_DEVICES names them."""
    if not names:
        return {}
    models = [model[:MAX_FACT_LENGTH] for name in names if (model := _find_model(found.models, name))]
    return ({"gpus": models} if models else {}) | ({"driver": found.driver} if found.driver else {})


def _find_model(models: Mapping[str, str], name: str) -> str:
    if name in models:
        return models[name]
    # CUDA takes the beginning of a name, too.
    return next((model for full, model in models.items() if full.startswith(name) and not name.isdigit()), "")


def _name_system() -> str:
    if platform.system() == "Darwin":
        return f"macOS {platform.mac_ver()[0]}"
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _name_libc() -> str:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        if found := os.confstr("CS_GNU_LIBC_VERSION"):
            return found
    return " ".join(platform.libc_ver()).strip()


def _describe_cpu(proc: Path) -> dict[str, str]:
    told: dict[str, str] = {}
    for line in _read_start(proc / "cpuinfo").splitlines():
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    model = told.get("model name") or " ".join(filter(None, map(told.get, ("CPU implementer", "CPU part"))))
    flags = sorted((told.get("flags") or told.get("Features") or "").split())
    digest = hashlib.sha256(" ".join(flags).encode()).hexdigest()[:16] if flags else ""
    return {"cpu": model or platform.processor(), "cpu_flags": digest}


def _read_start(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_CPUINFO_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _count_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
