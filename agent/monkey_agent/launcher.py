"""The agent's end of the warden: starts it, tells it what to launch, and hears how that ended."""

from __future__ import annotations

import asyncio
import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from monkey.errors import FleetError
from monkey_agent import leftovers
from monkey_agent.machine import CLOCK, MachineClock, boot_id
from monkey_agent.processes import MARK
from monkey_agent.register import Register

WARDEN = Path(__file__).with_name("warden.py")
#: Seconds that a warden may take to say that it is ready, or to kill everything and go.
PATIENCE = 30.0


class Exit(NamedTuple):
    """How a process ended."""

    #: "ended"; "failed": it could not be started; "refused": the deadline had passed; "lost": the warden died.
    kind: str
    #: Exit code, or minus the signal's number; an errno for "failed".
    code: int = 0
    #: Seconds that it ran, those that it was frozen not counted.
    seconds: float = 0.0
    #: Most memory that it ever held, as the kernel's ru_maxrss says it.
    peak: int = 0
    #: Processes of it that could not be killed.
    left: int = 0
    #: For "failed": the file that is missing or cannot be run.
    file: str = ""


class Process:
    """One launched job. Everything here takes effect in the order in which it is called."""

    def __init__(self, launcher: Launcher, key: int, ended: asyncio.Future[Exit]) -> None:
        """Stand for the job that the warden knows as `key`."""
        self._launcher, self.key, self.ended = launcher, key, ended
        self._asked: asyncio.Future[float] | None = None
        self._waiting: list[asyncio.Future[Exit]] = []

    async def over(self) -> Exit:
        """Wait for its end; whoever is cancelled meanwhile cancels nobody else's wait."""
        if self.ended.done():
            return self.ended.result()
        # Not by asyncio.shield: that is one more turn of the loop, in which a seat stands empty.
        waiter: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return await waiter

    def end(self, how: Exit) -> None:
        """Take its end, whoever tells it first."""
        if self.ended.done():
            return
        self.ended.set_result(how)
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(how)

    def freeze(self) -> None:
        """Stop everything of it where it stands."""
        self._launcher.tell("freeze", self.key)

    async def halt(self) -> None:
        """Stop everything of it, and return when it stands still."""
        self.freeze()
        await self.active()  # may have been asked before
        await self.active()

    def thaw(self) -> None:
        """Let it go on, unless the deadline has passed."""
        self._launcher.tell("thaw", self.key)

    def terminate(self) -> None:
        """Send SIGTERM to everything of it."""
        self._launcher.tell("signal", self.key, int(signal.SIGTERM))

    async def active(self) -> float:
        """Return the seconds that it ran so far, or in all once it has ended: only the warden knows of all freezes."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
            self._launcher.tell("active", self.key)
        either: list[asyncio.Future[Any]] = [self._asked, self.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return self.ended.result().seconds if self.ended.done() else self._asked.result()

    def answer(self, active: float) -> None:
        """Take what the warden says to `active`."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(active)

    def kill(self) -> None:
        """Kill everything of it; its end is reported when nothing is left."""
        self._launcher.tell("kill", self.key)


