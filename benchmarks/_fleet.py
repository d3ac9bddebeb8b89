"""A store as many agents leave it, made by the protocol's own code: what `status` reads of a large project."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monkey.metrics.summary import MetricSummary
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.journal import make_record
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.load import load_spec
from monkey.store.create import create_object
from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey_agent.machine import MachineClock
from tests.signing import SIGNERS

AGENTS = 50
#: One agent in so many is a large machine, and does this many times the work of another.
LARGE_EVERY, LARGE = 5, 8
#: Jobs that each agent runs now.
RUNNING = 2
#: Jobs that no agent has begun.
WAITING = 1_000
#: One job in so many has failed.
FAILED_EVERY = 200


class Agents:
    """Agents at work on the one sweep of a project: most of its jobs have ended."""

    def __init__(self, home: Path, spec: Path, *, metrics: bool) -> None:
        """Work on `spec` of the project in `home`; `metrics`: each job has logged one."""
        self._home, self._metrics = home, metrics
        loaded = load_spec(spec, home)
        recipe = loaded.recipe("c" * 64)
        self.table = assign_job_ids(expand_spec(loaded)[0], recipe)
        self._revision = Revision(loaded.name, recipe, loaded.settings(), self.table, loaded.text)
        self._keys = Keys("bench")
        self._hearts: list[HeartbeatWriter] = []

    async def work(self) -> None:
        """Write what the agents would have: sealed segments of their journals, and heartbeats."""
        store = await self._open(begin=True)
        await append_revision(store, self._keys, SIGNERS, self._revision, 0)
        await mark_queue(store, self._keys, ["local"], self._revision.sweep, 1)
        shares = [LARGE if i % LARGE_EVERY == 0 else 1 for i in range(AGENTS)]
        jobs, begun = len(self.table) - WAITING, 0
        for i in range(AGENTS):
            ended = jobs * sum(shares[: i + 1]) // sum(shares)
            await self._agent(store, f"local/machine-{i:02}/{i:08x}", self.table.ids[begun:ended])
            begun = ended
        await store.close()

    async def beat(self) -> None:
        """Have every agent beat: who has not done so lately counts as gone."""
        store = await self._open(begin=False)
        for heart in self._hearts:
            if not await heart.beat():
                raise SystemExit("the store took no heartbeat")
        await store.close()

    async def _open(self, *, begin: bool) -> Store:
        return await open_store(str(self._home / ".monkey" / "store"), begin=begin)

    async def _agent(self, store: Store, agent: str, jobs: Sequence[str]) -> None:
        heart = HeartbeatWriter(store, self._keys.beat(agent), MachineClock())
        for row, job in enumerate(jobs[:-RUNNING]):
            heart.journal.record(make_record(job, 2, self._end(agent, row)))
            if heart.journal.full:
                i, block = heart.journal.pending()
                await create_object(store, self._keys.segment(agent, i), block.encode())
                heart.journal.seal()
        running = jobs[-RUNNING:]
        heart.held = {(self._keys.job_log(job), 1) for job in running}
        heart.vitals = lambda: {"running": [self._running(job) for job in running], "alert": ""}
        self._hearts.append(heart)

    def _end(self, agent: str, row: int) -> EndEntry:
        if row % FAILED_EVERY == 0:
            tail = ["Traceback (most recent call last):", '  File "train.py", line 7', "ValueError: loss is NaN"]
            return EndEntry(ClaimEnd.FAILED, agent, row, "big", "exit code 1", 1, 61.8, time.time(), 1, log_tail=tail)
        return EndEntry(
            ClaimEnd.SUCCEEDED, agent, row, "big", "", 0, 61.803, time.time(), 1, metrics=self._summary(row)
        )

    def _running(self, job: str) -> dict[str, Any]:
        told = {"job": job, "k": 1, "sweep": "big", "began": time.time() - 30, "frozen": False}
        return {**told, "metrics": self._summary(0)}

    def _summary(self, row: int) -> dict[str, dict[str, Any]]:
        if not self._metrics:
            return {}
        summary = MetricSummary()
        for step in (0, 500, 1000):
            summary.feed(
                json.dumps({"t": time.time(), "step": step, "m": {"loss": 1 / (1 + step + row)}}).encode() + b"\n"
            )
        return summary.finish()
