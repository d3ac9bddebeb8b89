"""Our end of the leash: runs Pulumi so that it ends with us, and no later than the lock allows."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pulumi.automation import PulumiCommand
from pulumi.automation._cmd import CommandResult
from pulumi.automation.errors import CommandError
from pulumi.automation.errors import create_command_error as command_error

from monkey.processes import PACKAGE_ROOT
from monkey.protocol.clock import CLOCK

if TYPE_CHECKING:
    from semver import VersionInfo

LEASH = Path(__file__).with_name("engine_supervisor.py")

OnOutput = Callable[[str], object]


class EngineDeadline:
    """The deadline of one stack's runs of Pulumi, which come one after another."""

    def __init__(self) -> None:
        """Begin without a deadline."""
        self._pipe = -1
        self._deadline: float | None = None
        self._cut = False
        self._lock = threading.Lock()

    def attach(self, pipe: int) -> None:
        """Hold a run by this end of its pipe."""
        with self._lock:
            self._pipe = pipe
            if self._deadline is not None:
                self._tell(repr(self._deadline))
            if self._cut:
                self._close()

    def detach(self) -> None:
        """Hold nothing: the run has ended."""
        with self._lock:
            self._close()

    def renew(self, deadline: float) -> None:
        """Let Pulumi run until then, on the clock that counts the machine's sleep."""
        with self._lock:
            self._deadline = deadline
            self._tell(repr(deadline))

    def interrupt(self) -> None:
        """Ask Pulumi to end: it waits for what its providers are doing, and begins nothing more."""
        with self._lock:
            self._tell("interrupt")

    def cut(self) -> None:
        """Kill Pulumi and all of it, now and when it would be started again."""
        with self._lock:
            self._cut = True
            self._close()

    def _tell(self, word: str) -> None:
        if self._pipe >= 0:
            try:
                os.write(self._pipe, f"{word}\n".encode())
            except (BrokenPipeError, BlockingIOError):  # it has ended, or is stopped: its own clock judges then
                return

    def _close(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1


class SupervisedPulumiCommand(PulumiCommand):
    """A PulumiCommand whose runs are on the leash, and have exactly the environment that we give them."""

    def __init__(
        self,
        command: str,
        version: VersionInfo | None,
        env: Mapping[str, str],
        tether: EngineDeadline,
        keep: Sequence[int] = (),
    ) -> None:
        """Run `command` with `env`; `keep`: descriptors that its processes hold open, as a lock is."""
        # Not the base's: it would ask for the version once more, a third of a second.
        self.command = command
        self.version = version
        self._env, self._tether, self._keep = env, tether, tuple(keep)

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> CommandResult:
        """See the base; raises CommandError."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        leash = [sys.executable, "-I", "-S", str(LEASH), PACKAGE_ROOT, str(reading), str(int(CLOCK))]
        quiet = [] if "--non-interactive" in args else ["--non-interactive"]
        env = {**self._env, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        process = subprocess.Popen(
            [*leash, self.command, *quiet, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=env,
            text=True,
            errors="replace",
            pass_fds=(reading, *self._keep),
            start_new_session=True,
        )
        os.close(reading)
        self._tether.attach(writing)
        try:
            said = _listen(process, on_output, on_error)
        finally:
            self._tether.detach()
        result = CommandResult(stdout=said[0], stderr=said[1], code=process.wait())
        if result.code:
            error: CommandError = command_error(result)
            raise error
        return result


def _listen(process: subprocess.Popen[str], on_output: OnOutput | None, on_error: OnOutput | None) -> tuple[str, str]:
    """Return all that it writes to both streams, and pass both on line by line."""
    lines: tuple[list[str], list[str]] = ([], [])

    def read(stream: IO[str] | None, into: list[str], told: OnOutput | None) -> None:
        assert stream is not None
        with stream:
            for line in stream:
                into.append(line.rstrip())
                if told is not None:
                    told(into[-1])

    beside = threading.Thread(target=read, args=(process.stderr, lines[1], on_error))
    beside.start()
    read(process.stdout, lines[0], on_output)
    beside.join()
    return "\n".join(lines[0]), "\n".join(lines[1])
