"""Reads the GPUs by NVIDIA's library, in a process of its own: with broken hardware it hangs, or takes us down with it.

Started as `python -I gpu_reader.py`. Each line on standard input is answered by one of JSON: {"gpus": [...]}, where a
GPU is {"index", "uuid", "percent", "memory", "power", "temperature", "parts"}, or has "trouble" in place of what could
not be read; or by {"trouble": why} where there is none to be read. Percent of time in which it computed; bytes; watts;
°C. `parts`: uuid to the bytes in use of each of its MIG instances. Ends with its standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Last, so that nothing that lies beside us can stand before a module of Python's; a bundle has its packages there.
    sys.path.append(str(Path(__file__).resolve().parents[2]))


def read_gpus(nvml: Any) -> dict[str, Any]:
    """Read all GPUs."""
    return {"gpus": [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]}


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    told: dict[str, Any] = {"index": index}
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        told["uuid"] = nvml.nvmlDeviceGetUUID(gpu)
        readings: dict[str, Callable[[], float]] = {
            "memory": lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
            "percent": lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "power": lambda: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000,
            "temperature": lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
        }
        for name, reading in readings.items():
            _told(nvml, told, name, reading)
        _told(nvml, told, "parts", lambda: _parts(nvml, gpu))
    except nvml.NVMLError as exc:
        told["trouble"] = str(exc)
    return told


def _told(nvml: Any, told: dict[str, Any], name: str, reading: Callable[[], Any]) -> None:
    """Read one thing; what this GPU does not know (one that is split does not tell how busy it is) is left out."""
    try:
        told[name] = reading()
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NoPermission):
        return


def _parts(nvml: Any, gpu: Any) -> dict[str, int]:
    if nvml.nvmlDeviceGetMigMode(gpu)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return {}
    found = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except nvml.NVMLError_NotFound:
            continue
        found[nvml.nvmlDeviceGetUUID(part)] = nvml.nvmlDeviceGetMemoryInfo(part).used
    return found


def run_gpu_reader() -> None:
    """Answer until stdin is closed."""
    try:
        import pynvml as nvml

        nvml.nvmlInit()
    except Exception as exc:  # not installed, another's module of that name, no library, no driver
        print(json.dumps({"trouble": f"{type(exc).__name__}: {exc}"}), flush=True)
        return
    for _ in sys.stdin:
        try:
            told = read_gpus(nvml)
        except nvml.NVMLError as exc:
            told = {"trouble": str(exc)}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    run_gpu_reader()
