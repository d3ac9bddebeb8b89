"""Runs sweeps on the one GPU of this machine, and records what happened: `python record.py EVIDENCE SCRATCH`.

The first directory gets the evidence that `judge.py` judges, the second the project, its store and its agents:

- ledger.jsonl: what the jobs and the stranger noted themselves;
- smi.jsonl: what nvidia-smi said, every half second;
- jobs.json: `monkey info JOB --json` of each job, with the times of its samples;
- status.txt: what `monkey status` prints of the job that asked for too much;
- card.json, agent.log, verbs.log.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from monkey.fleet.gpus import list_gpus

HERE = Path(__file__).resolve().parent
MONKEY = [sys.executable, "-P", "-m", "monkey.cli.main"]
#: Seconds that each quarter and each whole job holds its memory: the agent samples every 15 seconds.
HOLD = 18
#: Seconds for which the stranger holds the GPU while jobs wait for it.
STRANGER_HOLDS = 8
#: Seconds after which no answer of nvidia-smi that an agent got counts for it any more, with one to get another one.
ANSWER_HOLDS = 4
#: Seconds that any verb, and anything that is waited for, may take.
PATIENCE = 120
#: Of the card's memory: what a quarter job, a whole job and the stranger hold. More than 1: too much.
PARTS = {"quarter": 0.002, "whole": 0.25, "stranger": 0.05, "late": 0.05, "toomuch": 1.1, "beside": 0}


class Rehearsal:
    """A project with its store and agent, and the evidence."""

    def __init__(self, into: Path, scratch: Path) -> None:
        """Record into the directory `into`, and make the project below `scratch`; both are empty."""
        self.into, self.project = into, scratch / "project"
        self.ledger = into / "ledger.jsonl"
        (self.project / "specs").mkdir(parents=True)
        self.store = self.project / ".monkey/store"
        (self.project / "monkey.yaml").write_text("project: rehearsal\nproviders: {local: {idle_timeout: 1}}\n")
        (self.project / "cuda_job.py").write_text((HERE / "cuda_job.py").read_text())
        homes = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config"}
        self.env = {**os.environ, **{name: str(scratch / place) for name, place in homes.items()}, "LANG": "C.UTF-8"}
        self.env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        (scratch / "home").mkdir()

    def monkey(self, *words: str, expected: int = 0) -> str:
        """Run a verb to its end, and return what it printed. Raises RuntimeError for another exit code."""
        done = subprocess.run(
            [*MONKEY, *words],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        said = f"$ monkey {' '.join(words)} (exit code {done.returncode})\n{done.stdout}{done.stderr}\n"
        with (self.into / "verbs.log").open("a") as log:
            log.write(said)
        if done.returncode != expected:
            raise RuntimeError(said)
        return done.stdout

    def spec(self, kind: str, jobs: int, gpus: float, *words: str) -> str:
        """Write the spec of a sweep; returns its path."""
        command = ["python3", "cuda_job.py", str(self.ledger), kind, "{i}", "--part", str(PARTS[kind]), *words]
        path = self.project / "specs" / f"{kind}.yaml"
        path.write_text(
            f"name: {kind}\ncommand: {json.dumps(command)}\nparameters: {{i: {{range: [0, {jobs}]}}}}\n"
            f"resources: {{cpus: 0.1, gpus: {gpus:g}}}\n"
        )
        return f"specs/{kind}.yaml"

    def noted(self, what: str, kind: str) -> int:
        """Return how many lines of the ledger say so."""
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        return sum((line["what"], line["kind"]) == (what, kind) for line in map(json.loads, lines))

    @property
    def agent_log(self) -> str:
        """What the agent said."""
        return (self.into / "agent.log").read_text()

    @contextlib.contextmanager
    def agent(self) -> Iterator[None]:
        """Have an agent that leaves a GPU alone on which others compute, as on a host of a lab."""
        words = ["--store", str(self.store), "--project", "rehearsal", "--fleet", "local"]
        words += ["--gpus", "auto", "--idle-timeout", "300"]
        with (self.into / "agent.log").open("w") as log:
            agent = subprocess.Popen(
                [*MONKEY, "agent", *words],
                cwd=self.project,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                until(lambda: agent.poll() is not None or " works for " in self.agent_log, "the agent begins")
                yield
            finally:
                agent.terminate()
                agent.wait(PATIENCE)

    @contextlib.contextmanager
    def stranger(self) -> Iterator[None]:
        """Have a process on the GPU that monkey did not start."""
        words = [str(self.ledger), "stranger", "0", "--part", str(PARTS["stranger"]), "--seconds", str(PATIENCE)]
        command = [sys.executable, str(HERE / "cuda_job.py"), *words]
        stranger = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL)
        try:
            until(lambda: self.noted("hold", "stranger"), "the stranger holds memory")
            yield
        finally:
            stranger.terminate()
            stranger.wait(PATIENCE)
            with self.ledger.open("a") as ledger:
                line = {"what": "end", "kind": "stranger", "job": "stranger-0", "at": time.time()}
                ledger.write(f"{json.dumps(line)}\n")


def until(what: Callable[[], Any], why: str, patience: float = PATIENCE) -> None:
    """Wait until it is true. Raises TimeoutError."""
    deadline = time.monotonic() + patience
    while not what():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:g} s in vain: {why}")
        time.sleep(0.05)


def ask_smi(query: str) -> list[list[str]]:
    """Return the rows of an answer of nvidia-smi."""
    done = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=30, check=True
    )
    return [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def describe_card() -> dict[str, Any]:
    """Return what the one card is. Exits where there is not one."""
    try:
        rows = ask_smi("--query-gpu=name,uuid,driver_version,memory.total")
    except (OSError, subprocess.SubprocessError) as exc:
        sys.exit(f"FAILED: expected one GPU and NVIDIA's driver, found no answer of nvidia-smi: {exc}")
    if len(rows) != 1:
        sys.exit(f"FAILED: expected one GPU, found {len(rows)}")
    name, uuid, driver, mebibytes = rows[0]
    if list_gpus() != (uuid,):
        sys.exit(f"FAILED: expected monkey to find {uuid}, found {list_gpus()}: is /proc/driver/nvidia there?")
    return {"name": name, "uuid": uuid, "driver": driver, "memory_bytes": int(mebibytes) << 20}


def read_smi() -> dict[str, Any]:
    """Return what nvidia-smi says now. Raises SubprocessError, ValueError."""
    began = time.time()
    [[mebibytes, percent]] = ask_smi("--query-gpu=memory.used,utilization.gpu")
    at = (began + time.time()) / 2
    pids = [pid for [pid] in ask_smi("--query-compute-apps=pid")]
    return {"at": at, "memory_bytes": int(mebibytes) << 20, "percent": int(percent), "pids": pids}


@contextlib.contextmanager
def watching(path: Path) -> Iterator[None]:
    """Write down what nvidia-smi says, every half second."""
    stop = threading.Event()

    def watch() -> None:
        with path.open("w") as file:
            while not stop.wait(0.5):
                # What is not answered is missing beside a sample, and the judge says so.
                with contextlib.suppress(subprocess.SubprocessError, ValueError):
                    file.write(f"{json.dumps(read_smi())}\n")
                    file.flush()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_too_much(rehearsal: Rehearsal) -> None:
    """Run a job that asks for more memory than the card has, by the agent that `apply` starts, and see that leave."""
    rehearsal.monkey("apply", rehearsal.spec("toomuch", 1, 1), expected=1)
    (rehearsal.into / "status.txt").write_text(rehearsal.monkey("status", "toomuch"))
    until(lambda: not json.loads(rehearsal.monkey("list", "instances", "--json")), "the first agent leaves")


def run_sweeps(rehearsal: Rehearsal) -> None:
    """Run the sweeps that the agent of our own works for."""
    held = ("--seconds", str(HOLD))
    rehearsal.monkey("apply", rehearsal.spec("quarter", 8, 0.25, *held), rehearsal.spec("whole", 2, 1, "--busy", *held))
    with rehearsal.stranger():
        # Until then the agent may not know of it, and give its GPU to a job.
        time.sleep(ANSWER_HOLDS)
        rehearsal.monkey("apply", "--detach", rehearsal.spec("late", 1, 1), rehearsal.spec("beside", 1, 0))
        until(lambda: rehearsal.noted("end", "beside"), "a job without a GPU runs beside the stranger")
        time.sleep(STRANGER_HOLDS)
    rehearsal.monkey("apply", "specs/late.yaml")


def collect_jobs(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    """Return what monkey says of each job, and when it was sampled."""
    lines = [json.loads(line) for line in rehearsal.ledger.read_text().splitlines()]
    kinds = ("quarter", "whole", "toomuch")
    found = {line["id"]: line["job"] for line in lines if line["kind"] in kinds}
    jobs = []
    for job, name in found.items():
        told = json.loads(rehearsal.monkey("info", job, "--json"))
        jobs.append({**told, "noted_as": name, "samples": read_samples(rehearsal, job)})
    return jobs


def read_samples(rehearsal: Rehearsal, job: str) -> list[float]:
    """Return when a job was sampled, in seconds since the epoch."""
    files = rehearsal.store.glob(f"projects/rehearsal/jobs/{job}/out/*/system.jsonl")
    return [json.loads(line)["t"] for file in files for line in file.read_text().splitlines()]


def main() -> None:
    """Record a rehearsal."""
    into = Path(sys.argv[1]).resolve()
    (into / "card.json").write_text(json.dumps(describe_card()))
    rehearsal = Rehearsal(into, Path(sys.argv[2]).resolve())
    with watching(into / "smi.jsonl"):
        run_too_much(rehearsal)
        with rehearsal.agent():
            run_sweeps(rehearsal)
    (into / "jobs.json").write_text(json.dumps(collect_jobs(rehearsal), indent=1))


if __name__ == "__main__":
    main()
