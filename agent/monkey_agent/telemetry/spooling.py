"""The agent's telemetry for InfluxDB: attempts' metrics, jobs and machines as points, by a spool and an exporter.

It never waits for a server, and no failure of it harms a job. Lost points are counted and reported, and
`monkey backfill` makes them again from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.secret_values import SecretValues
from monkey.metrics import names
from monkey.metrics.spool import Spool, is_owed, list_spools, load_json, read_influx_settings, rescue_points
from monkey.metrics.spool import list_names as names_in
from monkey.processes.private_process import select_needed_variables
from monkey.processes.process_tree import MARK
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.untrusted_files import is_directory
from monkey_agent.local_files import explain_os_error, is_touched
from monkey_agent.ports import Attempt

#: Seconds between looks at the exporter, and between looks for changed secrets.
_POLL_SECONDS, SECRETS = 1.0, 30.0
#: Seconds that an exporter must live for the pause before its restart to be short; this pause, which else doubles; and
#: the longest pause.
LIVED, PAUSE, _MOST = 10.0, 0.5, 60.0
#: Seconds that an agent which leaves gives its exporter to send the rest.
DRAIN = 10.0


class Telemetry:
    """The spools of one agent, and the exporter that sends their points."""

    def __init__(self, state: Path, machine: str, secrets: SecretValues) -> None:
        """Continue the spools that an earlier agent left in the directory `state`; `machine`: the agent's name.

        Call this before the earlier agent's workspaces are removed: their metrics are still to be sent.
        """
        self._state, self._machine, self._secrets = state, machine, secrets
        self._root = f"{state}/metrics"
        rescue_points(str(state), self._root)
        self._spools: dict[InfluxSettings, Spool] = {}
        #: Attempt's name to the spool where it is registered.
        self._attempts: dict[str, Spool] = {}
        #: The last error of the disk or the exporter's start, for people.
        self.trouble = ""
        self._keeper: asyncio.Task[None] | None = None
        self._exporter: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._told: dict[str, str] = {}
        for path in list_spools(self._root):
            with contextlib.suppress(OSError, ValueError, TypeError):
                spool = self._spool(read_influx_settings(path))
                self._attempts |= dict.fromkeys(names_in(f"{path}/sources"), spool)

    # -- what is to be sent -------------------------------------------------------------------------------------------

    def begin(self, attempt: Attempt, name: str, metrics: str) -> None:
        """Spool the records that an attempt logs into the directory `metrics` of its workspace `name`."""
        influx = attempt.settings.influx
        if influx is None:
            return
        tags: dict[str, Any] = {
            names.SWEEP: attempt.sweep,
            names.JOB: attempt.job,
            names.ATTEMPT: attempt.number,
            names.HOST: self._machine,
            names.USER: attempt.user,
        }
        with self._guarded():
            spool = self._spool(influx)
            spool.register(name, metrics, tags)
            self._attempts[name] = spool
            self.wake()

    def end(self, name: str, metrics: str) -> None:
        """Keep the records of the attempt in the workspace `name`, before its directory is removed."""
        spool = self._attempts.pop(name, None)
        if spool is None:
            return
        with self._guarded():
            if is_directory(metrics) and is_touched(metrics):
                spool.keep(name, metrics)
            else:
                spool.forget(name)

    def add(self, influx: InfluxSettings, lines: bytes) -> None:
        """Spool points for one InfluxDB."""
        with self._guarded():
            self._spool(influx).add(lines)
            self.wake()

    def _spool(self, influx: InfluxSettings) -> Spool:
        if influx not in self._spools:
            self._spools[influx] = Spool(self._root, influx)
        return self._spools[influx]

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
            self.trouble = ""
        except OSError as exc:
            self.trouble = f"the spool cannot be written: {explain_os_error(exc)}"

    # -- the exporter --------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Start to keep an exporter running if there is anything to send."""
        if self._keeper is None and any(is_owed(spool.path) for spool in self._spools.values()):
            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        due, pause = 0.0, PAUSE
        while True:
            if self._exporter is None or self._exporter.poll() is not None:
                if self._exporter is not None:
                    pause = PAUSE if time.monotonic() - self._began >= LIVED else min(2 * pause, _MOST)
                    await asyncio.sleep(pause)
                self._start()
                due = 0.0
            if time.monotonic() >= due:
                self._tell_secrets(again=due == 0.0)
                due = time.monotonic() + SECRETS
            await asyncio.sleep(_POLL_SECONDS)
            if any(influx.secrets and not self._told.keys() >= set(influx.secrets) for influx in self._spools):
                due = min(due, time.monotonic() + _POLL_SECONDS)

    def _start(self) -> None:
        self._began = time.monotonic()
        # Marked, so that our successor ends it; in a session of its own, so that ^C does not.
        ours = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), MARK: f"{self._state}:0"}
        try:
            self._exporter = subprocess.Popen(
                [sys.executable, "-m", "monkey.metrics.exporter", self._root],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={**select_needed_variables(os.environ), **ours},
                start_new_session=True,
            )
        except OSError as exc:
            self.trouble = f"the exporter cannot be started: {exc.strerror}"

    def _tell_secrets(self, *, again: bool) -> None:
        """Send the secrets' values to the exporter if they changed, or `again`; by a pipe, which no other reads."""
        found = self._values({name for influx in self._spools for name in influx.secrets})
        if again or found != self._told:
            self._told = found
            self._say({"secrets": found})

    def _values(self, wanted: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in wanted:
            with contextlib.suppress(FleetError):  # the exporter says which one is missing
                found |= self._secrets.get([name])
        return found

    def _say(self, order: dict[str, Any]) -> None:
        if self._exporter is not None and self._exporter.stdin is not None:
            with contextlib.suppress(OSError):
                self._exporter.stdin.write(json.dumps(order).encode() + b"\n")
                self._exporter.stdin.flush()

    async def close(self) -> None:
        """Let the exporter send the rest for `DRAIN` seconds, and end it; the agent's next life sends what is left."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
            self._keeper = None
        if self._exporter is not None:
            self._say({"drain": DRAIN if any(is_owed(spool.path) for spool in self._spools.values()) else 0})
            await asyncio.to_thread(self._end, self._exporter)
            self._exporter = None
        for spool in self._spools.values():
            spool.close()

    @staticmethod
    def _end(exporter: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            exporter.wait(DRAIN + 1)
        exporter.kill()
        exporter.wait()
        if exporter.stdin is not None:
            with contextlib.suppress(OSError):
                exporter.stdin.close()

    # -- for people ---------------------------------------------------------------------------------------------------

    def vitals(self) -> dict[str, Any]:
        """Return the exporters' states for a heartbeat; {} where no sweep names an InfluxDB."""
        told = []
        for influx, spool in self._spools.items():
            with contextlib.suppress(OSError):
                state = {"url": influx.url, **load_json(f"{spool.path}/state.json")}
                told.append(state | ({"error": self.trouble} if self.trouble and not state.get("error") else {}))
        return {"metrics": told} if told else {}
