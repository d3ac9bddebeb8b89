"""No-op jobs through the whole of `monkey apply` on two slots, beside xargs, GNU parallel and HyperQueue.

Bars: at most twice `xargs -P2`, and less than GNU parallel and HyperQueue. What is timed is what a user waits for:
ours is the whole command, which begins a store, starts an agent, runs the jobs with the default durability and sees
them recorded; HyperQueue's server and worker are there before the clock starts, and nobody keeps its outputs.

Before anything is timed, each contestant runs jobs that write their numbers to a ledger: each must be there once. After
every timed run its own records are asked whether all jobs ended well.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from _common import CACHE, MONKEY, ensure, report, run, take_turns

JOBS = 2000
SLOTS = 2
ROUNDS = 5
#: Seconds within which everything that a contestant started has to be gone.
PATIENCE = 60.0

SPEC = """\
name: noop
command: {command}
parameters:
  i: {{range: [0, {jobs}]}}
"""

#: Writes its argument as a line of its own to the ledger beside it.
MARK = """\
#!/bin/sh
echo "$1" >> "${0%/*}/ledger"
"""

#: Called with a fresh directory and a command that takes a job's number, or takes none; returns seconds.
Contestant = Callable[[Path, Sequence[str]], float]
NOOP = ("true",)


def monkey(home: Path, command: Sequence[str]) -> float:
    """Time `monkey apply` in a project that has never been applied, with state and caches of its own."""
    env = {name: str(home / name.lower()) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    project = home / "project"
    (project / "specs").mkdir(parents=True)
    (project / "monkey.yaml").write_text(f"project: bench\nproviders:\n  local: {{type: local, max_slots: {SLOTS}}}\n")
    words = [*command, "{i}"] if command != NOOP else list(command)
    (project / "specs" / "noop.yaml").write_text(SPEC.format(command=json.dumps(words), jobs=JOBS))
    seconds = run([MONKEY, "apply"], cwd=project, env=env).seconds
    told = subprocess.run(
        [MONKEY, "results", "noop", "--json"],
        cwd=project,
        env={**os.environ, **env},
        capture_output=True,
        check=True,
    )
    rows = json.loads(told.stdout)
    expect("monkey's results", sum(row["state"] == "succeeded" for row in rows))
    for lock in (home / "xdg_state_home").rglob("lock"):
        _dismiss(lock)
    return seconds


def _dismiss(lock: Path) -> None:
    """Have the agent leave now: it would wait for more work, and be in the next contestant's way."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(lock.read_text()), signal.SIGTERM)
    until = time.monotonic() + PATIENCE
    with lock.open() as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise SystemExit(f"the agent does not leave ({lock})") from None
                time.sleep(0.05)


def xargs(home: Path, command: Sequence[str]) -> float:
    """Time `xargs -P2`: nothing but the processes; it records nothing."""
    return _shell(home, ["xargs", f"-P{SLOTS}", "-n1", *command])


def parallel(home: Path, command: Sequence[str]) -> float:
    """Time GNU parallel with its log of jobs."""
    seconds = _shell(home, ["parallel", f"-j{SLOTS}", "--joblog", "joblog", *command])
    rows = [line.split("\t") for line in (home / "joblog").read_text().splitlines()[1:]]
    expect("GNU parallel's log", sum(row[6:8] == ["0", "0"] for row in rows))
    return seconds


def _shell(home: Path, words: Sequence[str]) -> float:
    """Time a program that reads the jobs' numbers from its input."""
    # PARALLEL_HOME: else parallel reads and writes in the user's own.
    env = {"PARALLEL_HOME": str(home)}
    return run(["sh", "-c", f'seq 0 {JOBS - 1} | "$@"', "sh", *words], cwd=home, env=env).seconds


# -- HyperQueue -------------------------------------------------------------------------------------------------------


def hyperqueue_without_journal(python: Path) -> Contestant:
    """Return HyperQueue as its package on PyPI has it: server and worker in one process, no journal, no outputs."""

    def measure(home: Path, command: Sequence[str]) -> float:
        argv = [str(python), str(Path(__file__).with_name("_hyperqueue.py")), str(JOBS), str(SLOTS), *command]
        done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise SystemExit(f"HyperQueue failed ({done.returncode}):\n{done.stderr[-2000:]}")
        finished, seconds = done.stdout.splitlines()[-1].split()
        expect("HyperQueue's count", int(finished))
        return float(seconds)

    return measure


