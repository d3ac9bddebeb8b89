"""An agent none of whose jobs begin says that jobs of other projects hold the machine; status and apply print that."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.world.world import World
from monkey.cli.render.progress_lines import draw_progress, format_progress
from monkey.cli.render.status_lines import format_status
from monkey.cli.terminal.text import Terminal
from monkey.protocol.clock import MachineClock
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from monkey_agent.slots.busy_gpus import BusyGpus
from monkey_agent.slots.machine_agents import WAITS
from tests.loops import Run
from tests.unit.apply.small_project import apply, opened, write_project
from tests.unit.monkey_agent.slots.slot_site import SlotSite, refused, take

TOLD = "jobs wait for 1 CPU: jobs of your other projects or fleets hold this machine"


def test_what_waits_for_long_while_others_hold_the_machine_is_told(site: SlotSite) -> None:
    ana, ben = site.start("ana"), site.start("ben")
    held = [take(ana) for _ in range(4)]
    site.pass_time()
    assert refused(ben) and not ben.held_up, "turns are short in a fair share"
    site.pass_time()
    assert refused(ben) and ben.held_up == TOLD
    assert refused(ana) and not ana.held_up, "its own jobs are in the way"
    ana.give(held.pop())
    site.pass_time()
    take(ben)
    for _ in range(3):
        assert refused(ben) and not ben.held_up, "one of these jobs runs, and the others get their turns"
        site.pass_time()
    for _ in range(3):
        assert refused(ben, gpus=1)
        site.pass_time()
    assert "for 1 CPU, 1 GPU:" in ben.held_up, "none of these runs"
    site.pass_time(WAITS)
    assert not ben.held_up, "nothing has asked for long"


def test_a_gpu_on_which_a_colleague_computes_is_not_held_by_other_projects(site: SlotSite, run: Run) -> None:
    busy = BusyGpus(lambda: frozenset({"a", "b"}))
    run(busy._find_out())
    ana, ben = site.start("ana"), site.start("ben", foreign=busy)
    for gpus, told in ((0, False), (1, True)):
        take(ana, cpus=0.1, gpus=gpus)
        for _ in range(3):
            site.pass_time()
            assert refused(ben, gpus=1)
        assert bool(ben.held_up) is told


async def find_no_room(world: World, agent: AgentDaemon, pass_time: Callable[[float], None]) -> None:
    """Have the agent find no room for six seconds, and say so."""
    await agent.heart.beat()
    for _ in range(3):
        await agent.queue.look(set())
        agent.picker.look += 1
        await agent.dispatcher.fill(lambda: False)
        pass_time(2)
    await agent.heart.beat()


async def read_screens(world: World) -> tuple[list[str], list[str], list[str]]:
    """Return what status prints, and what an apply that waits prints on a terminal and in a pipe."""
    snapshot = await world.reader().read()
    view = snapshot.sweeps["small"]
    progress = [SweepProgress(view, view.counts)]
    return (
        format_status("/store", snapshot, [view], Terminal()),
        draw_progress(snapshot, progress, {}, "", Terminal()),
        format_progress(snapshot, progress, {}, ""),
    )


def test_status_and_apply_print_it(site: SlotSite, tmp_path: Path, run: Run) -> None:
    write_project(tmp_path / "root")
    ana, ben = site.start("ana"), site.start("ben")
    held = take(ana, cpus=4)
    site.pass_time()

    async def main() -> None:
        async with opened(tmp_path / "root") as world:
            await apply(world)
            body: Any = SimpleNamespace()
            identity = AgentIdentity("test", "local", "m", "0")
            agent = AgentDaemon(world.at, identity, world.signers, MachineClock(), body, ben, random.Random(1))
            await find_no_room(world, agent, site.pass_time)
            status, drawn, said = await read_screens(world)
            assert f"  agent local/m/0: {TOLD}" in status, status
            assert drawn[-1] == said[-1] == f"! {TOLD}"
            ana.give(held)
            site.pass_time()
            take(ben)
            await agent.heart.beat()
            assert TOLD not in str(await read_screens(world)), "one of its jobs runs"

    run(main())