class Launcher:
    """Keeps a warden, starts a new one when it dies, and launches jobs by it."""

    def __init__(self, state: Path, clock: MachineClock) -> None:
        """Keep the register of what runs in the directory `state`, whose lock is held."""
        self._state, self._clock = state, clock
        self._register: Register | None = None
        self._warden: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._inbox, self._outbox = bytearray(), bytearray()
        self._processes: dict[int, Process] = {}
        self._keys = 0
        self._bases: dict[int, dict[str, str]] = {}
        self._deadline = 0.0
        self._ready: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        #: The work of ending what a warden left that died.
        self._burial: asyncio.Future[None] | None = None
        self._closing = False
        #: Does the warden find every descendant (Linux), or process groups alone?
        self.thorough = False

    async def start(self) -> None:
        """See that a warden is there. Raises FleetError where none can be started."""
        if self._burial is not None:
            await asyncio.shield(self._burial)
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            try:
                self._begin()
            except OSError as exc:
                self._ready = None
                raise FleetError(f"the warden could not be started: {exc}") from exc
        if not self._ready.done():
            try:
                await asyncio.wait_for(asyncio.shield(self._ready), PATIENCE)
            except TimeoutError:
                raise FleetError(f"the warden does not start ({WARDEN})") from None

    def _begin(self) -> None:
        path = self._state / "register"
        self._register = Register.create(str(path), boot_id())
        self._register.deadline = self._deadline
        ours, its = socket.socketpair()
        command = [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", str(WARDEN)]
        command += [str(its.fileno()), str(path), str(CLOCK), str(self._state)]
        with its:
            self._warden = subprocess.Popen(
                command,
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
                # The locale says how both of us write names that are no UTF-8; the mark is for our successor.
                env={**os.environ, MARK: f"{self._state}:0"},
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
        """Say whether `launch` can be called now."""
        return self._ready is not None and self._ready.done()

    def base(self, env: dict[str, str]) -> int:
        """Register an environment that many jobs share; returns its number."""
        number = len(self._bases)
        self._bases[number] = env
        if self._socket is not None:
            self.tell("base", number, env)
        return number

    def launch(self, argv: list[str], base: int, env: dict[str, str], cwd: str, log: str) -> Process:
        """Have a job started in a session of its own: environment number `base` and `env` over it, output to `log`.

        Returns at once; whether it could be started is told by its end. A warden must be `up`.
        """
        self._keys += 1
        process = Process(self, self._keys, asyncio.get_running_loop().create_future())
        self._processes[process.key] = process
        self.tell("spawn", process.key, argv, base, env, cwd, log)
        return process

    def renew(self, deadline: float) -> None:
        """Let jobs run until the clock says `deadline`."""
        before, self._deadline = self._deadline, deadline
        if self._register is None:
            return
        self._register.deadline = deadline
        # Written first, then looked at the clock: so at least one of us knows that the old one had passed.
        if self._clock.now() >= before:
            self.tell("renew")

    def tell(self, *message: Any) -> None:
        """Send a message to the warden; lost if there is none, as are all jobs then."""
        if self._socket is None:
            return
        data = marshal.dumps(message)
        waits = bool(self._outbox)
        self._outbox += len(data).to_bytes(4, "little") + data
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
        inbox = self._inbox
        inbox += data
        while len(inbox) >= 4 and len(inbox) >= (end := 4 + int.from_bytes(inbox[:4], "little")):
            message = marshal.loads(memoryview(inbox)[4:end].tobytes())
            del inbox[:end]
            self._heard(*message)

    def _heard(self, kind: str, *rest: Any) -> None:
        if kind == "ready":
            self.thorough = rest[0]
            if self._ready is not None and not self._ready.done():
                self._ready.set_result(None)
            return
        key, *how = rest
        if kind == "active":
            if key in self._processes:
                self._processes[key].answer(*how)
            return
        process = self._processes.pop(key)
        if kind == "failed":
            process.end(Exit(kind, code=how[0] or 0, file=how[1] or ""))
        else:
            process.end(Exit(kind, *how))

    def _lost(self) -> None:
        """The warden is gone, and its jobs have nobody: end them, then say so. The next launch starts a new one."""
        assert self._socket is not None and self._gone is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._socket = None
        self._inbox.clear()
        self._outbox.clear()
        self._gone.set_result(None)
        failed, self._ready = self._ready, None
        if failed is not None and not failed.done():
            failed.set_exception(FleetError("the warden ended as soon as it was started; agent.log may say why"))
        orphans, self._processes = list(self._processes.values()), {}
        self._burial = loop.run_in_executor(None, self._bury)
        self._burial.add_done_callback(lambda done: self._buried(done, orphans))

    def _bury(self) -> None:
        if self._warden is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._warden.wait(PATIENCE)
        if not self._closing:
            leftovers.clear(self._state, builds=False)

    def _buried(self, burial: asyncio.Future[None], orphans: list[Process]) -> None:
        if burial.exception() is None:
            self._burial = None
        for process in orphans:
            process.end(Exit("lost"))

    async def close(self) -> None:
        """Have everything killed, and the warden go."""
        self._closing = True
        if self._socket is None:
            return
        assert self._gone is not None
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._gone), PATIENCE)
        if self._warden is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._warden.wait(1)