def hyperqueue(home: Path, command: Sequence[str]) -> float:
    """Time `hq submit --wait` to a server that keeps a journal and has one worker of two CPUs."""
    hq = ["hq", "--server-dir", str(home / "server")]
    submit = [*hq, "submit", "--wait", f"--array=0-{JOBS - 1}", "--stdout=none", "--stderr=none", "--"]
    words = ["sh", "-c", 'exec "$@" "$HQ_TASK_ID"', "sh", *command] if command != NOOP else list(command)
    with (
        _kept([*hq, "server", "start", "--journal", str(home / "journal")], home),
        _kept([*hq, "worker", "start", f"--cpus={SLOTS}", "--detect-resources=none"], home),
    ):
        _until(lambda: b"RUNNING" in _answer([*hq, "worker", "list"]))
        seconds = run([*submit, *words], cwd=home).seconds
        [job] = json.loads(_answer([*hq, "--output-mode=json", "job", "list", "--all"]))
        expect("HyperQueue's count", job["task_stats"]["finished"])
        if not (home / "journal").stat().st_size:
            raise SystemExit("HyperQueue kept no journal")
    return seconds


@contextlib.contextmanager
def _kept(argv: Sequence[str], home: Path) -> Iterator[None]:
    """Keep a program running."""
    with (home / "log").open("ab") as log, subprocess.Popen(argv, cwd=home, stdout=log, stderr=log) as process:
        if "server" in argv:
            _until(lambda: not subprocess.call([*argv[:3], "server", "info"], stdout=log, stderr=log))
        try:
            yield
        finally:
            process.terminate()


def _answer(argv: Sequence[str]) -> bytes:
    return subprocess.run(argv, capture_output=True, check=True).stdout


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise SystemExit("HyperQueue did not start")
        time.sleep(0.05)


# -- all of them ------------------------------------------------------------------------------------------------------


def expect(what: str, found: int) -> None:
    """Stop where not all jobs are there."""
    if found != JOBS:
        raise SystemExit(f"{what}: expected {JOBS} jobs that ended well, found {found}")


def contestants() -> dict[str, Contestant]:
    """Return whoever can be had; who cannot is said."""
    found: dict[str, Contestant] = {"monkey": monkey, "xargs -P2": xargs}
    if shutil.which("parallel"):
        found["GNU parallel"] = parallel
    else:
        print("GNU parallel is left out: it is not installed (Debian: parallel)", flush=True)
    if python := ensure("HyperQueue", "hyperqueue==0.27.0"):
        found["HyperQueue, no journal"] = hyperqueue_without_journal(python)
    if shutil.which("hq"):
        found["HyperQueue"] = hyperqueue
    else:
        print("HyperQueue with its journal is left out: PyPI's package has neither a journal nor `hq`", flush=True)
    return found


def check(contestant: Contestant, name: str, root: Path) -> None:
    """Have each job write its number, and see that each did, once."""
    with _fresh(root) as home:
        mark = home / "mark"
        mark.write_text(MARK)
        mark.chmod(0o755)
        contestant(home, [str(mark)])
        ran = sorted(map(int, (home / "ledger").read_text().split()))
    if ran != list(range(JOBS)):
        raise SystemExit(f"{name}: expected each of {JOBS} jobs to run once, found {len(set(ran))} in {len(ran)} runs")
    print(f"{name}: each of {JOBS:,} jobs ran once", flush=True)


@contextlib.contextmanager
def _fresh(root: Path) -> Iterator[Path]:
    """Give a new directory. It stays till the end: ext4 makes files slowly for a while after many were removed."""
    yield Path(tempfile.mkdtemp(dir=root))


def main() -> None:
    """Measure and report."""
    # Our bytecode is compiled, as after any installation; the checked runs do it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    CACHE.mkdir(parents=True, exist_ok=True)
    # Not in /tmp, which may be memory: what is durable costs what it costs on a disk.
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as directory:
        root, all_of_them = Path(directory), contestants()
        for name, contestant in all_of_them.items():
            check(contestant, name, root)
        found = take_turns({name: _timed(contestant, root) for name, contestant in all_of_them.items()}, ROUNDS)
    for name, seconds in found.items():
        print(f"{name:>22}: {seconds:6.2f} s, {seconds / JOBS * 1e3:5.2f} ms a job")
    ours = found.pop("monkey")
    report(
        "dispatch",
        f"seconds for {JOBS:,} no-op jobs, median",
        ours,
        found,
        ours / found["xargs -P2"],
        load=[round(load, 2) for load in os.getloadavg()],
    )


def _timed(contestant: Contestant, root: Path) -> Callable[[], float]:
    def measure() -> float:
        with _fresh(root) as home:
            return contestant(home, NOOP)

    return measure


if __name__ == "__main__":
    main()
