"""What a progress bar costs: its bytes in the store, while its job runs and in the end, and the agent's CPU.

A real agent runs a job that prints a mebibyte of real tqdm a second, into a directory store. Bars: at most 5 % of these
bytes in the store, and at most 2 % of a core at that rate. Peers: gzip of the whole log at once, at levels 1 and 6.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from _common import MONKEY, report
from sockets import read_cpu
from tqdm import tqdm

#: Mebibytes of log; the job prints one a second.
MEBIBYTES = int(os.environ.get("MEBIBYTES", "60"))
#: Mebibytes of it that are made; the rest repeats them.
DIFFERENT = 6
#: Prints a file piece by piece: a 20th of a mebibyte in each 20th of a second.
JOB = """\
import os, sys, time
begun, sent = time.monotonic(), 0
with open(sys.argv[1], "rb") as file:
    while data := file.read((1 << 20) // 20):
        while data:
            data = data[os.write(1, data):]
        sent += 1
        time.sleep(max(0.0, begun + sent / 20 - time.monotonic()))
"""
SPEC = "name: bars\ncommand: [python3, job.py, {log}]\n"


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        """Start at any time."""
        self.now = 1e9

    def time(self) -> float:
        """Return the time in seconds."""
        return self.now


def make_bars(size: int, *, loss: bool) -> bytes:
    """Return what tqdm prints of epochs of 1,000 steps of 4 ms, ten times a second; `loss`: it shows a metric, too."""
    out, chance, clock, epoch = io.StringIO(), random.Random(1), Clock(), 0
    while out.tell() < size:
        epoch += 1
        bar = tqdm(total=1000, file=out, desc=f"epoch {epoch}", ncols=100, ascii=False)
        bar._time = clock.time
        bar.start_t = bar.last_print_t = clock.now
        for step in range(0, 1000, 25):
            clock.now += 0.1 * chance.uniform(1.01, 1.2)
            if loss:
                bar.set_postfix(loss=f"{chance.uniform(0.9, 1.1) / (epoch + step / 1000):.4f}", refresh=False)
            bar.update(25)
        bar.close()
    return out.getvalue().encode()[:size]


def weigh(store: Path, part: str) -> int:
    """Return the bytes of the store's objects whose path has `part` in it."""
    sizes = []
    for path in store.rglob("*"):
        if part in str(path) and path.is_file():
            sizes.append(path.stat().st_size)
    return sum(sizes)


def find_processes(state: Path) -> Iterator[int]:
    """Yield the agent, its guard and its supervisor, by the state directory that their arguments name."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            environ = (process / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(state) in environ and b"monkey" in words:
            yield int(process.name)


def measure(home: Path, log: bytes) -> dict[str, float]:
    """Run a job that prints `log`.

    Return percents: of a core while it runs, and of its bytes in the store, then and in the end. Also the seconds of
    CPU that the end took.
    """
    env = {**os.environ, **{name: str(home / name.lower()) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}}
    project, text = home / "project", home / "text"
    text.write_bytes(log)
    (project / "specs").mkdir(parents=True)
    (project / "job.py").write_text(JOB)
    (project / "monkey.yaml").write_text(f"project: bench\nstore: {home / 'store'}\n")
    (project / "specs" / "bars.yaml").write_text(SPEC.format(log=text))
    begun = time.monotonic()
    subprocess.run([MONKEY, "apply", "-y", "--detach"], cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)
    time.sleep(5)
    processes = list(find_processes(home / "xdg_state_home"))
    before, since = sum(map(read_cpu, processes)), time.monotonic()
    time.sleep(MEBIBYTES - 10)
    cpu = 100 * (sum(map(read_cpu, processes)) - before) / (time.monotonic() - since)
    shipped = weigh(home / "store", "/shipments/")
    printed = min(len(log), int((time.monotonic() - begun) * (1 << 20)))
    running = 100 * shipped / printed
    agent = sum(map(read_cpu, processes))  # what follows is the end, and the wait for it
    subprocess.run([MONKEY, "apply", "-y"], cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)
    shown = subprocess.run([MONKEY, "logs", "bars"], cwd=project, env=env, check=True, stdout=subprocess.PIPE).stdout
    if shown != log:
        raise SystemExit(f"`monkey logs` shows {len(shown):,} other bytes than the {len(log):,} of the job")
    ended = 100 * weigh(home / "store", "/log/") / len(log)
    seconds = sum(map(read_cpu, processes)) - agent
    for process in processes:
        os.kill(process, 15)
    return {"cpu": cpu, "running": running, "ended": ended, "end_seconds": seconds}


def main() -> None:
    """Measure and report."""
    results, peers = dict[str, dict[str, float]](), dict[str, float]()
    for name, loss in {"tqdm": False, "tqdm with a loss": True}.items():
        # gzip looks back by 32 KiB, so what comes again does not help it.
        log = make_bars(DIFFERENT << 20, loss=loss) * (MEBIBYTES // DIFFERENT)
        for level in (1, 6):
            begun = time.process_time()
            packed = len(gzip.compress(log, level))
            per_second = 100 * (time.process_time() - begun) / MEBIBYTES
            peers[f"{name}, gzip -{level}"] = 100 * packed / len(log)
            print(f"{name}, gzip -{level}: {100 * packed / len(log):.2f} %, {per_second:.2f} % of a core", flush=True)
        with tempfile.TemporaryDirectory() as home:
            results[name] = found = measure(Path(home), log)
        print(
            f"{name}: {found['running']:.2f} % in the store while it runs, {found['ended']:.2f} % in the end; "
            f"{found['cpu']:.2f} % of a core, {found['end_seconds']:.2f} s of CPU at the end",
            flush=True,
        )
    ours = results["tqdm"]
    what = "percent of a progress bar's bytes in the store"
    report("logs", what, ours["ended"], peers, ours["ended"] / 5, cpu=round(ours["cpu"], 2))


if __name__ == "__main__":
    sys.exit(main())
