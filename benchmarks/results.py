"""How soon `monkey results` shows 100,000 jobs, beside pandas on the same CSV and MLflow's search of 10,000 runs.

Bars: the table, `--csv`, `--group-by` and `--top` at most 2 s and 300 MB, `--json` at most 3 s and 350 MB. After SIGINT
or SIGTERM, `--json` ends within 0.5 s. Nearly all jobs have ended, and each has logged a metric. The ratio that is
reported is the CPU of `--group-by` over that of pandas; wall, CPU and memory of each form stand beside it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from _common import MONKEY, Run, ensure, report, run
from _fleet import Agents
from start import BIG, JOBS, project

ROUNDS = 3
#: Each form, with the most that it may take: seconds, and megabytes.
FORMS: dict[str, tuple[list[str], float, float]] = {
    "table": ([], 2, 300),
    "--csv": (["--csv"], 2, 300),
    "--group-by": (["--group-by", "lr,width"], 2, 300),
    "--top 10": (["--top", "10"], 2, 300),
    "--json": (["--json"], 3, 350),
}
#: Where in the time of `--json` a signal comes, as a part of that time.
SIGNALS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)

PANDAS = ("pandas==2.3.3",)
PANDAS_GROUPS = (
    "import sys, pandas; print(pandas.read_csv(sys.argv[1]).groupby(['lr', 'width']).loss.agg(['mean', 'sem']))"
)
#: Without servers; its tables are made by its own code, and filled by SQL, as its client takes milliseconds a run.
MLFLOW = ("mlflow-skinny==3.6.0", "sqlalchemy==2.0.44", "alembic==1.17.2", *PANDAS)
#: A tenth of the jobs: of 100,000 runs, the search had not ended after five minutes of CPU.
RUNS = 10_000
MLFLOW_MAKE = "import sys, mlflow; mlflow.set_tracking_uri(sys.argv[1]); print(mlflow.create_experiment('big'))"
MLFLOW_SEARCH = (
    "import sys, mlflow; mlflow.set_tracking_uri(sys.argv[1]); found = mlflow.search_runs(experiment_names=['big'], "
    "max_results=100_000, order_by=['metrics.loss ASC']); assert len(found) == 10_000, len(found)"
)


def prepare(root: Path) -> Path:
    """Make a large project whose jobs have a metric, and return its directory."""
    home = project(root, "large", BIG + "metric: {name: loss}\n")
    agents = Agents(home, home / "specs" / "spec.yaml", metrics=True)
    asyncio.run(agents.work())
    asyncio.run(agents.beat())
    return home


def fill_mlflow(database: Path, python: Path) -> None:
    """Make MLflow's tables, and its runs: three parameters and a metric each."""
    run([str(python), "-c", MLFLOW_MAKE, f"sqlite:///{database}"], cwd=database.parent)
    rows = range(RUNS)
    with sqlite3.connect(database) as held:
        held.executemany(
            "INSERT INTO runs (run_uuid, name, source_type, user_id, status, start_time, end_time, lifecycle_stage, "
            "artifact_uri, experiment_id) VALUES (?, ?, 'LOCAL', 'a', 'FINISHED', 0, 1000, 'active', '/tmp', 1)",
            ((f"{row:032x}", f"run-{row}") for row in rows),
        )
        values = {"lr": lambda row: row // 1_000, "width": lambda row: row // 10 % 100, "seed": lambda row: row % 10}
        held.executemany(
            "INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)",
            ((name, str(value(row)), f"{row:032x}") for row in rows for name, value in values.items()),
        )
        for table in ("metrics", "latest_metrics"):
            held.executemany(
                f"INSERT INTO {table} (key, timestamp, step, is_nan, value, run_uuid) VALUES ('loss', 1, 9, 0, ?, ?)",
                ((1 / (1001 + row), f"{row:032x}") for row in rows),
            )


def measure(contestants: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, Run]:
    """Call each in turn, and return its median wall, CPU and peak of memory."""
    found: dict[str, list[Run]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            found[name].append(contestant())
    return {
        name: Run(*(statistics.median(getattr(one, field) for one in runs) for field in Run._fields))
        for name, runs in found.items()
    }


def interrupt(home: Path, seconds: float) -> dict[str, dict[str, float]]:
    """Return the longest time, and the most CPU, that `--json` took after each signal; `seconds`: undisturbed."""
    worst: dict[str, dict[str, float]] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        ends = [end for part in SIGNALS if (end := _end(home, number, part * seconds))]
        waits, cpus = zip(*ends, strict=True)
        worst[number.name] = {"seconds": round(max(waits), 3), "cpu": round(max(cpus), 3)}
    return worst


def _end(home: Path, number: signal.Signals, after: float) -> tuple[float, float] | None:
    """Return the seconds, and those of CPU, from the signal to the end; None where that came before."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([MONKEY, "results", "--json"], cwd=home, **quiet)
    time.sleep(after)
    began, used = time.perf_counter(), _cpu(process.pid)
    os.kill(process.pid, number)  # not send_signal, which takes its end away from wait4
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode == 0 and usage.ru_utime + usage.ru_stime - used < 0.02:
        return None
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime - used


def _cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has taken so far."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and report."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        home, table = prepare(root), root / "results.csv"
        table.write_bytes(
            subprocess.run([MONKEY, "results", "--csv"], cwd=home, capture_output=True, check=True).stdout
        )
        ours = {name: _ask(home, options) for name, (options, *_) in FORMS.items()}
        contestants: dict[str, Callable[[], Run]] = {**ours, "status": lambda: run([MONKEY, "status"], cwd=home)}
        if pandas := ensure("pandas", *PANDAS):
            contestants["pandas"] = lambda: run([str(pandas), "-c", PANDAS_GROUPS, str(table)])
        found = measure(contestants, ROUNDS)
        if mlflow := ensure("mlflow-sqlite", *MLFLOW):
            fill_mlflow(root / "mlflow.db", mlflow)
            search = [str(mlflow), "-c", MLFLOW_SEARCH, f"sqlite:///{root / 'mlflow.db'}"]
            # Once: it takes half a minute.
            found |= measure({"MLflow": lambda: run(search, cwd=root)}, 1)
        ends = interrupt(home, found["--json"].seconds)
    _report(found, ends)


def _ask(home: Path, options: list[str]) -> Callable[[], Run]:
    return lambda: run([MONKEY, "results", *options], cwd=home)


def _report(found: Mapping[str, Run], ends: Mapping[str, dict[str, float]]) -> None:
    for name, one in found.items():
        bar = f", bar {FORMS[name][1]:g} s and {FORMS[name][2]:g} MB" if name in FORMS else ""
        print(f"{name:>12}: {one.seconds:6.2f} s, CPU {one.cpu:5.2f} s, {one.peak / 1e6:4.0f} MB{bar}")
    for name, end in ends.items():
        print(f"{name:>12}: {end['seconds']:6.2f} s, CPU {end['cpu']:5.2f} s, until it ended, bar 0.5 s")
    ours, peers = found["--group-by"], {name: one.cpu for name, one in found.items() if name in ("pandas", "MLflow")}
    forms: dict[str, Any] = {
        name: {"seconds": round(one.seconds, 2), "cpu": round(one.cpu, 2), "megabytes": round(one.peak / 1e6)}
        for name, one in found.items()
    }
    report(
        "results",
        "seconds of CPU of results --group-by, median",
        ours.cpu,
        peers,
        ours.cpu / peers["pandas"] if "pandas" in peers else 0.0,
        forms=forms,
        ended=ends,
        of={"jobs": JOBS, "MLflow's runs": RUNS},
        load=[round(load, 2) for load in os.getloadavg()],
    )


if __name__ == "__main__":
    main()
