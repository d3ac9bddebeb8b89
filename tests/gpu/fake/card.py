"""The fake card: what the processes that hold the fake library have of it, for the fake NVML and the fake nvidia-smi.

`python card.py DIRECTORY` writes DIRECTORY/state all the while, as tests/unit/monkey_agent/telemetry/nvml.c reads it.
`python card.py DIRECTORY WORD…` answers as nvidia-smi does, but only the questions of monkey and of the rehearsal.
A process that is gone holds nothing, whichever way it ended.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

NAME, UUID = "Fake GPU", "GPU-fa4e0000-0000-0000-0000-000000000001"
#: Mebibytes, as cuda.c and nvml.c have them.
TOTAL = 80 << 10


def read_processes(card: Path) -> dict[int, tuple[int, int]]:
    """Return the bytes and the percent of each process that lives and holds something."""
    found = {}
    for file in (card / "processes").iterdir():
        memory, percent = map(int, file.read_text().split())
        if memory and Path("/proc", file.name).exists():
            found[int(file.name)] = memory, percent
    return found


def measure(card: Path) -> tuple[int, int]:
    """Return the bytes that are held, and the percent of time in which the card computes."""
    held = read_processes(card).values()
    return sum(memory for memory, _ in held), max((percent for _, percent in held), default=0)


def keep_state(card: Path) -> None:
    """Write what the card does, for as long as somebody lets us."""
    while True:
        memory, percent = measure(card)
        aside = card / "state-aside"
        aside.write_text(f"{UUID} {percent} {memory} 70000 40 fine\n")
        aside.replace(card / "state")
        time.sleep(0.05)


def answer(card: Path, asked: list[str]) -> None:
    """Print what nvidia-smi would."""
    if asked == ["-L"]:
        print(f"GPU 0: {NAME} (UUID: {UUID})")
        return
    memory, percent = measure(card)
    known = {"name": NAME, "uuid": UUID, "driver_version": "0 (fake)", "memory.total": TOTAL}
    known |= {"memory.used": memory >> 20, "utilization.gpu": percent}
    [question] = [word for word in asked if word.startswith("--query-")]
    kind, _, fields = question.partition("=")
    rows = [known]
    if kind == "--query-compute-apps":
        rows = [{"gpu_uuid": UUID, "pid": pid} for pid in read_processes(card)]
    for row in rows:
        print(", ".join(str(row[name]) for name in fields.split(",")))


if __name__ == "__main__":
    if sys.argv[2:]:
        answer(Path(sys.argv[1]), sys.argv[2:])
    else:
        keep_state(Path(sys.argv[1]))
