"""Runs verbs in forks of a process that has imported monkey (`verb_server.py`): an interpreter's start costs most."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("verb_server.py")
#: How the names of variables begin that an interpreter reads as it starts, so that a fork would not obey them.
READ_AT_START = ("PYTHON", "LC_", "LD_", "TZ")


class VerbServer:
    """A process that runs verbs, one at a time (`verb_server.py`)."""

    def __init__(self) -> None:
        """Start it."""
        self._server = subprocess.Popen(
            [sys.executable, "-P", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def close(self) -> None:
        """End it."""
        self._server.communicate()

    def kill(self) -> None:
        """End it at once, with the verb that it runs."""
        os.killpg(self._server.pid, signal.SIGKILL)
        self.close()

    def send(self, order: Mapping[str, Any]) -> None:
        """Begin a verb."""
        assert self._server.stdin is not None
        print(json.dumps(order), file=self._server.stdin, flush=True)

    def receive(self, patience: float | None = None) -> int:
        """Wait for the verb that was begun, and return its exit code. Raises TimeoutError after `patience` seconds."""
        assert self._server.stdout is not None
        if not select.select([self._server.stdout], [], [], patience)[0]:
            raise TimeoutError
        return int(self._server.stdout.readline())


class VerbForks:
    """Runs verbs as `subprocess.run` does, as many at a time as are asked for.

    The first of each kind starts an interpreter, as a user's does: one that works only after another's imports fails.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._idle: list[VerbServer] = []
        self._started: set[tuple[str, ...]] = set()
        atexit.register(self.close)

    def close(self) -> None:
        """End the processes."""
        while self._idle:
            self._idle.pop().close()

    def run(
        self, command: list[str], arguments: tuple[str, ...], cwd: Path, env: dict[str, str], patience: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a verb; `command` starts it in an interpreter, which need not be ours.

        Raises TimeoutExpired after `patience` seconds.
        """
        kind = arguments[: 2 if arguments[:1] == ("list",) else 1]
        another = command[0] != sys.executable or any(name.startswith(READ_AT_START) for name in env)
        # macOS ends forks that use what their parent had loaded.
        if another or kind not in self._started or sys.platform != "linux":
            self._started.add(kind)
            return subprocess.run(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=patience,
            )
        try:
            server = self._idle.pop()
        except IndexError:  # at the first, and where another thread runs a verb
            server = VerbServer()
        with tempfile.TemporaryDirectory() as said:
            order = {"arguments": arguments, "cwd": str(cwd), "environment": env, "out": f"{said}/verb"}
            server.send(order)
            try:
                code = server.receive(patience)
            except BaseException as exc:
                server.kill()
                if isinstance(exc, TimeoutError):
                    raise subprocess.TimeoutExpired(command, patience) from exc
                raise
            self._idle.append(server)
            out, err = (Path(f"{said}/verb.{stream}").read_text(errors="replace") for stream in (1, 2))
        return subprocess.CompletedProcess(command, code, out, err)
