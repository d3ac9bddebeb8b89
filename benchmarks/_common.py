"""What benchmarks share: processes timed and weighed, contestants that take turns, peers that are installed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: The command under test: the one beside the Python that runs the benchmark.
MONKEY = str(Path(sys.executable).with_name("monkey"))

#: What benchmarks keep: the peers' virtual environments.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "monkey-benchmarks"


class Run(NamedTuple):
    """One process: seconds from its start to its end, its largest resident memory in bytes, and its seconds of CPU."""

    seconds: float
    peak: int
    cpu: float


def run(argv: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Run:
    """Run a process to its end, its output thrown away; raises SystemExit with its last words where it fails."""
    begun = time.perf_counter()
    with subprocess.Popen(
        argv, cwd=cwd, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        words = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)[:200]} failed ({process.returncode}):\n{words.decode()[-2000:]}")
    # Linux counts in KiB, macOS in bytes.
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(seconds, peak, usage.ru_utime + usage.ru_stime)


def take_turns(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Call every contestant in each round, and return each one's median: noise of the machine meets all alike."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for at in range(rounds):
        order = list(contestants.items())
        for name, contestant in order[at % len(order) :] + order[: at % len(order)]:
            found[name].append(contestant())
    return {name: statistics.median(values) for name, values in found.items()}


def ensure(name: str, *requirements: str) -> Path | None:
    """Return the Python of a virtual environment with these packages, made once in the user's cache; None if it cannot.

    Peers are not among our own dependencies: a benchmark without them says so and goes on.
    """
    key = hashlib.sha256(" ".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    home = CACHE / f"{name}-{key}"
    python = home / "bin" / "python"
    if (home / "ready").exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    uv = shutil.which("uv")
    make = [uv, "venv", "-q", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
    pip = [uv, "pip", "install", "-q", "--python", str(python)] if uv else [str(python), "-m", "pip", "install", "-q"]
    try:
        subprocess.run([*make, str(home)], check=True, timeout=120, stdout=subprocess.DEVNULL)
        subprocess.run([*pip, *requirements], check=True, timeout=300, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as exc:
        print(f"{name} is left out: {' '.join(requirements)} could not be installed ({exc})", flush=True)
        return None
    (home / "ready").touch()
    return python


def report(benchmark: str, unit: str, ours: float, peers: Mapping[str, float], ratio: float, **more: Any) -> None:
    """Print the result, which is the benchmark's last line. `ratio`: ours over what its bar is set against."""
    rounded = {name: _short(value) for name, value in peers.items()}
    result = {"benchmark": benchmark, "unit": unit, "ours": _short(ours), "peers": rounded, "ratio": _short(ratio)}
    print(json.dumps({**result, **more}), flush=True)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
