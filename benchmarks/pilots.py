"""How soon a pilot of a real Slurm begins its first job, and how fast it starts jobs, beside an agent on this machine.

Bars: the first job begins at most 5 s after the pilot's process was started, with the agent's code on the cluster
already; a job takes as long as on the local provider. Slurm's daemons run here, by Debian's packages, which needs root.
The store is a directory on this disk for both, and each has two slots.

A job looks for when the pilot's script, or the local agent, was started, and notes that beside the moment at which it
runs itself: the clock is the kernel's, and no word of monkey's or Slurm's counts. It also notes the CPU that our
processes took until then: this hardly depends on the machine's load. Beside other work, run it with priority over that:
`chrt --fifo 5 python benchmarks/pilots.py`.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import MONKEY, report, run

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.local_slurm import LocalSlurm, is_installed, run_slurm

FIRSTS, PACES = 5, 3
#: Jobs of one sweep whose pace is measured.
JOBS = 60
#: Seconds within which a pilot's first job begins.
BAR = 5.0
#: Seconds within which the queue must be empty.
PATIENCE = 120.0
PROJECT = """\
project: bench
store: {base}/store
providers:
  local: {{type: local, max_slots: 2, idle_timeout: 1s}}
  cluster: {{type: slurm, time: 10m, pilots: 1, cpus: 2, max_slots: 2, idle_timeout: 1s,
    store_path: {base}/store, workdir: {base}/work, scratch: {base}/scratch}}
"""
SPEC = """\
name: {name}
command: ['{python}', probe.py, '{out}', '{marks}', '{{i}}']
parameters: {{i: {{range: [0, {jobs}]}}}}
provider: {provider}
"""
#: Notes when it runs; when each process of an agent or of Slurm's was started, in seconds since the boot; and the CPU
#: that it and its dead children took, in seconds.
PROBE = """\
import json, os, sys, time

now, seen = time.clock_gettime(time.CLOCK_BOOTTIME), []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read().replace(b"\\0", b" ").decode(errors="replace")
    except OSError:
        continue
    if any(mark in line for mark in sys.argv[2].split("|")):
        cpu = sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")
        seen.append([line, int(words[19]) / os.sysconf("SC_CLK_TCK"), cpu])
out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
os.write(out, (json.dumps({"at": now, "seen": seen}) + "\\n").encode())
"""
PROVIDERS = ("cluster", "local")
#: The jobs' Python, the same for both: a login shell's `python3` may be a script that looks for one.
PYTHON = Path(sys.executable).resolve()


class Bench:
    """A project whose sweeps run once each, on one provider."""

    def __init__(self, base: Path, slurm: LocalSlurm) -> None:
        self.base, self.slurm, self._number = base, slurm, 0
        (base / "scratch").mkdir()
        self.root = base / "project"
        (self.root / "specs").mkdir(parents=True)
        (self.root / "monkey.yaml").write_text(PROJECT.format(base=base))
        (self.root / "probe.py").write_text(PROBE)
        self.env = {**slurm.environment, "XDG_STATE_HOME": str(base / "state"), "XDG_CACHE_HOME": str(base / "cache")}

    def sweep(self, provider: str, jobs: int) -> list[dict[str, Any]]:
        """Run a sweep by an agent that starts for it; return what its jobs noted, in the order of their moments."""
        self._number += 1
        name, out = f"sweep{self._number}", self.base / f"out{self._number}"
        # In the command lines of an agent, by its store or its code; and of a pilot's script, by where Slurm put it.
        marks = f"{self.base}/|{self.slurm.home}/spool"
        spec = self.root / f"specs/{name}.yaml"
        spec.write_text(SPEC.format(name=name, python=PYTHON, out=out, jobs=jobs, provider=provider, marks=marks))
        run([MONKEY, "apply", "-y", f"specs/{name}.yaml"], cwd=self.root, env=self.env)
        noted = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(noted) == jobs, f"{len(noted)} of {jobs} jobs ran"
        self._await_end(provider)
        return sorted(noted, key=lambda each: each["at"])

    def _await_end(self, provider: str) -> None:
        until = time.monotonic() + PATIENCE
        while self._lives(provider):
            assert time.monotonic() < until, "the agent stays without work"
            time.sleep(0.2)

    def _lives(self, provider: str) -> bool:
        if provider == "cluster":
            return bool(self.slurm.queue())
        mark = f"XDG_STATE_HOME={self.env['XDG_STATE_HOME']}".encode()
        return any(
            mark in _read(path / "environ") and b"monkey_agent" in _read(path / "cmdline") for path in _list_processes()
        )

    def first(self, provider: str) -> tuple[float, float]:
        """Return the seconds from the start of the first process, a pilot's script or an agent, to its first job.

        And the seconds of CPU that our processes took until then, without the job.
        """
        (noted,) = self.sweep(provider, 1)
        ours = [cpu for line, _, cpu in noted["seen"] if "probe.py" not in line and "slurm" not in line]
        return float(noted["at"] - min(at for _, at, _ in noted["seen"])), sum(ours)

    def pace(self, provider: str) -> float:
        """Return the milliseconds that a job takes, from the first to the last of a sweep."""
        noted = self.sweep(provider, JOBS)
        return (noted[-1]["at"] - noted[0]["at"]) / (JOBS - 1) * 1000


def _list_processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdigit()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the daemons end with us
    if not is_installed():
        print("pilots is left out: it needs root, and munge, slurm-wlm and slurm-client of Debian's", flush=True)
        print(json.dumps({"benchmark": "pilots", "ours": None}))
        return
    with (
        tempfile.TemporaryDirectory(prefix="mk-slurm-", dir="/tmp", ignore_cleanup_errors=True) as home,
        tempfile.TemporaryDirectory(prefix="monkey-pilots-", dir="/var/tmp", ignore_cleanup_errors=True) as base,
        run_slurm(Path(home)) as slurm,
    ):
        bench = Bench(Path(base), slurm)
        for provider in PROVIDERS:
            bench.sweep(provider, 1)  # the agent's code is there now
        first = {provider: [bench.first(provider) for _ in range(FIRSTS)] for provider in PROVIDERS}
        turns = [{provider: bench.pace(provider) for provider in PROVIDERS} for _ in range(PACES)]
    print(f"seconds to the first job: {first}; milliseconds a job: {turns}", flush=True)
    pace = {provider: round(statistics.median(each[provider] for each in turns), 1) for provider in PROVIDERS}
    worst, local = (max(seconds for seconds, _ in first[provider]) for provider in PROVIDERS)
    report(
        *("pilots", "s", worst, {"local": local}, worst / BAR),
        median=round(statistics.median(seconds for seconds, _ in first["cluster"]), 2),
        cpu={provider: round(statistics.median(cpu for _, cpu in each), 2) for provider, each in first.items()},
        pace_ms=pace,
        pace_ratio=round(pace["cluster"] / pace["local"], 2),
        load=os.getloadavg()[0],
    )


if __name__ == "__main__":
    main()
