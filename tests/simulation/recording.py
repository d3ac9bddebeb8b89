"""Jobs that log and save checkpoints, on virtual time: what the store must have of them, whatever happens.

What a job logs depends on the attempt. Each attempt notes, outside of the store, the history that it continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monkey.errors import KeyMissing, StoreError
from monkey.metrics.history_summary import summarize_history
from monkey.metrics.summary import MetricSummary, merge_summaries
from monkey.protocol.record.end_files import EndFiles, may_have_files
from monkey.protocol.record.history_parts import HistoryPart, parse_parts, restore_history
from monkey.protocol.record.shipment import METRICS, Piece
from monkey_agent.checkpoints.remote_checkpoints import parse_spots
from monkey_agent.ports import Attempt, AttemptEnd, AttemptOutcome, SlotGrant
from tests.simulation.body import KEYS, Body, Execution

if TYPE_CHECKING:
    from tests.simulation.net import Host, Net
    from tests.simulation.world import World

#: Seconds of work between two steps, and between two checkpoints; and how wrong a machine's clock may be.
STEP, SAVE, WRONG = 2.0, (5.0, 40.0), 3600.0


class Saved(NamedTuple):
    """A checkpoint: its step, the attempts that it stands on, and the values that a ledger has of them."""

    step: int
    parts: tuple[HistoryPart, ...]
    stepped: tuple[float, ...]
    free: tuple[float, ...]


@dataclass
class Written:
    """What an attempt wrote to its machine's disk, which outlives its agent."""

    attempt: Attempt
    begun: Saved
    data: bytes = b""
    first: int | None = None
    #: Does a checkpoint stand on it, or will it?
    saved: bool = False
    stepped: tuple[float, ...] = ()
    free: tuple[float, ...] = ()

    def log(self, step: int, value: float, at: float) -> None:
        for name, where in (("loss", step), ("free", None)):
            self.data += json.dumps({"t": at, "step": where, "m": {name: value}}).encode() + b"\n"
        self.first = step if self.first is None else self.first
        self.stepped, self.free = (*self.stepped, value), (*self.free, value)

    def save(self, step: int) -> Saved:
        own = HistoryPart(self.attempt.k, self.attempt.agent, {"0.jsonl": len(self.data)})
        begun = self.begun
        return Saved(step, (*begun.parts, own), begun.stepped + self.stepped, begun.free + self.free)


class RecordingExecution(Execution):
    """An execution that logs a value each few seconds that it works, and saves what it is at now and then."""

    def __init__(self, body: RecordingBody, attempt: Attempt, written: Written) -> None:
        super().__init__(body, attempt)
        self.recorder, self.written, self.taken = body, written, 0
        self.saves = None
        self.step, self._whole = written.begun.step, self.left
        self._dice = random.Random(f"saves {attempt.job} {attempt.k}")
        self._skew = random.Random(body.host.name).choice([0.0, WRONG, -WRONG])

    def advance(self) -> None:
        """Log what was to be logged by now."""
        left = self.left - (self.world.loop.time() - self._since if self._timer else 0.0)
        while self.step < self.written.begun.step + int((self._whole - left) / STEP):
            self.step += 1
            self.written.log(self.step, self.step + self.attempt.k / 1000, self.body.host.wall() + self._skew)

    def _run(self) -> None:
        super()._run()
        self.world.loop.call_later(self._dice.uniform(*SAVE), self._save_step)

    def _halt(self) -> None:
        self.advance()
        super()._halt()

    def _save_step(self) -> None:
        if self.active and int(self.attempt.job, 16) % 3:
            self.advance()
            self.written.saved = True
            self.recorder.spawn(self.recorder.publish(self.written.save(self.step), self.attempt))

    async def wait(self) -> AttemptOutcome:
        outcome = await super().wait()
        if self.begun:
            return await self.recorder.conclude(self.written, outcome)
        return outcome

    async def keep_files(self) -> None:
        if not self.world.mutant.unkept:
            await self.recorder.upload(self.written)
        self.world.counts["files kept for no end"] += 1

    def leave(self, *, recorded: bool) -> None:
        super().leave(recorded=recorded)
        if self.begun:
            self.world.logged[self.attempt.job, self.attempt.k] = self.written.data
        self.body.host.disk.pop(self.attempt.job, None)


