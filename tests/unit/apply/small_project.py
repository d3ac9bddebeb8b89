"""A project in a directory, its store, a fleet that only counts, and an agent's pen without an agent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.planning import PlanningResult, make_plan
from monkey.apply.watch import startup
from monkey.apply.world.world import World, open_world
from monkey.errors import FleetError
from monkey.fleet.fleet_port import Recount, Say
from monkey.fleet.fleet_records import AuditFinding, FleetForecast, FleetWork, Instance, TaggedResource
from monkey.plan.cost import MachineChange
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.journal import make_record
from monkey.protocol.layout import spell_segment_key
from monkey.protocol.record.shipment import LOG, Piece
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.project import load_project
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.create import create_object

SPEC = """\
name: small
command: python3 train.py --lr {lr}
parameters:
  lr: [1, 2, 3]
metric: {name: loss}
"""


def write_project(root: Path, spec: str = SPEC) -> None:
    """Write a project of one spec."""
    (root / "specs").mkdir(parents=True, exist_ok=True)
    (root / "specs" / "small.yaml").write_text(spec)
    (root / "train.py").write_text("print('hello')\n")
    (root / "monkey.yaml").write_text("project: test\n")


@dataclass
class StillFleet:
    """A fleet whose machines come when they are asked for, and do nothing."""

    name: str = "local"
    type: str = "local"
    count: int = 0
    asked: list[int] = field(default_factory=list)
    #: What `has_workers` says, in turn; the last for ever.
    answers: list[bool] = field(default_factory=lambda: [True])

    async def preview(self, work: FleetWork) -> FleetForecast:
        return FleetForecast(self.count, max(self.count, min(work.jobs, 1)))

    def describe_shortage(self, asked: JobResources) -> str:
        return "64 CPUs (it has 2)" if asked.cpus > 2 else ""

    def check_secrets(self, names: Sequence[str]) -> None:
        if names:
            raise FleetError("unknown", hint="set it")

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        self.count = max(self.count, min(work.jobs, 1))
        self.asked.append(self.count)

    async def has_workers(self) -> bool:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def recent_log(self) -> str:
        return "  (nothing)"

    async def instances(self) -> tuple[Instance, ...]:
        return (Instance("this machine", ("pen",)),) * self.count

    async def destroy(self, say: Say) -> None:
        self.count = 0


@dataclass
class StillRentedFleet(StillFleet):
    """One whose machines cost money."""

    booting: bool = False
    touched: bool = False

    async def destroy(self, say: Say, *, idle: bool = False) -> None:
        self.count = 0

    async def check_offer(self) -> str:
        return f"{self.name}: AWS has m5.large"

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        return ()

    async def tagged_resources(self) -> tuple[TaggedResource, ...]:
        return ()


@dataclass
class Listening(StillFleet):
    """A fleet that remembers what it was told to do, and has the machines that it is given."""

    told: list[FleetWork] = field(default_factory=list)
    foreseen: list[FleetWork] = field(default_factory=list)
    machines: tuple[Instance, ...] = ()
    changes: tuple[MachineChange, ...] = ()

    async def preview(self, work: FleetWork) -> FleetForecast:
        """Remember, and foresee what was given."""
        self.foreseen.append(work)
        return FleetForecast(len(self.machines), 1, self.changes)

    def check_secrets(self, names: Sequence[str]) -> None:
        """Know them all."""

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """Remember."""
        self.told.append(work)

    async def instances(self) -> tuple[Instance, ...]:
        """Have what was given."""
        return self.machines

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """Find each machine astray, where there is work."""
        return tuple(AuditFinding(machine.machine, "astray", "look") for machine in self.machines if busy)


@asynccontextmanager
async def opened(root: Path, fleet: StillFleet | None = None) -> AsyncIterator[World]:
    """Open the project at `root` with a fleet that starts nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup, "BEGUN_WITHIN", 0.0)  # no agent of it ever beats
        async with open_world(load_project(root)) as world:
            world.fleets = {"local": fleet or StillFleet()}
            yield world


async def apply(world: World, *specs: str, **options: Any) -> PlanningResult:
    """Plan and apply, as the verb does."""
    planned = await make_plan(world, specs)
    await world.begin()
    await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None, **options)
    return planned


class _Clock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")


class Pen:
    """Writes what an agent would: claims, ends, heartbeats."""

    def __init__(self, world: World, agent: str = "local/pen/1") -> None:
        self.world, self.agent, self.nonce = world, agent, 0
        self.heart = HeartbeatWriter(world.at, world.keys.beat(agent), _Clock())
        self.logs: dict[str, EntryLog] = {}
        #: What attempts wrote.
        self.written: dict[tuple[str, int], bytes] = {}

    async def begin(self, job: str, sweep: str = "small", *, beat: bool = True) -> int:
        """Claim the job, and tell by a heartbeat (`beat`); returns the position of the claim."""
        log = self.logs.setdefault(job, EntryLog(self.world.keys.job_log(job)))
        await log.refresh(self.world.at)
        self.nonce += 1
        assert await log.append(self.world.at, create_object, log.head + 1, self._claim(sweep))
        self.heart.held.add((log.base, log.head))
        if beat:
            await self.heart.beat()
        return log.head

    def _claim(self, sweep: str) -> Claim:
        return Claim(self.agent, self.nonce, self.heart.seq, sweep)

    async def end(self, job: str, outcome: ClaimEnd = ClaimEnd.SUCCEEDED, sweep: str = "small", **about: Any) -> None:
        """End what `begin` began, the journal told."""
        log = self.logs[job]
        k = log.head
        end = EndEntry(outcome, self.agent, self.nonce, sweep, seconds=1.5, at=time.time(), out=k, **about)
        if "files" not in about:
            await self.keep_log(job, k)
        assert await log.append(self.world.at, create_object, k + 1, end)
        self.heart.held.discard((log.base, k))
        self.heart.journal.record(make_record(job, log.head, end))
        await self.heart.beat()

    async def write(self, job: str, k: int, data: bytes) -> None:
        """Ship more of the log of a running attempt."""
        before = self.written.get((job, k), b"")
        self.heart.shipment.add(Piece(job, k, LOG, len(before), data))
        self.written[job, k] = before + data
        await self.heart.beat()

    async def keep_log(self, job: str, k: int) -> None:
        """Make a file of the log of an attempt that is over, in two segments."""
        data = self.written.get((job, k), b"")
        for i, part in enumerate((data[:3], data[3:]) if data else ()):
            await self.world.at.put(spell_segment_key(f"{self.world.keys.out(job, k)}log/", i), part)
