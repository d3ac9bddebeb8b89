"""A fleet of pilots: whether an agent is on its way for each image whose jobs wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from monkey.apply.watch.startup import wait_for_agents
from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding, FleetWork
from monkey.protocol.clock import MachineClock
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.status.store_snapshot import SnapshotReader
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.provider import Provider
from monkey.store.content.upload_progress import Begin
from monkey.store.memory import MemoryStore
from monkey.store.store_port import Store
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.pilots.pilot_engine import (
    EngineState,
    Pilot,
    PilotFailure,
    PilotOffer,
    PilotRequest,
    mark_image,
)
from monkey_stacks.pilots.pilot_fleet import PilotFleet
from tests.signing import make_signers

A, B = (f"ghcr.io/lab/{digit}@sha256:{digit * 64}" for digit in "ab")
ASKED, SHAPE = ((JobResources(), 1),), MachineType("a pilot", 1, 1 << 30, share=1.0)


@dataclass
class PaperEngine:
    """Pilots on paper, by the port alone; each runs one image."""

    state: EngineState
    submitted: list[Mapping[str, int]] = field(default_factory=list)
    type: str = "kubernetes"
    where: str = "paper"
    logs: str = "no logs"
    most: int = 2
    runs_one_image: bool = True
    shape: MachineType = SHAPE
    time: float | None = None
    marker: Mapping[str, str] = field(default_factory=lambda: {"type": "kubernetes"})
    bound: Mapping[str, Any] = field(default_factory=dict)

    def describe_pilot(self, image: str = "") -> str:
        return f"a sheet of {image or 'paper'}"

    def check_store(self) -> None:
        pass

    def list_pilots(self) -> EngineState:
        return self.state

    def foresee(self, request: PilotRequest | None = None) -> PilotOffer:
        return PilotOffer(self.state)

    def submit(self, request: PilotRequest, say: Say) -> int:
        self.submitted.append(request.wanted)
        return request.total

    def audit(self, state: EngineState) -> Sequence[AuditFinding]:
        return ()

    def remove(self, say: Say) -> None:
        self.state = EngineState()

    async def prepare(self, store: Store, say: Say, bars: Begin) -> None:
        pass


def make_paper_fleet(*images: str, failures: Sequence[PilotFailure] = ()) -> PilotFleet:
    """Return a fleet with a pilot of each of these images."""
    pilots = tuple(Pilot(f"p-{mark_image(image)}-0", "on n1", "agent", image=mark_image(image)) for image in images)
    store, engine = MemoryStore(), PaperEngine(EngineState(pilots, tuple(failures)))
    url = "s3://bucket/store"
    return PilotFleet("kube", Provider("kubernetes"), "p", url, lambda: store, lambda: make_signers(1), engine)


def need(*images: str) -> FleetWork:
    """Return the work of one job in each image."""
    return FleetWork(len(images), asked=((JobResources(), len(images)),), images=dict.fromkeys(images, ASKED))


def fail(image: str) -> PilotFailure:
    return PilotFailure(f"p-{mark_image(image)}-1", "python3: not found", mark_image(image))


@pytest.mark.parametrize(
    ("asked", "there", "failures", "has"),
    [
        ([A, B], [A], [], False),
        ([A, B], [A, B], [], True),
        ([A, B], [A, B], [fail(B)], True),
        (["", B], [""], [], False),
        ([A], [A], [fail(B)], True),
        ([A], [B], [fail(B)], False),
        ([], [A], [], True),
        ([A], [], [], False),
    ],
)
def test_pilots_of_one_image_are_no_workers_of_another(
    asked: list[str], there: list[str], failures: list[PilotFailure], has: bool
) -> None:
    async def story() -> None:
        fleet = make_paper_fleet(*there, failures=failures)
        await fleet.preview(need(*asked))
        assert await fleet.has_workers() is has

    asyncio.run(story())


@pytest.mark.parametrize(("asked", "there"), [([A, B], [A]), ([B], []), ([], [])])
def test_an_image_whose_pilots_cannot_begin_is_told_while_those_of_others_work(
    asked: list[str], there: list[str]
) -> None:
    async def story() -> None:
        fleet = make_paper_fleet(*there, failures=[fail(A), fail(B)])
        await fleet.preview(need(*asked))
        with pytest.raises(FleetError, match=f"p-{mark_image(B)}-1: python3: not found"):
            await fleet.has_workers()

    asyncio.run(story())


def test_pilots_that_were_asked_for_are_on_their_way_until_their_images_have_no_work() -> None:
    async def story() -> None:
        fleet = make_paper_fleet(A)
        await fleet.converge(need(A, B), lambda _: None)
        assert isinstance(fleet.engine, PaperEngine) and fleet.engine.submitted == [{A: 1, B: 1}]
        assert await fleet.has_workers(), "the engine need not be asked at once"
        await fleet.preview(need(A, B))
        assert not await fleet.has_workers()
        await fleet.converge(need(A), lambda _: None)
        await fleet.preview(need(A))
        assert await fleet.has_workers()

    asyncio.run(story())


async def beat(store: Store, name: str, image: str) -> None:
    """Have the agent of a pod beat that runs jobs of this image alone."""
    heart = HeartbeatWriter(store, Keys("p").beat(f"kube/{name}/1"), MachineClock())
    heart.vitals = lambda: {"own_image": image.partition("@")[2]}
    await heart.beat()


def test_the_agent_of_one_image_hides_no_pull_error_of_another() -> None:
    async def story() -> None:
        fleet = make_paper_fleet(A)
        store = fleet.opened()
        assert isinstance(fleet.engine, PaperEngine) and store is not None
        stuck = Pilot("p-b", "waits", stuck="ErrImagePull: not found", hint="correct `image:`", image=mark_image(B))
        fleet.engine.state = EngineState((*fleet.engine.state.pilots, stuck))
        await fleet.preview(need(A, B))
        reader = SnapshotReader(store, Keys("p"), make_signers(1))
        await beat(store, "pod-a", A)
        with pytest.raises(FleetError, match="p-b waits: ErrImagePull: not found") as caught:
            await wait_for_agents(reader, [fleet])
        assert caught.value.hint == "correct `image:`"
        await fleet.preview(need(A))
        await wait_for_agents(reader, [fleet])
        await fleet.preview(need(A, B))
        await beat(store, "pod-b", B)
        await wait_for_agents(reader, [fleet])

    asyncio.run(story())


def test_each_image_waits_for_an_agent_of_its_own() -> None:
    async def story() -> None:
        fleet = make_paper_fleet(A, B)
        await fleet.preview(need(A, B))
        digests = [image.partition("@")[2] for image in (A, B)]
        assert await fleet.check_images(digests)
        for some in ([], digests[:1], digests[1:], [""]):
            assert not await fleet.check_images(some)
        await fleet.preview(need(""))
        assert await fleet.check_images([""]) and not await fleet.check_images(digests)

    asyncio.run(story())
