"""A user's project in a directory of its own, and `monkey` run in it as a user does: in processes of its own."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.ledger import JOB, Ledger
from tests.verb_forks import VerbForks

#: Seconds within which anything here must have happened; a hung test must say where.
PATIENCE = 120.0
#: Seconds that say that nobody waited for a lease (90 s; jobs are frozen after 60), however busy the machine is.
PROMPT = 45.0
MONKEY = [sys.executable, "-P", "-m", "monkey.cli.main"]
FORKS = VerbForks()


def until(what: Callable[[], Any], message: str, patience: float = PATIENCE, step: float = 0.02) -> Any:
    """Wait until it is true, looked at each `step` seconds, and return it.

    What takes long to look at (a command's start) is left alone for as long: it takes from those that it waits for.
    """
    deadline = time.monotonic() + patience
    while True:
        asked = time.monotonic()
        found = what()
        if found:
            return found
        now = time.monotonic()
        assert now < deadline, f"waited {patience:.0f} s in vain: {message}"
        time.sleep(max(step, now - asked))


class Command(subprocess.Popen[Any]):
    """A command that runs; where a test fails beside it, it ends: else the test would wait for it, and never end."""

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        """End it if the block raised."""
        if kind is not None:
            self.kill()
        super().__exit__(kind, *rest)


class Shop:
    """A project, with its own home, state and cache."""

    def __init__(self, base: Path, *, user: int | None = None, group: int | None = None) -> None:
        """Make it below `base`; `user`: run everything as that user (we must be root), who is in `group` besides."""
        self.root, self.user, self.group = base / "project", user, group
        self.root.mkdir(parents=True)
        self.ledger = Ledger(base / "ledger")
        self.state = str(base / "state")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        keep = {name: os.environ[name] for name in ("LANG", "UV_CACHE_DIR", "PIP_CACHE_DIR") if name in os.environ}
        self.env = {
            # Without it, Python sets LC_CTYPE for its children, and agents are begun anew where variables differ.
            "LANG": "C.UTF-8",
            **keep,
            "PATH": path,
            "HOME": str(base / "home"),
            "XDG_STATE_HOME": self.state,
            "TERM": "xterm",
        }
        self.env["XDG_CACHE_HOME"] = str(base / "cache")
        (base / "home").mkdir()
        (self.root / "job.py").write_text(JOB)
        (self.root / "monkey.yaml").write_text("project: shop\n")
        if user is not None:
            subprocess.run(["chown", "-R", str(user), str(base)], check=True)

    def spec(self, text: str = "", *, jobs: int = 4, seconds: float = 0.05, name: str = "sweep") -> None:
        """Write a spec of so many jobs that keep the ledger; `text`: what it says instead, or besides."""
        specs = self.root / "specs"
        specs.mkdir(exist_ok=True)
        lines = {
            "name": name,
            "command": f"[python3, job.py, '{self.ledger.directory}', '{seconds}', '{{i}}']",
            "parameters": f"{{i: {{range: [0, {jobs}]}}}}",
            "outputs": "[result.txt]",
        }
        said = {line.partition(":")[0] for line in text.splitlines()}
        defaults = [f"{key}: {value}\n" for key, value in lines.items() if key not in said]
        (specs / f"{name}.yaml").write_text("".join(defaults) + text)

    def hurry(self) -> None:
        """Let agents leave soon when there is nothing to do, for who waits for that."""
        (self.root / "monkey.yaml").write_text("project: shop\nproviders: {local: {idle_timeout: 1s}}\n")

    def run(
        self, *arguments: str, code: int | None = 0, patience: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run monkey to its end, from its second call on in a fork; `code`: what it must exit with (None: anything)."""
        done = FORKS.run(self._command(arguments), arguments, self.root, self.env, patience)
        said = (
            f"monkey {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.agent_log}"
        )
        assert code is None or done.returncode == code, said
        assert "Traceback" not in done.stderr, said
        return done

    def start(self, *arguments: str, **options: Any) -> Command:
        """Start monkey in a session of its own, its output in pipes."""
        pipe = subprocess.PIPE
        options = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "text": True, **options}
        command = self._command(arguments)
        return Command(command, cwd=self.root, env=self.env, start_new_session=True, **options)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        if self.user is None:
            return [*MONKEY, *arguments]
        # Our Python may lie in root's home: the right to read anything is left, that to write is not.
        read = "+dac_read_search"
        groups = "--clear-groups" if self.group is None else f"--groups={self.group}"
        who = [f"--reuid={self.user}", f"--regid={self.user}", groups]
        return ["setpriv", *who, f"--inh-caps={read}", f"--ambient-caps={read}", *MONKEY, *arguments]

    def json(self, *arguments: str, code: int | None = 0) -> Any:
        """Run monkey with --json and return what it printed."""
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def states(self, sweep: str = "sweep") -> dict[str, int]:
        """Return how many jobs of the sweep are in each state that any is in."""
        (found,) = [one for one in self.json("status")["sweeps"] if one["name"] == sweep]
        return {state: count for state, count in found["states"].items() if count}

    # -- processes ----------------------------------------------------------------------------------------------------

    def processes(self, *words: str) -> list[int]:
        """Return the processes that this project started and whose command line has all the words."""
        mark, found = f"XDG_STATE_HOME={self.state}".encode(), []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark not in (directory / "environ").read_bytes().split(b"\0"):
                    continue
                line = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                alive = b"State:\tZ" not in (directory / "status").read_bytes()
                if alive and all(word in line for word in words):
                    found.append(int(directory.name))
        return found

    @property
    def agents(self) -> list[int]:
        """The agents' processes."""
        return self.processes("monkey_agent.command_line")

    @property
    def jobs(self) -> list[int]:
        """The jobs' processes."""
        return self.processes("job.py")

    def kill(self, pids: list[int]) -> None:
        """kill -9 all at once, and wait until none of them is left."""
        # Halted first: none sees that another was killed.
        for how, pid in itertools.product((signal.SIGSTOP, signal.SIGKILL), pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        until(lambda: not set(pids) & set(self.processes()), "killed processes are gone")

    def kill_all(self) -> None:
        """kill -9 everything that this project started, until nothing is left."""
        deadline = time.monotonic() + 20
        while pids := self.processes():
            self.kill(pids)
            assert time.monotonic() < deadline, "something starts processes faster than they are killed"

    @property
    def agent_log(self) -> str:
        """What the agents said."""
        logs = (log for log in Path(self.state).glob("monkey/*/*/*/agent.log"))
        return "\n".join(path.read_text(errors="replace") for path in logs)


def work_through(shop: Shop) -> list[dict[str, Any]]:
    """Have a first sweep of 12 jobs done, each once, and told by the verbs; returns what is listed of the jobs."""
    shop.spec(jobs=12)
    assert "nothing was applied yet" in shop.run("status", code=1).stderr
    shop.run("apply")
    assert shop.ledger.executions == 12 and not shop.ledger.overlaps
    rows: list[dict[str, Any]] = shop.json("list", "jobs", "sweep")
    assert all(row["outputs"]["result.txt"] in shop.ledger.digests[row["job"]] for row in rows)
    assert "begun" in shop.run("logs", rows[0]["job"]).stdout
    assert "nothing to do" in shop.run("apply").stdout
    assert shop.run("plan", "--detailed-exitcode").returncode == 0
    assert shop.ledger.executions == 12
    return rows
