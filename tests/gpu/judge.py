"""Judges what `record.py` recorded: `python judge.py DIRECTORY` prints a line for each check, and exits with 0 or 1.

The evidence may be judged again at any time, on any machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Parts by which monkey's values may differ from those of nvidia-smi; of a percentage, points.
SLACK, POINTS = 0.10, 10
#: Seconds between a sample of monkey's and what nvidia-smi said in the same moment. A busy machine can keep nvidia-smi
#: from answering: then its nearest answers count, from at most `FAR` seconds before and after.
BESIDE, FAR = 1.5, 8.0
#: Jobs that must have run, by kind.
JOBS = {"quarter": 8, "whole": 2, "toomuch": 1, "late": 1, "beside": 1}
#: Percent that nvidia-smi must have seen of a job that computes without a pause.
BUSY = 50
GIB = 1 << 30


@dataclass(frozen=True)
class Run:
    """One process that noted its times in the ledger, in seconds since the epoch."""

    name: str
    kind: str
    #: What it saw in CUDA_VISIBLE_DEVICES; None where that was not set.
    devices: str | None
    begin: float
    #: Infinity where it noted no end.
    end: float


class Evidence:
    """What was recorded in a directory."""

    def __init__(self, at: Path) -> None:
        """Read it. Raises OSError, ValueError, KeyError where it is not whole."""
        self.card: dict[str, Any] = json.loads((at / "card.json").read_text())
        self.jobs: list[dict[str, Any]] = json.loads((at / "jobs.json").read_text())
        self.status = (at / "status.txt").read_text()
        self.smi = read_lines(at / "smi.jsonl")
        self.runs = list(read_runs(read_lines(at / "ledger.jsonl")))

    def of(self, kind: str) -> list[Run]:
        """Return the processes of a kind."""
        return [run for run in self.runs if run.kind == kind]

    def sampled(self) -> list[dict[str, Any]]:
        """Return the jobs whose samples are compared."""
        return [job for job in self.jobs if job["noted_as"].split("-")[0] in ("quarter", "whole")]

    def beside(self, at: float, what: str) -> list[float]:
        """Return what nvidia-smi said about a moment."""
        before = max((line["at"] for line in self.smi if at - FAR <= line["at"] <= at), default=at)
        after = min((line["at"] for line in self.smi if at <= line["at"] <= at + FAR), default=at)
        first, last = min(before, at - BESIDE), max(after, at + BESIDE)
        return [line[what] for line in self.smi if first <= line["at"] <= last]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_runs(lines: Sequence[dict[str, Any]]) -> Iterator[Run]:
    """Yield each process of the ledger."""
    for line in lines:
        if line["what"] == "begin":
            ends = [other["at"] for other in lines if other["what"] == "end" and other["job"] == line["job"]]
            yield Run(line["job"], line["kind"], line["devices"], line["at"], min(ends, default=float("inf")))


def find_wrong_counts(found: Evidence) -> Iterator[str]:
    """Yield kinds of which another number of jobs ran than was asked for, and jobs that did not come to their end."""
    for run in found.runs:
        if run.end == float("inf"):
            yield f"{run.name}: expected it to note its end, found none"
    for kind, count in JOBS.items():
        names = {run.name for run in found.of(kind)}
        if len(names) != count or len(found.of(kind)) != count:
            yield f"expected {count} of {kind}, each once, found {len(found.of(kind))} executions of {len(names)}"


def find_wrong_devices(found: Evidence) -> Iterator[str]:
    """Yield jobs that saw another GPU than the card's, by its UUID; a job without a GPU must see none."""
    for run in found.runs:
        expected = {"beside": "", "stranger": run.devices}.get(run.kind, found.card["uuid"])
        if run.devices != expected:
            yield f"{run.name}: expected CUDA_VISIBLE_DEVICES={expected!r}, found {run.devices!r}"


def find_crowds(found: Evidence) -> Iterator[str]:
    """Yield moments at which more than four quarters ran; four must have been there at once."""
    crowds = [[other for other in found.of("quarter") if holds(other, run.begin)] for run in found.of("quarter")]
    most = max(crowds, key=len, default=[])
    if len(most) != 4:
        yield f"expected 4 quarters at once, and never more, found {len(most)}: {', '.join(run.name for run in most)}"


def holds(run: Run, at: float) -> bool:
    """Say whether a process ran at a moment."""
    return run.begin <= at < run.end


def find_company(found: Evidence) -> Iterator[str]:
    """Yield processes that ran on the GPU beside a whole job."""
    for run in found.of("whole"):
        for other in found.runs:
            if other not in (run, *found.of("beside")) and other.begin < run.end and run.begin < other.end:
                yield f"{run.name}: expected it alone on the GPU, found {other.name} beside it"


