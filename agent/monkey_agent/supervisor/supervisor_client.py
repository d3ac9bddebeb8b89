"""The agent's client of the supervisor: it starts the supervisor, launches jobs by it, and learns their ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.fleet_port import keep_silent
from monkey.processes import PACKAGE_ROOT
from monkey.processes.private_process import select_needed_variables
from monkey.processes.process_tree import MARK
from monkey_agent.machine import CLOCK, MachineClock, read_boot_id
from monkey_agent.supervisor import leftover_processes
from monkey_agent.supervisor.messages import Inbox, encode_message
from monkey_agent.supervisor.process import ProcessExit, SupervisedProcess
from monkey_agent.supervisor.shared_state import EXCEEDED, SUPERVISOR, SharedState

PROGRAM = Path(__file__).with_name("supervisor.py")
#: Seconds that a supervisor may take to report that it is ready, or to kill all jobs and end.
_PATIENCE_SECONDS = 30.0
#: Key of a process that no supervisor of this agent's life started.
EARLIER = -1


class SupervisorClient:
    """The client, which keeps a supervisor, starts a new one when it dies, and launches jobs by it."""

    def __init__(self, state: Path, clock: MachineClock) -> None:
        """Keep the register of running jobs in the directory `state`, whose lock is held."""
        self._state, self._clock = state, clock
        self._register: SharedState | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._inbox, self._outbox = Inbox(), bytearray()
        self._processes: dict[int, SupervisedProcess] = {}
        self._keys = 0
        self._bases: dict[int, dict[str, str]] = {}
        self._deadline = 0.0
        self._ready: asyncio.Future[None] | None = None
        self._asked: asyncio.Future[dict[int, int]] | None = None
        self._gone: asyncio.Future[None] | None = None
        #: The work that ends the jobs of a supervisor that died.
        self._cleanup: asyncio.Future[None] | None = None
        self._closing = False
        #: Called with how the memory of jobs is held here, before the first job that has a limit ends.
        self.on_memory: Callable[[str], None] = keep_silent

    async def start(self) -> None:
        """Start a supervisor unless one runs. Raises FleetError where none can be started."""
        if self._cleanup is not None:
            await asyncio.shield(self._cleanup)
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            try:
                self._begin()
            except OSError as exc:
                self._ready = None
                raise FleetError(f"the supervisor could not be started: {exc}") from exc
        if not self._ready.done():
            try:
                await asyncio.wait_for(asyncio.shield(self._ready), _PATIENCE_SECONDS)
            except TimeoutError:
                raise FleetError(f"the supervisor does not start ({PROGRAM})") from None

    def _begin(self) -> None:
        path = self._state / "register"
        self._register = SharedState.create(str(path), read_boot_id())
        self._register.deadline = self._deadline
        ours, its = socket.socketpair()
        command = [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", str(PROGRAM)]
        command += [PACKAGE_ROOT, str(its.fileno()), str(path), str(CLOCK), str(self._state)]
        with its:
            self._supervisor = subprocess.Popen(
                command,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
                # The locale says how both of us write names that are no UTF-8; the mark is for our successor.
                env={**select_needed_variables(os.environ), MARK: f"{self._state}:0"},
                start_new_session=True,
            )
        ours.setblocking(False)
        self._socket = ours
        loop = asyncio.get_running_loop()
        self._gone = loop.create_future()
        loop.add_reader(ours.fileno(), self._readable)
        for number, base in self._bases.items():
            self.tell("base", number, base)

    @property
    def up(self) -> bool:
        """Return whether `launch` can be called now."""
        return self._ready is not None and self._ready.done()

    def base(self, env: dict[str, str]) -> int:
        """Register an environment that many jobs share; return its number."""
        number = len(self._bases)
        self._bases[number] = env
        if self._socket is not None:
            self.tell("base", number, env)
        return number

    def launch(
        self,
        name: str,
        argv: list[str],
        base: int,
        env: dict[str, str],
        cwd: str,
        log: str,
        after: SupervisedProcess | None,
        memory: int = 0,
        grace: float = 0,
    ) -> SupervisedProcess:
        """Launch a job in a session of its own, with environment number `base`, `env` over it, and output to `log`.

        `after`: the job begins when this process has exited by itself, or at `begin`. `memory`: bytes that it may hold,
        0 for any number. `grace`: seconds that its processes may work on when the first one has ended. Returns at once;
        the end of the process shows whether it could be started. The supervisor must be `up`.
        """
        self._keys += 1
        process = SupervisedProcess(self, self._keys, name, begun=after is None)
        # Told first: what cannot be told raises an error, and is no process of ours.
        self.tell("spawn", process.key, after.key if after else 0, name, argv, base, env, cwd, log, memory, grace)
        self._processes[process.key] = process
        return process

    def exited(self, name: str, exited: tuple[int, int, float, int]) -> SupervisedProcess:
        """Return a process that stands for an attempt which exited in an earlier life of the agent, as is noted."""
        worth, code, seconds, peak = exited
        process = SupervisedProcess(self, EARLIER, name, begun=True)
        process.end(ProcessExit("ended", code, seconds, peak, over=peak << 10 if worth == EXCEEDED else 0))
        return process

    def judge(self, at: int, name: str, worth: int) -> None:
        """Set what the exit of `name`, at position `at` of the register, is worth to a successor of ours."""
        if self._register is not None:
            self._register.judge_exit(at, name, worth)

    def renew(self, deadline: float) -> None:
        """Let jobs run until the machine's clock reaches `deadline`."""
        before, self._deadline = self._deadline, deadline
        if self._register is None:
            return
        self._register.deadline = deadline
        # Written first, then looked at the clock: so at least one of us knows that the old one had passed.
        if self._clock.now() >= before:
            self.tell("renew")

    async def mains(self) -> tuple[int, dict[int, int]]:
        """Return the supervisor's pid, and each job's key with the pid of its first process.

        Returns (0, {}) where there is no supervisor, or no job.
        """
        if not self._processes or self._socket is None or self._register is None:
            return 0, {}
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
            self.tell("mains")
        mains = await asyncio.shield(self._asked)
        return self._register.entries()[SUPERVISOR][0], mains

    def tell(self, *message: Any) -> None:
        """Send a message to the supervisor; without one, the message is lost, as are all jobs."""
        if self._socket is None:
            return
        waits = bool(self._outbox)
        self._outbox += encode_message(*message)
        if not waits:
            self._write()

    def _write(self) -> None:
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        try:
            del self._outbox[: self._socket.send(self._outbox)]
        except BlockingIOError:
            pass
        except OSError:
            self._outbox.clear()  # the reader learns that it is gone
        if self._outbox:
            loop.add_writer(self._socket.fileno(), self._writable)

    def _writable(self) -> None:
        assert self._socket is not None
        asyncio.get_running_loop().remove_writer(self._socket.fileno())
        if self._outbox:
            self._write()

    def _readable(self) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        for message in self._inbox.feed(data):
            self._heard(*message)

    def _heard(self, kind: str, *rest: Any) -> None:
        if kind == "ready":
            if self._ready is not None and not self._ready.done():
                self._ready.set_result(None)
            return
        if kind == "memory":
            self.on_memory(*rest)
            return
        if kind == "mains":
            if self._asked is not None and not self._asked.done():
                self._asked.set_result(rest[0])
            return
        key, *how = rest
        if kind in ("active", "begun"):
            process = self._processes.get(key)
            if process is not None and kind == "active":
                process.answer(*how)
            elif process is not None:
                process.begun = True
            return
        process = self._processes.pop(key, None)
        if process is None:
            return
        if kind == "failed":
            process.end(ProcessExit(kind, code=how[0] or 0, file=how[1] or ""))
        else:
            process.end(ProcessExit(kind, *how))

    def _lost(self) -> None:
        """End the jobs of a supervisor that is gone, then report them as lost; `start` then makes a new supervisor."""
        assert self._socket is not None and self._gone is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._socket = None
        self._inbox = Inbox()
        self._outbox.clear()
        self._gone.set_result(None)
        failed, self._ready = self._ready, None
        if self._asked is not None and not self._asked.done():
            self._asked.set_result({})
        if failed is not None and not failed.done():
            failed.set_exception(FleetError("the supervisor ended as soon as it was started; agent.log may say why"))
        orphans, self._processes = list(self._processes.values()), {}
        self._cleanup = loop.run_in_executor(None, self._end_supervisor)
        self._cleanup.add_done_callback(lambda done: self._report_lost(done, orphans))

    def _end_supervisor(self) -> None:
        if self._supervisor is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._supervisor.wait(_PATIENCE_SECONDS)
        if not self._closing:
            leftover_processes.clear_leftovers(self._state, builds=False)

    def _report_lost(self, cleanup: asyncio.Future[None], orphans: list[SupervisedProcess]) -> None:
        if cleanup.exception() is None:
            self._cleanup = None
        for process in orphans:
            process.end(ProcessExit("lost"))

    async def close(self) -> None:
        """Let the supervisor kill all jobs and end; wait for that, within limits."""
        self._closing = True
        if self._socket is None:
            return
        assert self._gone is not None
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._gone), _PATIENCE_SECONDS)
        if self._supervisor is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._supervisor.wait(1)
