"""Calls for fleets whose agents left with work undone; each fleet is given up by its own count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monkey.apply.watch.startup import start_again
from monkey.apply.watch.sweep_progress import SweepProgress, find_needed_fleets
from monkey.errors import FleetError
from monkey.fleet.fleet_port import Fleet
from monkey.protocol.status.store_snapshot import AgentView, SnapshotReader

#: Times that a fleet's agents may leave with work undone and nothing new finished by them before it is given up.
GIVE_UP_AFTER = 3


@dataclass
class _GivenUp:
    """A fleet that is called no more, until there is evidence that it works after all."""

    error: FleetError
    #: Agents that were heard of lately, and are no evidence: the fleet had lost them, or needs others beside them.
    known: frozenset[str]
    #: Jobs that its agents had ended, and those that all fleets had when that was counted.
    ended: int
    total: int


@dataclass
class FleetCalls:
    """How often each fleet was called again, and which were given up."""

    reader: SnapshotReader
    fleets: Mapping[str, Fleet]
    #: Fleet to the times that it was called again since one of its agents ended a job, and to the jobs ended there.
    _called: dict[str, int] = field(default_factory=dict)
    _ended: dict[str, int] = field(default_factory=dict)
    #: Agents of the last look that live.
    _alive: Sequence[AgentView] = ()
    #: Fleet to what its agents complained of last.
    _alerts: dict[str, str] = field(default_factory=dict)
    #: Fleet to why it was given up; other fleets may still do the work.
    _given_up: dict[str, _GivenUp] = field(default_factory=dict)

    def note_agents(self, agents: Sequence[AgentView]) -> None:
        """Remember which agents live, and what they complain of."""
        self._alive = [agent for agent in agents if agent.alive]
        self._alerts |= {agent.fleet: agent.alert for agent in agents if agent.alert}

    def explain_given_up(self, fleets: Sequence[str]) -> str:
        """Return why some of these fleets were given up; "" where none was."""
        return "; ".join(self._given_up[name].error.message for name in fleets if name in self._given_up)

    async def call_again(self, progress: Sequence[SweepProgress]) -> None:
        """Call the fleets again that unfinished sweeps need and that have no agent, unless that has proved useless.

        Raises FleetError where all of them were given up, StoreError.
        """
        needed = find_needed_fleets(self.fleets, progress)
        for fleet in needed:
            # That a fleet says it has workers is no evidence: a cloud says so between the times that it is asked.
            if fleet.name in self._given_up and not self._works_after_all(fleet.name, progress):
                continue
            self._given_up.pop(fleet.name, None)
            await self._keep(fleet, progress)
        if needed and all(fleet.name in self._given_up for fleet in needed):
            raise self._given_up[needed[0].name].error

    def _works_after_all(self, fleet: str, progress: Sequence[SweepProgress]) -> bool:
        """Say whether a fleet that was given up has a new agent, or ended jobs since."""
        given_up = self._given_up[fleet]
        if self._list_alive(fleet) - given_up.known:
            return True
        if (total := _count_all_ended(progress)) == given_up.total:
            return False  # counting by fleets looks at every job
        before, given_up.ended, given_up.total = given_up.ended, _count_ended(fleet, progress), total
        return given_up.ended > before

    async def _keep(self, fleet: Fleet, progress: Sequence[SweepProgress]) -> None:
        """Call a fleet again that has no agent; give it up where that is useless. Raises StoreError."""
        name = fleet.name
        try:
            if await fleet.has_workers():
                return
        except FleetError as exc:
            self._give_up(name, exc, frozenset(), progress)
            return
        ended = _count_ended(name, progress)
        called = self._called.get(name, 0) if ended == self._ended.get(name) else 0
        try:
            if called >= GIVE_UP_AFTER:
                raise self._useless(fleet)
            await start_again(self.reader, fleet)
        except FleetError as exc:
            self._give_up(name, exc, self._list_alive(name), progress)
        else:
            self._called[name], self._ended[name] = called + 1, ended

    def _give_up(self, fleet: str, why: FleetError, known: frozenset[str], progress: Sequence[SweepProgress]) -> None:
        self._given_up[fleet] = _GivenUp(why, known, _count_ended(fleet, progress), _count_all_ended(progress))

    def _list_alive(self, fleet: str) -> frozenset[str]:
        return frozenset(agent.id for agent in self._alive if agent.fleet == fleet)

    def _useless(self, fleet: Fleet) -> FleetError:
        why = self._alerts.get(fleet.name)
        said = why or f"it said last:\n{fleet.recent_log()}"
        return FleetError(
            f"the agent of {fleet.name!r} left {GIVE_UP_AFTER} times with work undone and nothing finished: {said}",
            hint="a machine that has more must run it, or the sweep must ask for less" if why else None,
        )


def _count_ended(fleet: str, progress: Sequence[SweepProgress]) -> int:
    """Return how many jobs are final by agents of the fleet; looks at every job."""
    return sum(one.view.count_ended(fleet) for one in progress)


def _count_all_ended(progress: Sequence[SweepProgress]) -> int:
    return sum(one.total - one.unfinished for one in progress)
