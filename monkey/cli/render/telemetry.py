"""What is wrong on the way to InfluxDB, as agents' heartbeats tell it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from monkey.cli.render.words import duration, one_line
from monkey.plan.sizes import size_text
from monkey.protocol.snapshot import AgentView


def telemetry_lines(agents: Sequence[AgentView]) -> list[str]:
    """Return a line for each agent that cannot send, and for what was refused or dropped."""
    return [
        one_line(line)
        for agent in agents
        if agent.alive
        for told in _told(agent)
        for line in _lines(agent.id.split("/")[1], told)
    ]


def _told(agent: AgentView) -> Iterator[Mapping[str, Any]]:
    told = agent.vitals.get("metrics")
    yield from (one for one in told if isinstance(one, dict)) if isinstance(told, list) else ()


def _lines(machine: str, told: Mapping[str, Any]) -> Iterator[str]:
    url, owed, dead, dropped = told.get("url"), _count(told, "owed"), _count(told, "dead"), _count(told, "dropped")
    if told.get("error"):
        since = _count(told, "since")
        ago = f" for {duration(max(time.time() - since, 0))}" if since else ""
        wait = f"; {size_text(owed)} wait" if owed else ""
        yield f"metrics: {machine} cannot send to {url}{ago}: {told['error']}{wait}"
    if dead:
        yield f"metrics: {url} refused {dead:,} points of {machine}; `monkey doctor` tells where they are kept"
    if dropped:
        yield f"metrics: {machine} dropped {dropped:,} points for want of room; the store has them still"


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    return int(value) if isinstance(value, int | float) else 0
