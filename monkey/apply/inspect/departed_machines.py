"""Agents that are gone: what their last heartbeats say of what is still on their machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from monkey.fleet.boot_failures import BootFailure
from monkey.protocol.status.agent_views import AgentView
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.protocol.sweeps.sweep_state import SweepState

#: Seconds in which an agent of the version before has read a new revision: until then, it may speak of the one before.
_READ = 60.0


def find_departed_agents(agents: Iterable[AgentView]) -> list[AgentView]:
    """Return the newest life of each agent of which none is alive: those before it left what they owed to it."""
    newest: dict[str, AgentView] = {}
    for agent in sorted(agents, key=lambda one: (one.alive, one.at)):
        newest[agent.id.rpartition("/")[0]] = agent
    return [agent for agent in newest.values() if not agent.alive]


def explain_departures(agents: Sequence[AgentView], working: Mapping[str, SweepState]) -> list[str]:
    """Return why agents left that could run nothing of the sweeps `working`, which have work left, by their names.

    Sweeps that a living agent can run are left out, as is what was found of an earlier revision of a sweep.
    """
    stuck = [state for state in working.values() if not any(_can_run(agent, state) for agent in agents)]
    left: defaultdict[str, list[AgentView]] = defaultdict(list)
    for agent in find_departed_agents(agents):
        if agent.left and agent.alert and any(_has_refused(agent, state) for state in stuck):
            left[agent.alert].append(agent)
    return [f"{_name_agents(those)} left: {alert}" for alert, those in left.items()]


def _can_run(agent: AgentView, state: SweepState) -> bool:
    mine = state.revision is not None and agent.fleet in state.revision.settings.providers
    return agent.alive and mine and not _has_refused(agent, state)


def _has_refused(agent: AgentView, state: SweepState, late: float = 0.0) -> bool:
    """Say whether the agent could run no job of the sweep's newest revision.

    Times would not tell: heartbeats have those of machines' clocks, a revision that of the clock where it was applied.
    They decide all the same, and from `late` seconds on, of agents of the version before, which name no revision.
    """
    if "unfit_revisions" not in agent.vitals:
        of = state.revision
        return of is not None and state.name in read_unfit(agent) and agent.at >= of.at_seconds + late
    told = agent.vitals["unfit_revisions"]
    number = told.get(state.name) if isinstance(told, dict) else None
    return isinstance(number, int) and number >= state.revision_at


def _name_agents(agents: Sequence[AgentView]) -> str:
    others = len(agents) - 1
    return f"agent {agents[-1].id}" + (f" and {others} other{'s' * (others != 1)}" if others else "")


def explain_last_departure(agents: Iterable[AgentView], fleet: str, state: SweepState) -> str:
    """Return what the last agent that left a fleet said, if it could run no job of the sweep; "" where it could.

    What was found of an earlier revision does not count. Nor does it where an agent lives that can run the sweep.
    """
    here = [agent for agent in agents if agent.fleet == fleet]
    if any(_can_run(agent, state) for agent in here):
        return ""
    last = max((agent for agent in find_departed_agents(here) if agent.left), key=lambda one: one.at, default=None)
    return (last.alert or "") if last is not None and _has_refused(last, state, _READ) else ""


def find_lasting_failure(boots: Sequence[BootFailure], snapshot: StoreSnapshot, fleet: str) -> BootFailure | None:
    """Return the newest note of a fleet, if no machine of it could begin, as far as is known; None where one could.

    What another machine said later counts, and so do jobs that ran on the machine of the note: it failed afterwards.
    """
    last = max((boot for boot in boots if boot.fleet == fleet), key=lambda boot: boot.at, default=None)
    if last is None or not last.lasting:
        return None
    agents = [agent for agent in snapshot.agents if agent.fleet == fleet]
    if any(agent.alive or (agent.machine != last.machine and agent.at > last.at) for agent in agents):
        return None
    # It may have been heard, and have waited for a mount: only then are its jobs looked for, as there may be many.
    heard = any(agent.machine == last.machine for agent in agents)
    return None if heard and any(last.machine in view.hosts for view in snapshot.sweeps.values()) else last


def read_unfit(agent: AgentView) -> list[str]:
    """Return the sweeps of which an agent can run no job, as it says."""
    told = agent.vitals.get("unfit")
    return list(map(str, told)) if isinstance(told, list) else []


def read_exporter_states(agent: AgentView) -> Iterator[Mapping[str, Any]]:
    """Yield what an agent says of each InfluxDB that it sends to; whatever another version wrote there."""
    told = agent.vitals.get("metrics")
    yield from (one for one in told if isinstance(one, dict)) if isinstance(told, list) else ()


def read_count(way: Mapping[str, Any], name: str) -> int:
    """Return a number of `read_exporter_states`, 0 where there is none."""
    value = way.get(name)
    return value if isinstance(value, int) else 0


def may_hold_points(agent: AgentView, way: Mapping[str, Any]) -> bool:
    """Say whether what a gone agent owed is likely still there: it could not send it, or had no time to."""
    # One that leaves in peace sends for some seconds after its last heartbeat.
    return read_count(way, "owed") > 0 and (bool(way.get("error")) or not agent.left)
