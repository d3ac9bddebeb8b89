"""An agent leaves when it has nothing to do, and when there is nothing left that could give it something to do."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from monkey.errors import MachineUnfit, StoreForbidden, StoreRefused
from monkey.spec.project.mounts import Mount
from monkey_agent.lifecycle.mount_patience import MOUNT_PATIENCE, leave_unmounted
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from monkey_agent.slots.disk_space import DiskSpaceGuard
from monkey_agent.slots.mount_guard import MountGuard
from tests.signing import SIGNERS
from tests.simulation.body import Body
from tests.simulation.machine_slots import Slots
from tests.simulation.net import Host, Net
from tests.simulation.world import Weather, World

pytestmark = pytest.mark.slow

QUIET = {"fault_rate": 0, "crashes": False, "pauses": False}


class Refusing(Net):
    """A store that refuses to write, by this error."""

    refusal: StoreRefused = StoreForbidden("the store /s: permission denied")

    async def put(self, key: str, data: bytes) -> None:
        """See `Store.put`."""
        raise self.refusal


class Passing(Refusing):
    """A store that refuses for what may pass, as does a full disk or a wrong clock."""

    refusal = StoreRefused("the store s3://b: this machine's clock is wrong")


def left_at(outage: tuple[float, float], net: type[Net] = Net) -> tuple[float, bool]:
    """Return when an agent without work has left, on a store that is away for so long, and whether it gave up."""
    when, agent = live(outage, net)
    return when, agent.gave_up


def live(outage: tuple[float, float], net: type[Net], *, stop: bool = False) -> tuple[float, AgentDaemon]:
    """Return when such an agent has left, and the agent; `stop`: it is asked to leave as it starts."""
    world = World(1, Weather(outage=outage, **QUIET))
    asyncio.set_event_loop(world.loop)
    host = Host(world, "h")
    identity = AgentIdentity("p", "f", "h", "b", idle_timeout=10)
    agent = AgentDaemon(net(world, host), identity, SIGNERS, host, Body(world, host), Slots(1), random.Random(1))
    if stop:
        agent.stop("the machine is taken back")
    world.run(asyncio.wait_for(agent.run(), 5_000))
    return world.loop.time(), agent


def test_an_agent_without_work_leaves() -> None:
    when, gave_up = left_at((0, 0))
    assert 10 < when < 60 and not gave_up


def test_an_agent_whose_store_never_comes_back_leaves_too() -> None:
    when, gave_up = left_at((5, float("inf")))
    assert 70 < when < 400 and gave_up


def test_an_agent_that_never_met_its_store_gives_up() -> None:
    when, gave_up = left_at((0, float("inf")))
    assert 60 < when < 200 and gave_up


def test_an_agent_that_may_not_write_says_so_and_is_not_to_be_started_again() -> None:
    with pytest.raises(MachineUnfit, match="permission denied"):
        left_at((0, 0), Refusing)


def test_an_agent_whose_store_refuses_for_what_may_pass_may_be_started_again() -> None:
    when, gave_up = left_at((0, 0), Passing)
    assert 60 < when < 200 and gave_up


def test_an_agent_that_is_asked_to_leave_before_its_first_heartbeat_is_taken_back() -> None:
    agent = live((0, 0), Refusing, stop=True)[1]
    assert agent.taken_back and agent.gave_up


#: The kernel's line of a mount at /data.
MOUNTED = "36 35 0:26 / /data rw - nfs4 {source} rw\n"


def rent(tmp_path: Path, mounted_at: float, before: str = "") -> float:
    """Return when a rented agent, which would wait for work for long, has left; its mount comes at `mounted_at`.

    `before`: what the kernel lists until then.
    """
    world, listed = World(1, Weather(outage=(0, 0), **QUIET)), tmp_path / "mountinfo"
    asyncio.set_event_loop(world.loop)
    host = Host(world, "h")
    identity = AgentIdentity("p", "f", "h", "b", idle_timeout=3 * MOUNT_PATIENCE)
    agent = AgentDaemon(Net(world, host), identity, SIGNERS, host, Body(world, host), Slots(1), random.Random(1))
    guard = MountGuard([Mount("/data", "nas:/export")], DiskSpaceGuard([tmp_path]), listed, host.now)
    listed.write_text(before)
    world.loop.call_later(mounted_at, listed.write_text, MOUNTED.format(source="nas:/export"))

    async def story() -> None:
        patience = asyncio.create_task(leave_unmounted(agent, guard))
        try:
            await agent.run()
        finally:
            patience.cancel()

    try:
        world.run(asyncio.wait_for(story(), 10_000))
    finally:
        beats = [data for key, (data, _) in world.state.objects.items() if key.endswith("/beat")]
        assert any(json.loads(beat)["left"] for beat in beats), "it says goodbye"
    return world.loop.time()


def test_a_rented_machine_whose_mount_does_not_come_is_unfit(tmp_path: Path) -> None:
    with pytest.raises(MachineUnfit) as caught:
        rent(tmp_path, float("inf"))
    assert caught.value.message == "no job began for 10 minutes: /data is not mounted: expected nas:/export"
    with pytest.raises(MachineUnfit) as caught:
        rent(tmp_path, float("inf"), MOUNTED.format(source="old:/export"))
    assert caught.value.message == "no job began for 10 minutes: /data: expected nas:/export, found old:/export mounted"


def test_a_mount_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    assert rent(tmp_path, MOUNT_PATIENCE / 2) > 3 * MOUNT_PATIENCE
