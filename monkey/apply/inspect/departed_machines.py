"""Agents that are gone: what their last heartbeats say of what is still on their machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from monkey.protocol.status.agent_views import AgentView


def find_departed_agents(agents: Iterable[AgentView]) -> list[AgentView]:
    """Return the newest life of each agent of which none is alive: those before it left what they owed to it."""
    newest: dict[str, AgentView] = {}
    for agent in sorted(agents, key=lambda one: (one.alive, one.at)):
        newest[agent.id.rpartition("/")[0]] = agent
    return [agent for agent in newest.values() if not agent.alive]


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
