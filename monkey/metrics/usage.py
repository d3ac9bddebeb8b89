"""The resource usage of an attempt, in a few numbers: what to ask for the next time.

A file of samples has lines as `monkey.log` writes them, with these names:

- cpu_seconds (so far), cpu_percent (100: one CPU);
- memory_bytes, memory_percent (of what the job asked for);
- disk_read_bytes and disk_write_bytes (so far);
- of its GPUs: gpu_percent (the mean), gpu_memory_bytes and gpu_power_watts (the sum), gpu_temperature (the highest).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

#: The file of samples, beside an attempt's log, metrics and outputs.
USAGE_FILE = "system.jsonl"
#: Stands beside the usage: how many lines and values of the attempt's metrics were no records.
SKIPPED_LINES = "skipped_lines"
#: How the reason of an attempt begins that took more memory than it asked for.
MEMORY_EXCEEDED = "needed more than"


def write_sample(at: int, fields: Mapping[str, float]) -> bytes:
    """Return the line of one sample, taken at `at` (nanoseconds since the epoch)."""
    return f'{{"m":{json.dumps(dict(fields), separators=(",", ":"))},"step":null,"t":{at}e-9}}\n'.encode()


class ResourceUsage:
    """The usage of one attempt, folded from its samples."""

    def __init__(self) -> None:
        """Start without samples."""
        self._cpu_seconds = 0.0
        self._memory = self._gpu_memory = 0.0
        self._gpu_percents, self._gpu_samples = 0.0, 0

    def add(self, fields: Mapping[str, float]) -> None:
        """Add one sample: values by name."""
        self._cpu_seconds = max(self._cpu_seconds, fields.get("cpu_seconds", 0.0))
        self._memory = max(self._memory, fields.get("memory_bytes", 0.0))
        self._gpu_memory = max(self._gpu_memory, fields.get("gpu_memory_bytes", 0.0))
        if "gpu_percent" in fields:
            self._gpu_percents += fields["gpu_percent"]
            self._gpu_samples += 1

    def feed(self, data: bytes) -> None:
        """Add the samples of a file; lines that are none are skipped."""
        for one in data.splitlines():
            try:
                fields = json.loads(one)["m"]
                self.add({name: value for name, value in fields.items() if type(value) in (int, float)})
            except (ValueError, LookupError, TypeError, AttributeError):
                continue

    def result(self, seconds: float, cpu_seconds: float = 0.0, memory: int = 0) -> dict[str, float]:
        """Return cpus (used on average), memory_bytes (the peak), gpu_percent (the mean), gpu_memory_bytes (the peak).

        The attempt ran for `seconds`. `cpu_seconds` and `memory` (bytes) are the kernel's own counts, or 0. It counts
        the first process and those that this waited for, so the samples may have more. Unknown values are left out.
        """
        told: dict[str, float] = {}
        if seconds > 0 and (used := max(self._cpu_seconds, cpu_seconds)):
            told["cpus"] = round(used / seconds, 3)
        if most := max(self._memory, memory):
            told["memory_bytes"] = int(most)
        if self._gpu_samples:
            told["gpu_percent"] = round(self._gpu_percents / self._gpu_samples, 1)
        if self._gpu_memory:
            told["gpu_memory_bytes"] = int(self._gpu_memory)
        return told
