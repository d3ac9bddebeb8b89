"""Machines and agents in one list: the machines from fleets' records, the agents from their heartbeats."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from monkey.apply.inspect.fleet_audit import find_forgotten_fleets, open_derived_fleets
from monkey.apply.world.world import World
from monkey.fleet.fleet_records import Instance
from monkey.protocol.status.store_snapshot import AgentView


@dataclass(frozen=True)
class InstanceRow:
    """A machine with one of its agents, a machine without an agent, or an agent on a machine that no fleet records."""

    fleet: str
    #: Its name in monkey.yaml; for an agent that joined by itself, the machine's name in its heartbeat.
    machine: str
    agent: str
    #: "alive", "draining" (it takes no new claim, and leaves when its jobs have ended), "silent" or "not heard of";
    #: for the group that machines come from, "machines" if it has any, else "no machine"; "failed" for one that could
    #: not begin.
    state: str
    #: Number of jobs that it runs, without those that it has claimed ahead.
    jobs: int
    #: Seconds since its last heartbeat.
    heard: float | None
    about: str
    #: How busy the machine is, in percent: cpu, memory, gpus (one each; None: it does not answer); {}: not known.
    load: dict[str, Any] = field(default_factory=dict)


async def list_instances(world: World) -> list[InstanceRow]:
    """Return the machines and agents of all fleets, fleet by fleet. Raises FleetError, StoreError."""
    agents = list((await world.reader().read([])).agents) if world.store is not None else []
    rows: list[InstanceRow] = []
    await open_derived_fleets(world)
    for name, fleet in {**world.fleets, **await find_forgotten_fleets(world)}.items():
        rows += _rows(name, await fleet.instances(), [agent for agent in agents if agent.fleet == name])
    return rows


def _rows(fleet: str, machines: Iterable[Instance], agents: list[AgentView]) -> Iterator[InstanceRow]:
    living = {agent.id: agent for agent in agents if agent.alive}
    machines = list(machines)
    source = "machines" if any(machine.runs for machine in machines) else "no machine"
    for machine in machines:
        if not machine.runs:
            state = "failed" if machine.failed else source
            yield InstanceRow(fleet, machine.machine, "", state, 0, None, machine.about)
            continue
        mine = [agent for agent in living.values() if agent.machine in machine.agents]
        for agent in mine:
            del living[agent.id]
            yield _row(machine.machine, agent, machine.about)
        if not mine:
            last = [agent for agent in agents if agent.machine in machine.agents]
            heard = max((agent.at for agent in last), default=None)
            yield InstanceRow(
                fleet, machine.machine, "", "silent" if last else "not heard of", 0, _since(heard), machine.about
            )
    for agent in living.values():
        yield _row(agent.machine, agent, "joined by itself")


def _row(machine: str, agent: AgentView, about: str) -> InstanceRow:
    state = "draining" if agent.vitals.get("draining") else "alive"
    load = {name: agent.system[name] for name in ("cpu", "memory", "gpus") if agent.system.get(name) is not None}
    return InstanceRow(agent.fleet, machine, agent.id, state, agent.jobs, _since(agent.at), about, load)


def _since(at: float | None) -> float | None:
    return None if at is None else max(0.0, time.time() - at)
