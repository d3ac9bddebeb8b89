"""The long cases of a store on NFS, run by hand as root: `python -m tests.nfs.campaign DIR [CASE …]` prints figures.

DIR is a new directory on a disk. One clock measures all: a witness beside the server, to which each tick of a job is a
datagram. The cases are `views answers killed cut away`; each runs over NFSv4.1, and `views` over NFSv3, too.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.nfs.project import NfsProject
from tests.nfs.site import V3, V4, NfsSite, start_site, wait_for

#: Logs each datagram with its time.
WITNESS = """\
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("10.99.0.1", 9))
with open(sys.argv[1], "a", buffering=1) as log:
    while True:
        said = s.recv(200).decode()
        log.write(f"{time.time()} {said}")
"""
#: A call of the server's → what a client does so that the server makes it.
CALLS = {
    "linkat": "assert isinstance(await create_object(store, 'lost/link', b'x', durable=False), Won)",
    "renameat": "await store.put('lost/put', b'x')",
    "mkdirat": "await store.put('lost/new/directory', b'x')",
    "unlinkat": "await store.delete('lost/old')",
}
CLIENT = """\
import asyncio, sys
from monkey.store.create import Won, create_object
from monkey.store.open import open_store
async def run():
    store = await open_store("/mnt/store")
    {what}
    print("it holds")
asyncio.run(run())
"""


@dataclass(frozen=True)
class Tick:
    """One datagram of a job."""

    at: float
    job: str
    what: str
    machine: str
    process: str


class Witness:
    """Who ran what, and when."""

    def __init__(self, site: NfsSite) -> None:
        """Start to log."""
        self.path = site.directory / "witness"
        self.path.touch()
        self.process = subprocess.Popen(site.inside("python3", "-c", WITNESS, self.path))

    def read(self, job: str) -> list[Tick]:
        """Return the ticks of a job so far."""
        lines = [line.split() for line in self.path.read_text().splitlines()]
        return [Tick(float(words[0]), *words[1:5]) for words in lines if len(words) == 5 and words[1] == job]

    def judge(self, job: str) -> str:
        """Return in words how often a job ran, and whether two executions of it overlapped."""
        spans: dict[str, list[float]] = {}
        for tick in self.read(job):
            spans.setdefault(f"{tick.machine}/{tick.process}", []).append(tick.at)
        ordered = sorted((min(ticks), max(ticks), who) for who, ticks in spans.items())
        overlaps = sum(after[0] < before[1] for before, after in pairwise(ordered))
        return f"{len(ordered)} executions, {overlaps} overlaps"


def say(line: str) -> None:
    """Print a figure at once."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def start_agents(project: NfsProject) -> None:
    """Start an agent on each machine, which waits for work for a long time."""
    for name in ("m1", "m2"):
        words = ["agent", "--store", "/mnt/store", "--project", "shop", "--idle-timeout", "3600"]
        line = f"{project.spell_verb(name, *words)} >{project.site.directory}/agent-{name}.log 2>&1"
        project.site.start(name, line, len)


def run_views(site: NfsSite) -> None:
    """What m1 sees of jobs of m2, and how late its orders arrive."""
    project = NfsProject(site)
    for sweep, seconds in (("short", 12), ("long", 45)):
        project.write_spec(sweep, seconds)
        done = project.start_verb("m2", "apply", "-y", "-d", f"specs/{sweep}.yaml")
        job = project.wait_for_job()
        following = project.start_verb("m1", "logs", "-f", job)
        project.verb("m1", "fetch", job, code=None)
        done()
        ended = project.wait_for_end(job)
        fetched, states = project.verb("m1", "fetch", job), project.read_status("m1", sweep)
        text, at = following()
        lines = sum(line.startswith("line") for line in text.splitlines())
        late = f"logs -f ended {at - ended:+.1f} s after the end, {lines} lines of {seconds * 4 + 1}"
        say(f"{site.options}: job of {seconds} s: {late}")
        say(f"{site.options}: first fetch after the end: {fetched.splitlines()[0]!r}; status {states}")
    for round_ in (1, 2):
        project.write_spec(f"cancelled-{round_}", 900 + round_)
        done = project.start_verb("m2", "apply", "-y", "-d", f"specs/cancelled-{round_}.yaml")
        job = project.wait_for_job()
        done()
        time.sleep(20 * round_)  # the older the sweep, the longer a client believed
        project.verb("m1", "cancel", f"cancelled-{round_}")
        cancelled = time.time()
        say(f"{site.options}: last tick {project.wait_for_silence(job) - cancelled:+.1f} s after cancel returned")


