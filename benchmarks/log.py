"""`monkey.log`, a call, beside a bare os.write of such a line, tensorboardX and MLflow's file store.

Bars: at most 2 µs at the median, and at most twice the bare os.write. Each contestant is a process of its own, which
times small batches of calls and tells their median; the processes take turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _common import ensure, report, take_turns

#: Calls that are timed together, so that the clock's own cost does not count.
BATCH = 20
ROUNDS = 5
#: Batches a process, by how slow the contestant is.
BATCHES = {"os.write": 5000, "monkey.log": 5000, "monkey.log of 4": 3000, "tensorboardX": 1000, "MLflow files": 40}

#: With their lists of packages; MLflow 3 is about to drop the file store.
PEERS = {"tensorboardX": ("tensorboardX==2.6.4",), "MLflow files": ("mlflow-skinny==2.22.1",)}


def bare_write(directory: str) -> Callable[[int], object]:
    """Lines of the length that monkey.log writes."""
    fd = os.open(f"{directory}/bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    line = b'{"m":{"loss":0.31231231231231232},"step":10000,"t":1770000000123456789e-9}\n'
    return lambda step: os.write(fd, line)


def monkey_log(directory: str) -> Callable[[int], object]:
    """One metric with its step."""
    os.environ["MONKEY_METRICS_DIR"] = directory
    import monkey

    # All its digits count, as those of most losses do.
    return lambda step: monkey.log("loss", 0.31231231231231232, step=step)


def monkey_log_of_four(directory: str) -> Callable[[int], object]:
    """Four metrics of one step."""
    os.environ["MONKEY_METRICS_DIR"] = directory
    import monkey

    return lambda step: monkey.log({"loss": 0.31, "acc": 0.97, "lr": 0.001, "norm": 1.5}, step=step)


def tensorboardx(directory: str) -> Callable[[int], object]:
    """One scalar with its step."""
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(directory)
    return lambda step: writer.add_scalar("loss", 0.3123123123, step)


def mlflow_files(directory: str) -> Callable[[int], object]:
    """One metric with its step, as the fluent API logs it to a directory."""
    import mlflow

    mlflow.set_tracking_uri(f"file://{directory}/runs")
    mlflow.start_run()
    return lambda step: mlflow.log_metric("loss", 0.3123123123, step=step)


CONTESTANTS = {
    "os.write": bare_write,
    "monkey.log": monkey_log,
    "monkey.log of 4": monkey_log_of_four,
    "tensorboardX": tensorboardx,
    "MLflow files": mlflow_files,
}


def worker(name: str) -> None:
    """Time one contestant in this process, and print seconds a call."""
    with tempfile.TemporaryDirectory() as directory:
        call = CONTESTANTS[name](directory)
        times, clock, step = [], time.perf_counter, 0
        for _ in range(BATCHES[name] + 10):
            begun = clock()
            for _ in range(BATCH):
                call(step)
                step += 1
            times.append((clock() - begun) / BATCH)
    # The first batches open files and import what is missing.
    print(statistics.median(times[10:]))


def contestant(python: Path, name: str) -> Callable[[], float]:
    """Return what runs `worker` with that Python."""

    def measure() -> float:
        argv = [str(python), __file__, name]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} failed ({done.returncode}):\n{done.stderr[-2000:]}")
        return float(done.stdout.split()[-1]) * 1e6

    return measure


def main() -> None:
    """Measure and report."""
    pythons = {name: ensure(name.replace(" ", "-"), *packages) for name, packages in PEERS.items()}
    names = {name: pythons.get(name, Path(sys.executable)) for name in CONTESTANTS}
    found = take_turns({name: contestant(python, name) for name, python in names.items() if python}, ROUNDS)
    for name, value in found.items():
        print(f"{name:>16}: {value:8.2f} µs")
    ours, bare = found["monkey.log"], found["os.write"]
    peers = {name: value for name, value in found.items() if name != "monkey.log"}
    report("log", "microseconds a call, median", ours, peers, ours / bare)


if __name__ == "__main__":
    worker(sys.argv[1]) if len(sys.argv) > 1 else main()
