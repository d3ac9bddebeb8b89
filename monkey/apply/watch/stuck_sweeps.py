"""Waiting that can have no end: jobs that ask for more than any machine at work has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from monkey.apply.inspect.departed_machines import read_unfit
from monkey.errors import FleetError
from monkey.protocol.status.store_snapshot import AgentView, JobState, StoreSnapshot

if TYPE_CHECKING:
    from monkey.apply.watch.sweep_progress import SweepProgress

#: Seconds, and heartbeats of every agent, over which nothing must have been able to run: an agent's word may be of the
#: revision before.
LONG_ENOUGH, BEATS = 3.0, 2


class StuckSweeps:
    """Looks whether anything of the sweeps can ever run, as machines are."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._since = 0.0
        #: Agents that can do nothing for us, with the heartbeat that said so first.
        self._first: dict[str, int] = {}

    def look(self, snapshot: StoreSnapshot, working: Sequence[SweepProgress], now: float) -> None:
        """Take in one look at the sweeps that have work left. Raises FleetError where nothing could run for long."""
        agents = _useless(snapshot, working)
        if not agents or self._first.keys() != {agent.id for agent in agents}:
            self._since, self._first = now, {agent.id: agent.seq for agent in agents}
            return
        if now - self._since >= LONG_ENOUGH and all(agent.seq >= self._first[agent.id] + BEATS for agent in agents):
            why = "; ".join(dict.fromkeys(agent.alert for agent in agents if agent.alert))
            raise FleetError(
                f"nothing can go on: {why}",
                hint="ask for less with `resources:` in the spec and apply again; or start an agent on a machine that "
                "has what is missing: the sweep stays queued",
            )


def _useless(snapshot: StoreSnapshot, working: Sequence[SweepProgress]) -> list[AgentView]:
    """Return the agents of these sweeps, if not one of them can do anything for any of the sweeps."""
    found: dict[str, AgentView] = {}
    for one in working:
        revision = one.view.state.revision
        agents = [agent for fleet in revision.settings.providers for agent in snapshot.alive(fleet)] if revision else []
        at_work = one.counts.get(JobState.RUNNING) or one.counts.get(JobState.FROZEN)
        if at_work or not agents or any(one.name not in read_unfit(agent) for agent in agents):
            return []
        found |= {agent.id: agent for agent in agents}
    return list(found.values())
