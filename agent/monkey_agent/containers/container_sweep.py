"""The removal of containers that a kill left: engines list them, though no process of them lives.

podman's monitor removes a container that ends. Who kills a job kills its monitor, too. So a process beside the agent
removes what is left: of a job that was killed, and of all jobs where the agent was. No supervisor cares for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from monkey.fleet.container_runtime import ContainerRuntime
from monkey.processes.process_tree import MARK

#: Labels of containers: of all agents with this state directory, and of this life of one.
_STATE, _LIFE = "monkey.state", "monkey.life"
#: Seconds that the first look at an engine may take.
_PATIENCE_SECONDS = 30.0
#: Words: the engine, the labels of state and life, and an option of `rm`. It removes what earlier lives left, and says
#: so; then what it is told. podman may refuse that for a moment, so it looks again. When its input ends, the agent is
#: gone: an engine may still be starting a container then.
_SCRIPT = """\
remove_one() {
  for round in 1 2 3 4 5; do
    "$engine" rm --force $now "$1"; "$engine" container inspect "$1" || return; sleep 1
  done
}
remove() { for each in $("$engine" ps --all --quiet --filter "label=$1"); do remove_one "$each"; done; }
engine=$1 state=$2 life=$3 now=$4
{
  remove "$state"
  trap '' PIPE  # the agent may be gone
  echo ready >&3
  exec 3>&-
  while read -r name; do
    remove_one "$name"
  done
  for pass in 1 2 3 4 5; do remove "$life"; sleep 1; done
} 3>&1 >/dev/null 2>&1
"""


async def _await_output(pipe: int) -> None:
    """Return when something can be read from `pipe`, or its other end is closed. No thread waits: it would not end."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(pipe, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(pipe)


class ContainerSweeper:
    """The process that removes dead containers of this agent from one engine."""

    def __init__(self, state: Path, env: Mapping[str, str]) -> None:
        """Name the containers of agents with the state directory `state`; start nothing yet."""
        self._env = {name: value for name, value in env.items() if name != MARK}
        self.labels = (
            f"{_STATE}={hashlib.sha256(os.fsencode(state)).hexdigest()[:16]}",
            f"{_LIFE}={secrets.token_hex(8)}",
        )
        self._process: subprocess.Popen[bytes] | None = None

    async def begin(self, runtime: ContainerRuntime) -> None:
        """Remove what earlier agents left, and watch over ours from now on. Raises OSError."""
        if runtime.kind not in ("podman", "docker") or self._process is not None:
            return
        self._process = await asyncio.to_thread(self._start, runtime)
        assert self._process.stdout is not None
        with contextlib.suppress(TimeoutError):  # an engine that hangs is met again, by the first job
            await asyncio.wait_for(_await_output(self._process.stdout.fileno()), _PATIENCE_SECONDS)

    def _start(self, runtime: ContainerRuntime) -> subprocess.Popen[bytes]:
        """Start the process. It is not asyncio's, which would kill it when its loop is closed. Raises OSError."""
        now = "--time=0" if runtime.kind == "podman" else ""
        return subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "monkey", runtime.program, *self.labels, now],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._env,
            cwd="/",
            start_new_session=True,
        )

    def remove(self, name: str) -> None:
        """Have a container removed, whose processes are dead."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                os.write(self._process.stdin.fileno(), f"{name}\n".encode())

    def close(self) -> None:
        """Let the process remove what is left, and end."""
        if self._process is not None and self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            # It outlives us where its engine is slow; an agent that continues has no zombie of it.
            threading.Thread(target=self._process.wait, daemon=True).start()
            self._process = None