class RecordingBody(Body):
    """A machine whose jobs log."""

    def __init__(self, world: World, host: Host) -> None:
        super().__init__(world, host)
        self.chores: list[asyncio.Task[None]] = []

    @property
    def net(self) -> Net:
        return self.host.net

    def spawn(self, chore: Coroutine[Any, Any, None]) -> None:
        self.chores.append(self.world.loop.create_task(chore))

    def kill(self) -> None:
        for task in self.chores:
            task.cancel()
        super().kill()

    def make(self, attempt: Attempt) -> Execution:
        written = self.host.disk[attempt.job]
        written.attempt = attempt  # one that exited in an earlier life leaves its files under the newest claim
        return RecordingExecution(self, attempt, written)

    async def start(self, attempt: Attempt, turn: Callable[[], Awaitable[SlotGrant | None]]) -> Any:
        k, outcome = self.host.exits.get(attempt.job, (0, None))
        if not (outcome and attempt.ours_since <= k < attempt.k):
            await self._upload_left(attempt.job)
            self.host.disk[attempt.job] = Written(attempt, await self._restore(attempt))
        return await super().start(attempt, turn)

    async def _upload_left(self, job: str) -> None:
        """Do what `AbandonedAttempts` does."""
        if left := self.host.disk.get(job):
            await self.upload(left)
            self.host.disk.pop(job, None)

    async def upload(self, written: Written) -> None:
        """Make an object of what an attempt logged."""
        await self.net.put(f"{KEYS.out(written.attempt.job, written.attempt.k)}{METRICS}0.jsonl", written.data)

    async def _restore(self, attempt: Attempt) -> Saved:
        prefix = KEYS.checkpoints(attempt.job)
        for spot in parse_spots([item.key.removeprefix(prefix) for item in await self.net.list(prefix)]):
            with contextlib.suppress(KeyMissing):
                told = json.loads(await self.net.get(KEYS.checkpoint(attempt.job, *spot)))
                parts = parse_parts(told["parts"])
                self.world.counts["resumed from a checkpoint"] += 1
                return Saved(told["step"], parts, tuple(told["stepped"]), tuple(told["free"]))
        return Saved(0, (), (), ())

    async def publish(self, saved: Saved, attempt: Attempt) -> None:
        """Do what `CheckpointSaver` does: a checkpoint is in the store only after what it stands on."""
        with contextlib.suppress(StoreError):
            if not self.world.mutant.unshipped:
                await self.ship()
            told = saved._asdict() | {"parts": [part.to_json() for part in saved.parts]}
            await self.net.put(KEYS.checkpoint(attempt.job, attempt.k, saved.step), json.dumps(told).encode())

    async def conclude(self, written: Written, outcome: AttemptOutcome) -> AttemptOutcome:
        """Do what `AttemptUploads` does."""
        attempt, parts = written.attempt, written.begun.parts
        with tempfile.TemporaryDirectory() as place:
            await restore_history(self.net, KEYS, attempt.job, parts, Path(place))
            own = MetricSummary()
            own.feed(written.data)
            summary = merge_summaries(summarize_history(parts, Path(place), own.first_step), own.finish())
        files = None
        if may_have_files(self.net) and outcome.ending is not AttemptEnd.LOST and not written.saved:
            self.world.counts["files ride in an end"] += 1
            files = EndFiles(log=b"\xff", metrics={"0.jsonl": written.data})
        else:
            await self.upload(written)
        self._check(written, summary)
        return replace(outcome, summary={**summary, **outcome.summary}, history=parts, files=files)

    def _check(self, written: Written, summary: dict[str, dict[str, Any]]) -> None:
        """Hold the record against what the attempts noted."""
        kept = {"free": written.begun.free + written.free}
        if written.first is not None:  # else it is not known where it began anew
            kept["loss"] = written.begun.stepped + written.stepped
        for name, values in kept.items():
            found = summary.get(name, {"count": 0, "min": None, "max": None, "last": None})
            wanted = (len(values), min(values), max(values), values[-1]) if values else (0, None, None, None)
            if (found["count"], found["min"], found["max"], found["last"]) != wanted:
                self.world.violations[f"a record whose {name} is not the history's"] += 1
        self.world.counts["records of several attempts"] += len(written.begun.parts) > 0

    def take_unshipped(self, most: int) -> Iterable[Piece]:
        for execution in list(self.executions):
            if isinstance(execution, RecordingExecution) and most > 0:
                execution.advance()
                at, data = execution.taken, execution.written.data[execution.taken : execution.taken + most]
                execution.taken, most = at + len(data), most - len(data)
                if data:
                    yield Piece(execution.attempt.job, execution.attempt.k, f"{METRICS}0.jsonl", at, data)


async def check_logged(world: World, net: Net) -> None:
    """Hold what readers find of each attempt against what it logged, wherever that lies."""
    for (job, k), data in world.logged.items():
        with tempfile.TemporaryDirectory() as place:
            await restore_history(net, KEYS, job, [HistoryPart(k, "f/nobody/b", {})], Path(place))
            found = {path.name: path.read_bytes() for path in Path(place, str(k)).iterdir()}  # noqa: ASYNC240
            if data and found != {"0.jsonl": data}:
                world.violations["what an attempt logged is not found"] += 1
