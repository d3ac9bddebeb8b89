"""The reader of GPUs, a process of its own: with broken hardware, NVIDIA's library hangs, or ends its process.

It runs as `python -I gpu_reader.py`, and ends with its standard input. It answers each line there by a line of JSON,
`{"gpus": [...]}`, or `{"trouble": why}` where no GPU can be read. A GPU has these keys:

- "index" (the driver's number), "uuid"
- "percent": percent of the time in which it computed
- "memory": bytes in use; "power": watts; "temperature": °C
- "parts": uuid of each of its MIG instances to the bytes in use
- "trouble": why the values that are missing could not be read
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
    """Return the answer for all GPUs."""
    return {"gpus": [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]}


def _gpu(nvml: Any, index: int) -> dict[str, Any]:
    told: dict[str, Any] = {"index": index}
    try:
        gpu = nvml.nvmlDeviceGetHandleByIndex(index)
        told["uuid"] = nvml.nvmlDeviceGetUUID(gpu)
        readings: dict[str, Callable[[], float]] = {
            "memory": lambda: _used_memory(nvml, gpu),
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
    """Read one value into `told`, unless this GPU does not have it (one that is split has no percent)."""
    try:
        told[name] = reading()
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NoPermission):
        return


def _used_memory(nvml: Any, gpu: Any) -> int:
    """Return the bytes that processes hold; before driver 510, with those that the driver keeps for itself."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(gpu, nvml.nvmlMemory_v2).used)
    except nvml.NVMLError:
        return int(nvml.nvmlDeviceGetMemoryInfo(gpu).used)


def _parts(nvml: Any, gpu: Any) -> dict[str, int]:
    if nvml.nvmlDeviceGetMigMode(gpu)[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return {}
    found = {}
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except nvml.NVMLError_NotFound:
            continue
        found[nvml.nvmlDeviceGetUUID(part)] = _used_memory(nvml, part)
    return found


def run_gpu_reader() -> None:
    """Answer lines until standard input is closed."""
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