def run_answers(site: NfsSite) -> None:
    """Kill the server after it did what it was asked, and before it answers."""
    python = sys.executable
    begin = "import asyncio; from monkey.store.open import open_store"
    put = "s = asyncio.run(open_store('/mnt/store', begin=True)); asyncio.run(s.put('lost/old', b'x'))"
    site.run("m1", f'{python} -c "{begin}; {put}"')
    for call, what in CALLS.items():
        script = site.directory / f"{call}.py"
        script.write_text(CLIENT.format(what=what))
        trace = site.directory / f"{call}.strace"
        assert site.server is not None
        inject = f"inject={call}:delay_exit=2500000"
        words = ["strace", "-f", "-o", str(trace), "-p", str(site.server.pid), "-e", f"trace={call}", "-e", inject]
        tracer = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        wait_for(lambda: _is_traced(site), "strace is attached")
        told: list[str] = []
        thread = site.start("m1", f"{python} {script}", told.append)
        wait_for(lambda trace=trace: "DELAYED" in trace.read_text(), f"the server calls {call}")
        site.kill_server()
        tracer.kill()
        tracer.wait()
        site.start_server()
        thread.join()
        say(f"{site.options}: answer to {call} lost: {' '.join(told)[-300:].strip()}")


def _is_traced(site: NfsSite) -> bool:
    assert site.server is not None
    status = Path(f"/proc/{site.server.pid}/status").read_text()
    return "TracerPid:\t0" not in status


@contextlib.contextmanager
def run_job(site: NfsSite, seconds: float) -> Iterator[tuple[NfsProject, Witness, str, str, str]]:
    """Run one job on either machine; yields the project, the witness, the job, its machine, and the other one."""
    project, witness = NfsProject(site), Witness(site)
    try:
        project.write_spec("one", seconds)
        project.verb("m2", "apply", "-y", "-d")
        start_agents(project)
        job = next((path.name for path in project.ledger.iterdir()), "") or project.wait_for_job()
        time.sleep(15)  # the other machine's agent has come, and watches
        machine = witness.read(job)[-1].machine
        yield project, witness, job, machine, "m1" if machine == "m2" else "m2"
        say(f"{witness.judge(job)}; status {project.read_status('m1' if 'm1' in site.machines else 'm2', 'one')}")
    finally:
        witness.process.kill()


def run_killed(site: NfsSite) -> None:
    """Take the power of the job's machine away."""
    with run_job(site, 30) as (_, witness, job, machine, other):
        site.kill(machine)
        lost = witness.read(job)[-1].at
        wait_for(lambda: witness.read(job)[-1].machine == other, "the other machine takes the job over", 200)
        begun = next(tick.at for tick in witness.read(job) if tick.machine == other)
        say(f"{machine} killed: {other} began {begun - lost:.1f} s after its last tick")
        wait_for(lambda: witness.read(job)[-1].what == "end", "the job ends", 200)
        time.sleep(5)


def run_cut(site: NfsSite) -> None:
    """Cut the job's machine off from the server for 130 s."""
    with run_job(site, 60) as (_, witness, job, machine, other):
        address = f"10.99.0.1{machine[1:]}"
        rules = "table inet cut {{ chain i {{ type filter hook input priority 0; ip saddr {0} tcp dport 2049 drop; }}\n"
        rules += "chain o {{ type filter hook output priority 0; ip daddr {0} tcp sport 2049 drop; }}\n}}"
        subprocess.run(site.inside("nft", rules.format(address)), check=True)
        cut = time.time()
        time.sleep(130)
        subprocess.run(site.inside("nft", "delete table inet cut"), check=True)
        wait_for(lambda: witness.read(job)[-1].what == "end", "the job ends", 300)
        time.sleep(20)  # the victim has looked
        ticks = witness.read(job)
        last = max(tick.at for tick in ticks if tick.machine == machine)
        begun = next((tick.at for tick in ticks if tick.machine == other), float("nan"))
        say(
            f"{machine} cut off: last tick {last - cut:.1f} s after the cut, {other} began {begun - cut:.1f} s after it"
        )


def run_away(site: NfsSite) -> None:
    """Kill the server, and start it again after 120 s."""
    with run_job(site, 100) as (project, witness, job, machine, _):
        site.kill_server()
        away = time.time()
        time.sleep(5)
        looking = project.start_verb("m1", "status")
        time.sleep(115)
        frozen = witness.read(job)[-1].at
        site.start_server()
        back = time.time()
        wait_for(lambda: witness.read(job)[-1].at > back, "the job continues", 300)
        continued = next(tick.at for tick in witness.read(job) if tick.at > back)
        pause = f"last tick {frozen - away:.1f} s after the kill, the next {continued - back:.1f} s after its start"
        say(f"server away: {pause}")
        said = [line for line in looking()[0].splitlines() if "answer" in line]
        say(f"status said meanwhile: {said}")
        log = site.run(machine, f"grep -h answer {site.directory}/agent-{machine}.log", code=None)
        say(f"the agent's log on {machine}: {log.strip()!r}")
        wait_for(lambda: witness.read(job)[-1].what == "end", "the job ends", 300)
        time.sleep(5)


CASES = {"views": run_views, "answers": run_answers, "killed": run_killed, "cut": run_cut, "away": run_away}


def main(directory: Path, names: list[str]) -> None:
    """Run the cases."""
    for name in names or CASES:
        for options in (V4, V3) if name in ("views", "answers") else (V4,):
            say(f"-- {name}, {options}")
            with start_site(directory / f"{name}-v{options[5]}", options) as site:
                CASES[name](site)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