def find_idle_card(found: Evidence) -> Iterator[str]:
    """Yield what the jobs did not do to the card by nvidia-smi's account: then nothing was compared."""
    memory = max((line["memory_bytes"] for line in found.smi), default=0)
    percent = max((line["percent"] for line in found.smi), default=0)
    least = 0.2 * found.card["memory_bytes"]
    if memory < least:
        yield f"expected jobs to hold {least / GIB:.1f} GiB, found at most {memory / GIB:.1f} GiB by nvidia-smi"
    if percent < BUSY:
        yield f"expected whole jobs to keep the GPU busy, found at most {percent} % by nvidia-smi"


def find_wrong_memory(found: Evidence) -> Iterator[str]:
    """Yield jobs whose peak of GPU memory in `monkey info` is not what nvidia-smi said as they were sampled."""
    for job in found.sampled():
        beside = [found.beside(at, "memory_bytes") for at in job["samples"]]
        if not beside or not all(beside):
            yield say_unsampled(job)
            continue
        least, most = max(map(min, beside)) * (1 - SLACK), max(map(max, beside)) * (1 + SLACK)
        told = job["usage"].get("gpu_memory_bytes", 0)
        if not least <= told <= most:
            expected = f"{least / GIB:.2f} to {most / GIB:.2f} GiB"
            yield f"{job['noted_as']}: expected {expected} by nvidia-smi, found {told / GIB:.2f} GiB"


def find_wrong_use(found: Evidence) -> Iterator[str]:
    """Yield jobs whose mean of GPU use in `monkey info` is not what nvidia-smi said as they were sampled."""
    for job in found.sampled():
        beside = [found.beside(at, "percent") for at in job["samples"]]
        if not beside or not all(beside):
            yield say_unsampled(job)
            continue
        least, most = sum(map(min, beside)) / len(beside) - POINTS, sum(map(max, beside)) / len(beside) + POINTS
        told = job["usage"].get("gpu_percent", -1)
        if not least <= told <= most:
            yield f"{job['noted_as']}: expected {least:.0f} to {most:.0f} % by nvidia-smi, found {told:.0f} %"


def say_unsampled(job: dict[str, Any]) -> str:
    """Say that there is nothing to compare."""
    samples = len(job["samples"])
    return f"{job['noted_as']}: expected samples with an answer of nvidia-smi beside each, found {samples} samples"


def find_trespassers(found: Evidence) -> Iterator[str]:
    """Yield what went wrong while a stranger's process held the GPU."""
    for stranger in found.of("stranger"):
        answers = [line["pids"] for line in found.smi if stranger.begin + BESIDE < line["at"] < stranger.end]
        if not any(answers):
            yield "expected nvidia-smi to list the stranger's process, found none: the agent cannot know of it"
        for run in found.of("beside"):
            if not holds(stranger, run.end):
                yield f"{run.name}: expected it to run without a GPU while the stranger was there, found it later"
        for run in found.of("late"):
            early = stranger.end - run.begin
            if early > 0:
                yield f"{run.name}: expected it to wait for the stranger, found it {early:.1f} s early"
    if not found.of("stranger"):
        yield "expected a stranger, found none"


def find_wrong_reason(found: Evidence) -> Iterator[str]:
    """Yield what is missing where a job asked for more GPU memory than there is."""
    states = [job["state"] for job in found.jobs if job["noted_as"].startswith("toomuch")]
    if states != ["failed"]:
        yield f"expected the job to have failed, found {', '.join(states) or 'no such job'}"
    for words in ("exit code 1", "GPU memory", "out of memory"):
        if words not in found.status:
            yield f"expected `monkey status` to say {words!r}, found: {' '.join(found.status.split())[-300:]}"


#: What each check is called, and what finds its mistakes.
CHECKS: dict[str, Callable[[Evidence], Iterator[str]]] = {
    "each job ran once": find_wrong_counts,
    "jobs see the card's UUID, and one without a GPU sees none": find_wrong_devices,
    "four quarters at once, never more": find_crowds,
    "a whole job has the GPU alone": find_company,
    "the jobs load the card": find_idle_card,
    "GPU memory in `monkey info` is nvidia-smi's within 10 %": find_wrong_memory,
    "GPU use in `monkey info` is nvidia-smi's within 10 points": find_wrong_use,
    "a GPU that a stranger's process holds is left alone": find_trespassers,
    "too large an allocation fails, and the reason says GPU memory": find_wrong_reason,
}


def main() -> int:
    """Print a line for each check, and return what to exit with."""
    found = Evidence(Path(sys.argv[1]))
    failed = False
    for name, find in CHECKS.items():
        mistakes = list(find(found))
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        print(f"FAILED: {name}: {mistakes[0]}{more}" if mistakes else f"ok: {name}")
        failed = failed or bool(mistakes)
    card = found.card
    print(f"card: {card['name']}, {card['memory_bytes'] / GIB:.1f} GiB, driver {card['driver']}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
