"""What is wrong on the way to InfluxDB, as agents' heartbeats tell it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from monkey.apply.inspect.departed_machines import (
    find_departed_agents,
    may_hold_points,
    read_count,
    read_exporter_states,
)
from monkey.cli.terminal.text import flatten_text, format_elapsed
from monkey.plan.sizes import format_size
from monkey.protocol.status.store_snapshot import AgentView


def format_telemetry(agents: Sequence[AgentView]) -> list[str]:
    """Return a line for each agent that cannot send, and for what was refused or dropped."""
    return [
        flatten_text(line)
        for agent in agents
        if agent.alive
        for told in read_exporter_states(agent)
        for line in _lines(agent.machine, told)
    ]


def format_departed_telemetry(agents: Sequence[AgentView]) -> list[str]:
    """Return a line for each agent that is gone with points unsent, and for what was refused or dropped there."""
    return [
        flatten_text(line)
        for agent in find_departed_agents(agents)
        for told in read_exporter_states(agent)
        for line in _left(agent, told)
    ]


def _left(agent: AgentView, told: Mapping[str, Any]) -> Iterator[str]:
    if may_hold_points(agent, told):
        why = f" ({told['error']})" if told.get("error") else ""
        yield (
            f"metrics: {agent.machine} left with {format_size(read_count(told, 'owed'))} that may wait for "
            f"{told.get('url')}"
            f"{why}: the next agent there sends them, or `monkey backfill SWEEP` does"
        )
    yield from _lost(agent.machine, told)


def _lines(machine: str, told: Mapping[str, Any]) -> Iterator[str]:
    url, owed = told.get("url"), read_count(told, "owed")
    if told.get("error"):
        since = read_count(told, "since")
        ago = f" for {format_elapsed(max(time.time() - since, 0))}" if since else ""
        wait = f"; {format_size(owed)} wait" if owed else ""
        yield f"metrics: {machine} cannot send to {url}{ago}: {told['error']}{wait}"
    yield from _lost(machine, told)


def _lost(machine: str, told: Mapping[str, Any]) -> Iterator[str]:
    url, dead, dropped = told.get("url"), read_count(told, "dead"), read_count(told, "dropped")
    if dead:
        yield f"metrics: {url} refused {dead:,} points of {machine}; `monkey doctor` tells where they are kept"
    if dropped:
        yield f"metrics: {machine} dropped {dropped:,} points for want of room; the store has them still"
