"""The fleet of this machine: one detached agent, which outlives the terminal and leaves when it is idle."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from monkey.errors import FleetError
from monkey.fleet.agent_state import NO_LOCKS, TAKEN_BACK, is_agent_alive, make_host_name, read_agent_pid
from monkey.fleet.environment_digest import compare_environment, compare_settings, record_settings
from monkey.fleet.fleet_port import Recount, Say
from monkey.fleet.fleet_records import FleetForecast, FleetWork, Instance, OutdatedAgent
from monkey.fleet.machine_capacity import (
    MEMORY_BY_KERNEL,
    MEMORY_BY_LOOKS,
    MEMORY_NOT_HELD,
    describe_memory_limits,
    describe_shortage,
)
from monkey.fleet.secret_values import SecretValues
from monkey.fleet.user_directories import locate_agent_state
from monkey.processes.memory_groups import has_first_version
from monkey.spec.job.counted_resources import CountedResources, spell_counts
from monkey.spec.job.lease_length import LEASE, spell_lease_argument
from monkey.spec.job.recipe import JobResources
from monkey.spec.job.runtime_kind import RuntimeKind
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.untrusted_files import make_private_directory

#: How many of an agent's last lines an error shows.
LAST_WORDS = 15
#: Seconds within which an agent that ends with an error never began: starting another would not help.
STILLBORN = 5.0
#: Bytes of agent.log after which it is started again when an agent starts (the old one stays beside it).
LOG_LIMIT = 10_000_000


@dataclass
class LocalFleet:
    """An agent on this machine, for one store and project."""

    store_url: str
    project: str
    name: str = "local"
    max_slots: int | None = None
    #: Seconds without work after which the agent leaves.
    idle_timeout: float = 10
    #: Bytes that the machine may keep of code, environments and datasets; None for the agent's default.
    cache_size: int | None = None
    #: The program that runs images; None for the first that works here.
    runtime: RuntimeKind | None = None
    #: The counted resources of this machine.
    resources: CountedResources = ()
    #: Seconds that the agent may be silent before others take its jobs over.
    lease: float = LEASE
    type: str = "local"
    agent: str = field(default_factory=make_host_name)
    #: An agent that waits at its gate for a word from us.
    _waiting: subprocess.Popen[bytes] | None = None
    _started: subprocess.Popen[bytes] | None = None
    _log_from: int = 0
    _began: float = 0.0

    @property
    def directory(self) -> Path:
        """Where the agent keeps its state."""
        return locate_agent_state(self.store_url, self.project, self.name, self.agent)

    @property
    def log(self) -> Path:
        """What the agent says."""
        return self.directory / "agent.log"

    def prepare(self) -> None:
        """Start an agent that waits at its gate: its imports, a tenth of a second, are done while we plan."""
        if self._waiting is None and not is_agent_alive(self.directory):
            with contextlib.suppress(OSError):  # `converge` meets it again, and says so
                # It makes no file or directory, and is told where to write when it is let in.
                self._waiting = self._popen(["--gate"], "/", subprocess.PIPE, subprocess.DEVNULL)

    def close(self) -> None:
        """Dismiss the agent that waits."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.kill()
            waiting.communicate()

    def count_agents(self) -> int:
        """Return how many agents of this fleet live here: 0 or 1."""
        return int(is_agent_alive(self.directory))

    async def preview(self, work: FleetWork) -> FleetForecast:
        """One agent is enough for any number of jobs; one that is there stays."""
        before = int(is_agent_alive(self.directory))
        after = max(before, min(work.jobs, 1))
        # Of control groups of version 2, the agent would need one without our own processes.
        by_looks = MEMORY_BY_LOOKS if sys.platform == "linux" else MEMORY_NOT_HELD
        held = {"this machine": MEMORY_BY_KERNEL if has_first_version() else by_looks}
        notes = describe_memory_limits(work.asked, held) if after > before else []
        if work.jobs and before and (changed := compare_settings(self.directory, self._settings)):
            notes.append(f"the agent here has other settings ({', '.join(changed)}): apply replaces it if it is idle")
        return FleetForecast(before, after, notes=tuple(notes))

    def describe_shortage(self, asked: JobResources) -> str:
        """See `Fleet.describe_shortage`."""
        return describe_shortage(asked)

    async def check_offer(self) -> str:
        """See `Checkable.check_offer`: an agent needs a place for its state."""
        _check_place(self.directory)
        return f"{self.name}: an agent here keeps its state in {self.directory}"

    def check_secrets(self, names: Sequence[str]) -> None:
        """See `Fleet.check_secrets`: the agent that we start has our environment."""
        SecretValues().get(names)

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """Start the agent unless one lives."""
        if work.jobs and not is_agent_alive(self.directory) and not self._running():
            self._start()
            say("agent started")

    async def has_workers(self) -> bool:
        """See `Fleet.has_workers`: an agent that was killed, or asked to leave, did not fail to start."""
        if self._running():
            return True
        code = self._started.returncode if self._started else 0
        self._started = None
        failed = code > 0 and code != TAKEN_BACK
        if failed and time.monotonic() - self._began < STILLBORN and not is_agent_alive(self.directory):
            raise FleetError(
                f"the agent on this machine ended (exit code {code}); the end of {self.log}:\n{self.recent_log()}",
                hint="what is finished stays finished: mend it, then `monkey apply` goes on",
            )
        return is_agent_alive(self.directory)

    def outdated_agent(self) -> OutdatedAgent | None:
        """Return the living agent if its environment or its settings are not ours.

        A new agent may not have recorded its environment yet.
        """
        found = compare_environment(self.directory) if is_agent_alive(self.directory) else None
        if found is None:
            return None
        found = replace(found, settings=compare_settings(self.directory, self._settings))
        return found if found.differs or found.settings else None

    async def instances(self) -> tuple[Instance, ...]:
        """Return this machine, if an agent lives here."""
        return (
            (Instance("this machine", (self.agent,), "started by monkey apply"),)
            if is_agent_alive(self.directory)
            else ()
        )

    async def destroy(self, say: Say) -> None:
        """Ask the agent to leave; it releases its work."""
        pid = read_agent_pid(self.directory)
        if pid is not None and is_agent_alive(self.directory):
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError as exc:
                raise FleetError(f"the agent (process {pid}) cannot be asked to leave: {exc.strerror}") from exc
            say("agent asked to leave")

    def recent_log(self) -> str:
        """Return the last lines that the agent wrote since we started it."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_from)
                lines = file.read().decode(errors="replace").splitlines()
        except OSError as exc:
            return f"  (not readable: {exc.strerror})"
        return "\n".join(f"  {line}" for line in lines[-LAST_WORDS:]) or "  (nothing)"

    def _running(self) -> bool:
        return self._started is not None and self._started.poll() is None

    def _command(self) -> list[str]:
        # -P: a random.py or json.py in the directory that we happen to be in must not become part of the agent.
        command = [sys.executable, "-P", "-m", "monkey_agent.command_line"]
        command += ["--store", self.store_url, "--project", self.project, "--fleet", self.name, "--name", self.agent]
        command += ["--idle-timeout", str(self.idle_timeout)]
        command += ["--cache-size", str(self.cache_size)] if self.cache_size is not None else []
        command += ["--runtime", self.runtime] if self.runtime is not None else []
        command += ["--resources", spell_counts(self.resources)] if self.resources else []
        command += spell_lease_argument(self.lease)
        return command + (["--max-slots", str(self.max_slots)] if self.max_slots is not None else [])

    @property
    def _settings(self) -> dict[str, str]:
        """What monkey.yaml says of the agent, as text by its key."""
        return {
            "max_slots": str(self.max_slots),
            "idle_timeout": str(self.idle_timeout),
            "cache_size": str(self.cache_size),
            "runtime": str(self.runtime),
            "resources": spell_counts(self.resources),
            "lease": str(self.lease),
        }

    def _start(self) -> None:
        try:
            log = self._open_log()
        except OSError as exc:
            raise FleetError(
                f"the agent's directory {self.directory} cannot be written: {exc.strerror}",
                hint="XDG_STATE_HOME names another place for it",
            ) from exc
        try:
            self._began = time.monotonic()
            self._started = self._let_in() or self._popen([], str(self.directory), subprocess.DEVNULL, log)
        except OSError as exc:
            raise FleetError(f"the agent could not be started: {exc.strerror}") from exc
        finally:
            os.close(log)
        with contextlib.suppress(OSError):  # then a change of them is not noticed
            record_settings(self.directory, self._started.pid, self._settings)

    def _let_in(self) -> subprocess.Popen[bytes] | None:
        """Let the agent in that waits at its gate, if one does."""
        waiting, self._waiting = self._waiting, None
        if waiting is None or waiting.stdin is None:
            return None
        try:
            with waiting.stdin as gate:
                gate.write(os.fsencode(self.log))
        except OSError:  # it is dead
            return None
        return waiting

    def _popen(self, options: list[str], cwd: str, stdin: int, out: int) -> subprocess.Popen[bytes]:
        command = [*self._command(), *options]
        return subprocess.Popen(command, cwd=cwd, stdin=stdin, stdout=out, stderr=out, start_new_session=True)

    def _open_log(self) -> int:
        make_private_directory(self.directory)
        if self.directory.stat().st_uid != os.getuid():  # in /tmp anybody may have made it, to read along
            raise PermissionError(errno.EPERM, "it belongs to another user")
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.old"))
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._log_from = os.fstat(log).st_size
        return log


def _check_place(directory: Path) -> None:
    """Raise FleetError where an agent could not write files in this directory, or lock them.

    It may be missing, and is not made: then that is tried in the nearest directory above it.
    """
    import fcntl
    import tempfile

    there = next(place for place in (directory, *directory.parents) if place.is_dir())
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        missing = "locks" if exc.errno in NO_LOCKS else "room for its files"
        raise FleetError(
            f"expected {missing} for an agent in {directory}, found none in {there}: {exc.strerror}",
            hint="set XDG_STATE_HOME to a directory of yours on a disk of this machine",
        ) from exc
