"""A ledger outside the store, in which each job of a test notes when it began and ended: what really ran.

`JOB` is the jobs' script; `NOTED` runs another program as one. Every execution holds a lock of its job while it lives,
which goes with the process however it ends: who finds it taken has met another execution of the same job, and says so.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

_BEGIN = """\
import fcntl, hashlib, json, os, sys, time

ledger = sys.argv[1]


def note(what, **more):
    line = {"what": what, "job": os.environ["MONKEY_JOB"], "attempt": int(os.environ["MONKEY_ATTEMPT"])}
    line |= {"pid": os.getpid(), "at": time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", 1)), **more}
    fd = os.open(f"{ledger}/ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(fd, (json.dumps(line) + "\\n").encode())
    os.close(fd)


lock = os.open(f"{ledger}/{os.environ['MONKEY_JOB']}.lock", os.O_RDWR | os.O_CREAT, 0o666)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    note("overlap")
note("begin")
print("begun", os.environ["MONKEY_JOB"], flush=True)
"""
_HELD = """\
while os.path.exists(f"{ledger}/hold"):
    time.sleep(0.02)
"""
JOB = (
    _BEGIN
    + "time.sleep(float(sys.argv[2]))\n"
    + _HELD
    + """\
text = f"{os.environ['MONKEY_JOB']} {os.getpid()} {time.time_ns()}"
with open("result.txt", "w") as file:
    file.write(text)
print(f'{{"done": "{os.getpid()}"}}', flush=True)
note("end", sha256=hashlib.sha256(text.encode()).hexdigest())
"""
)
#: Runs another program as a job, `python noted.py LEDGER OUTPUT program.py …`, and notes all the while that it runs.
NOTED = (
    _BEGIN
    + """\
import runpy, threading


def tick():
    while True:
        note("runs")
        time.sleep(0.2)


threading.Thread(target=tick, daemon=True).start()
output, sys.argv = sys.argv[2], sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    + _HELD
    + """\
with open(f"{os.environ['MONKEY_OUTPUT_DIR']}/{output}", "rb") as file:
    note("end", sha256=hashlib.sha256(file.read()).hexdigest())
"""
)


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file that others append to, but for one in the making: a reader can see half a write."""
    try:
        return path.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []


@dataclass(frozen=True)
class Line:
    """One line of the ledger; `at` in seconds since the machine was booted."""

    what: str
    job: str
    attempt: int
    pid: int
    at: float
    sha256: str = ""


class Ledger:
    """The ledger in a directory."""

    def __init__(self, directory: Path) -> None:
        """Make the directory; anybody may write in it."""
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o777)
        self.directory = directory

    def hold(self) -> None:
        """Let no job end before `release`: what a test does meanwhile may take as long as it takes."""
        (self.directory / "hold").touch()

    def release(self) -> None:
        """Let jobs end."""
        (self.directory / "hold").unlink()

    @property
    def lines(self) -> list[Line]:
        """All lines so far, in the order of writing."""
        return [Line(**json.loads(line)) for line in whole_lines(self.directory / "ledger")]

    @property
    def begins(self) -> Counter[str]:
        """Job to how often it was begun."""
        return Counter(line.job for line in self.lines if line.what == "begin")

    @property
    def executions(self) -> int:
        """How often any job was begun."""
        return sum(self.begins.values())

    @property
    def overlaps(self) -> list[Line]:
        """Executions that met another of the same job."""
        return [line for line in self.lines if line.what == "overlap"]

    @property
    def digests(self) -> dict[str, set[str]]:
        """Job to the digests of what its executions that came to their end wrote."""
        found: dict[str, set[str]] = defaultdict(set)
        for line in self.lines:
            if line.what == "end":
                found[line.job].add(line.sha256)
        return found
