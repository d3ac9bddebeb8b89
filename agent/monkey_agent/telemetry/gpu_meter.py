"""The GPUs of this machine as the agent asks for them: by a reader that may hang or die without harm to anybody."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from monkey.processes.private_process import select_needed_variables

READER = Path(__file__).with_name("gpu_reader.py")
#: Seconds that an answer may take: a driver that nobody keeps loaded needs some for the first.
_PATIENCE_SECONDS = 10.0
#: Seconds before a reader is started again after one that hung or died.
AGAIN = 300.0

Gpu = dict[str, Any]


class GpuMeter:
    """Keeps a reader while there are GPUs. Blocks: to be used by a thread that is not waited for."""

    def __init__(self, patience: float = _PATIENCE_SECONDS, again: float = AGAIN) -> None:
        """Start nothing yet."""
        self._patience, self._again = patience, again
        self._reader: subprocess.Popen[bytes] | None = None
        self._not_before = float("-inf")
        self._closed = False
        #: Why nothing can be read, for people; "" while it can.
        self.trouble = ""

    def read(self) -> list[Gpu]:
        """Return the GPUs, as the reader tells them; [] where they cannot be read."""
        if self._closed or time.monotonic() < self._not_before:
            return []
        try:
            told = self._ask()
        except (OSError, ValueError) as exc:
            told = {"trouble": str(exc)}
        self.trouble = told.get("trouble", "")
        if self.trouble:
            self._not_before = time.monotonic() + self._again
            self._end()
        gpus: list[Gpu] = told.get("gpus", [])
        return gpus

    def _ask(self) -> dict[str, Any]:
        if self._reader is None:
            self._reader = subprocess.Popen(
                [sys.executable, "-I", str(READER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=select_needed_variables(os.environ),
                start_new_session=True,
            )
        assert self._reader.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it says why before it goes
            self._reader.stdin.write(b"\n")
        told: dict[str, Any] = json.loads(self._line())
        return told

    def _line(self) -> bytes:
        assert self._reader is not None and self._reader.stdout is not None
        line, until = b"", time.monotonic() + self._patience
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._reader.stdout], [], [], left)[0]:
                raise OSError(f"the driver does not answer within {self._patience:g} s")
            more = os.read(self._reader.stdout.fileno(), 1 << 16)
            if not more:
                raise OSError("the driver's library took its process down")
            line += more
        return line

    def _end(self) -> None:
        """Give the reader up; one that hangs in the kernel dies whenever that lets it go."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        for pipe in (reader.stdin, reader.stdout):
            if pipe is not None:
                pipe.close()
        reader.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            reader.wait(1)

    def close(self) -> None:
        """Start no reader any more; the one that is there ends with its standard input."""
        self._closed = True
        self._end()


def measure_job_gpus(gpus: Sequence[Gpu], names: Iterable[str]) -> dict[str, float]:
    """Return what a job's GPUs do, given as CUDA_VISIBLE_DEVICES names them: mean percent, bytes and watts in sum."""
    mine = [found for name in names if (found := _named(gpus, name)) is not None]
    told: dict[str, float] = {}
    if percents := [gpu["percent"] for gpu in mine if "percent" in gpu]:
        told["gpu_percent"] = round(sum(percents) / len(percents), 2)
    for name, field in (("memory", "gpu_memory_bytes"), ("power", "gpu_power_watts")):
        if values := [gpu[name] for gpu in mine if name in gpu]:
            told[field] = round(sum(values), 3)
    if temperatures := [gpu["temperature"] for gpu in mine if "temperature" in gpu]:
        told["gpu_temperature"] = max(temperatures)
    return told


def _named(gpus: Sequence[Gpu], name: str) -> Gpu | None:
    if name.isdigit():
        return next((gpu for gpu in gpus if gpu["index"] == int(name)), None)
    for gpu in gpus:
        if str(gpu.get("uuid", "")).startswith(name):  # CUDA takes the beginning of one, too
            return gpu
        for part, memory in gpu.get("parts", {}).items():
            if part.startswith(name):
                return {"memory": memory}
    return None


def measure_gpu(gpu: Gpu) -> dict[str, float]:
    """Return what one GPU does."""
    return measure_job_gpus([gpu], [str(gpu["index"])])
