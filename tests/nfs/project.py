"""A project on the machines of a site: m2 runs its jobs, and people look from m1, with the same keys."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monkey.protocol.layout import spell_number
from tests.nfs.site import NfsSite, wait_for

#: Prints a line each quarter of a second, and keeps a ledger on the host's disk, outside of the store. Each note is a
#: datagram, too: a witness beside the server gives it the time of one clock. While there is `hold`, a job does not end.
JOB = """\
import os, pathlib, socket, sys, time
ledger, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
witness = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def note(what):
    line = f"{os.environ['MONKEY_JOB']} {what} {os.uname().nodename} {os.getpid()}\\n"
    witness.sendto(line.encode(), ("10.99.0.1", 9))
    with (ledger / os.environ["MONKEY_JOB"]).open("a") as file:
        file.write(line)
note("begin")
for number in range(int(seconds * 4)):
    print("line", number, flush=True)
    note("tick")
    time.sleep(0.25)
while (ledger.parent / "hold").exists():
    time.sleep(0.1)
print("line last", flush=True)
pathlib.Path("out.txt").write_text("whole")
note("end")
"""
#: A verb in a machine, by the keys that all machines have.
VERB = "cd {work} && XDG_CONFIG_HOME={config} PYTHONDONTWRITEBYTECODE=1 {python} -P -m monkey.cli.main {words}"


class NfsProject:
    """A clone of the project on each machine, and the ledger."""

    def __init__(self, site: NfsSite, store: str = "/mnt/store") -> None:
        """Make the clones; `store`: the store, as the machines see it."""
        self.site = site
        self.ledger = site.directory / "ledger"
        self.ledger.mkdir(exist_ok=True)
        self.hold = site.directory / "hold"
        self.store = site.export / Path(store).name
        for name in ("m1", "m2"):
            work = self._work(name)
            (work / "specs").mkdir(parents=True, exist_ok=True)
            (work / "monkey.yaml").write_text(f"project: shop\nstore: {store}\n")
            (work / "job.py").write_text(JOB)

    def _work(self, name: str) -> Path:
        return self.site.directory / "work" / name

    def write_spec(self, name: str, seconds: float, jobs: int = 1) -> None:
        """Write a spec of jobs that run for `seconds`, into both clones."""
        command = json.dumps(["python3", "job.py", str(self.ledger), str(seconds), "{i}"])
        parameters = f"{{i: {{range: [0, {jobs}]}}}}"
        text = f"name: {name}\ncommand: {command}\nparameters: {parameters}\noutputs: [out.txt]\n"
        for machine in ("m1", "m2"):
            (self._work(machine) / f"specs/{name}.yaml").write_text(text)

    def spell_verb(self, machine: str, *words: str) -> str:
        """Return the shell's command that runs a verb in a machine."""
        config = self.site.directory / "config"
        return VERB.format(work=self._work(machine), config=config, python=sys.executable, words=shlex.join(words))

    def verb(self, machine: str, *words: str, code: int | None = 0) -> str:
        """Run a verb in a machine, and return what it printed."""
        return self.site.run(machine, self.spell_verb(machine, *words), code=code)

    def start_verb(self, machine: str, *words: str) -> Callable[[], tuple[str, float]]:
        """Start a verb; the answer waits for it, and returns what it printed, and when it ended (time.monotonic)."""
        told: list[tuple[str, float]] = []

        def run() -> None:
            told.append((self.verb(machine, *words, code=None), time.monotonic()))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def answer() -> tuple[str, float]:
            thread.join()
            return told[0]

        return answer

    def read_ledger(self, job: str = "*") -> list[str]:
        """Return what jobs noted."""
        return [line for path in self.ledger.glob(job) for line in path.read_text().splitlines()]

    def wait_for_job(self) -> str:
        """Wait until one more job has begun, and return it."""
        seen = {path.name for path in self.ledger.iterdir()}
        wait_for(lambda: {path.name for path in self.ledger.iterdir()} - seen, "a job begins")
        [job] = {path.name for path in self.ledger.iterdir()} - seen
        return job

    def read_status(self, machine: str, sweep: str) -> dict[str, int]:
        """Return how many jobs of the sweep a machine sees in each state."""
        told: dict[str, Any] = json.loads(self.verb(machine, "status", "--json"))
        [found] = [one for one in told["sweeps"] if one["name"] == sweep]
        return {state: count for state, count in found["states"].items() if count}

    def wait_for_end(self, job: str) -> float:
        """Wait until the job's end is on the server's disk, and return when (time.monotonic)."""
        entry = self.store / "projects/shop/jobs" / job / spell_number(2)
        wait_for(entry.exists, f"the end of {job} is in the store")
        return time.monotonic()

    def wait_for_silence(self, job: str) -> float:
        """Wait until the job has noted nothing for some ticks, and return when it last did (time.time)."""
        path = self.ledger / job
        wait_for(lambda: time.time() - path.stat().st_mtime > 2, f"{job} stops")
        return path.stat().st_mtime
