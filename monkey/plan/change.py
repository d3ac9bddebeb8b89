"""The plan: what applying would change, and why. Values; made by `diff`, shown by `lines`, saved by `document`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from monkey.plan.cost import FleetCost
from monkey.plan.desired import DesiredSweep, UploadSize
from monkey.plan.observed import ObservedSweep
from monkey.spec.job.recipe import JobResources


class StaleReason(NamedTuple):
    """Why jobs are stale: a kind ("code", "env", "parameter", …) and a sentence ("code changed: train.py")."""

    kind: str
    text: str


class SettingChange(NamedTuple):
    """A setting that changes; no job becomes stale by it."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class StaleJobs:
    """Jobs that are stale for the same reasons."""

    reasons: tuple[StaleReason, ...]
    #: Rows of the desired table.
    rows: Sequence[int]
    #: For each of them the row of the applied table that it takes the place of.
    before: Sequence[int]

    @property
    def why(self) -> str:
        """The reasons as one sentence."""
        return "; ".join(reason.text for reason in self.reasons)


@dataclass(frozen=True)
class JobChanges:
    """The jobs of a sweep, each in one of four lots; rows are of the desired table, `removed` of the applied one."""

    new: Sequence[int] = ()
    stale: tuple[StaleJobs, ...] = ()
    kept: Sequence[int] = ()
    removed: Sequence[int] = ()
    #: How far those are that are kept: succeeded, failed, stopped, running, queued, adopted (by this plan).
    kept_states: Mapping[str, int] = field(default_factory=dict)
    #: What becomes of old jobs, removed or replaced: how many were queued, running, succeeded, failed.
    removed_states: Mapping[str, int] = field(default_factory=dict)
    replaced_states: Mapping[str, int] = field(default_factory=dict)
    #: Where kept jobs come from that the newest revision did not have: sweep ("" for none of now) to their number.
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many are new, stale, kept, removed."""
        stale = sum(len(group.rows) for group in self.stale)
        return {"new": len(self.new), "stale": stale, "kept": len(self.kept), "removed": len(self.removed)}

    @property
    def unfinished(self) -> int:
        """How many are left to be run once the plan is applied."""
        states = self.kept_states
        return len(self.new) + self.counts["stale"] + states.get("queued", 0) + states.get("running", 0)


@dataclass(frozen=True)
class SweepPlan:
    """What applying would change in one sweep."""

    desired: DesiredSweep
    #: None for a sweep that was never applied.
    observed: ObservedSweep | None
    jobs: JobChanges
    settings: tuple[SettingChange, ...] = ()
    #: What is not in the store yet, code and datasets together.
    upload: UploadSize = field(default_factory=UploadSize)
    #: Job of the desired table to the finished job whose result it takes, carried over or by this plan.
    adopted: Mapping[str, str] = field(default_factory=dict)
    #: Kinds of reasons for which results are kept (`--keep-stale`), where they adopt any.
    keeping: tuple[str, ...] = ()
    #: What is not a change, but should be known before applying.
    notes: tuple[str, ...] = ()
    #: Name of a dataset to what of it is not in the store yet.
    datasets: Mapping[str, UploadSize] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The sweep's name."""
        return self.desired.name

    @property
    def head(self) -> int:
        """The last entry of the sweep's log that the plan knows of; 0 for none."""
        return self.observed.head if self.observed else 0

    @property
    def first(self) -> bool:
        """Was the sweep never applied?"""
        return self.observed is None or self.observed.applied is None

    @property
    def revises(self) -> bool:
        """Must a revision be appended?"""
        counts = self.jobs.counts
        asked = counts["new"] or counts["stale"] or counts["removed"] or self.jobs.elsewhere
        return self.first or bool(asked or self.settings or self.jobs.kept_states.get("adopted"))

    @property
    def unmarked(self) -> tuple[str, ...]:
        """Fleets that an apply which was cut short did not tell of their work."""
        return () if self.revises or self.observed is None else self.observed.unmarked

    @property
    def changes(self) -> bool:
        """Is there anything to apply?"""
        return self.revises or bool(self.unmarked) or self.upload.objects > 0

    @property
    def active(self) -> bool:
        """May its jobs run once the plan is applied? (A new revision ends a cancellation, not a pause.)"""
        if self.observed is None:
            return True
        return not self.observed.paused and (self.revises or self.observed.active)

    def expires(self, now: float) -> float | None:
        """Return when it expires if the plan is applied at `now`, both in seconds since the epoch; None for never."""
        if not self.revises:
            return self.observed.expires if self.observed else None
        asked = self.desired.settings.expires
        return asked.until(now) if asked else None

    @property
    def released(self) -> int:
        """How many unwanted jobs run: applying stops them."""
        return self.jobs.removed_states.get("running", 0) + self.jobs.replaced_states.get("running", 0)

    @property
    def redone(self) -> int:
        """How many jobs are finished, and would be run again in another form."""
        return self.jobs.replaced_states.get("succeeded", 0)


@dataclass(frozen=True)
class MachineChange:
    """What becomes of one machine."""

    #: "create", "update", "replace" or "delete".
    op: str
    #: As monkey.yaml names it.
    machine: str
    #: What there is to know of it: why it changes, or how it is going to be.
    why: str = ""
    #: Why it cannot be looked at, or changed, now; applying tries again.
    trouble: str = ""
    #: Jobs that run there now, and that the change stops: they are queued again.
    stops: int = 0
    #: Is it what machines come out of, or a part of that, and no machine itself?
    part: bool = False

    @property
    def ends(self) -> bool:
        """Is what runs there stopped?"""
        return self.op in ("delete", "replace") and not self.trouble


def adds_rental_cost(cost: FleetCost | None, before: int, after: int, machines: Iterable[MachineChange]) -> bool:
    """Are machines made that are paid for, kept for longer, or allowed to be dearer?"""
    if cost is None or not after:
        return False
    made = any(each.op in ("create", "replace") and not each.part and not each.trouble for each in machines)
    return made or cost.longer or cost.dearer or after > before


@dataclass(frozen=True)
class FleetPlan:
    """What a fleet has to do, and what becomes of its machines."""

    fleet: str
    #: Unfinished jobs of all its sweeps.
    jobs: int
    #: Agents alive.
    agents: int
    type: str = ""
    #: Machines now and then; None where the fleet was not asked.
    before: int | None = None
    after: int | None = None
    #: What its machines are made from; a saved plan is bound to it.
    inputs: Mapping[str, Any] = field(default_factory=dict)
    #: Machine by machine, where the fleet knows them apart.
    machines: tuple[MachineChange, ...] = ()
    #: What is not a change, but should be known before applying.
    notes: tuple[str, ...] = ()
    #: Names of the secrets that these jobs are given: of sweeps of the plan, and of others.
    secrets: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    #: When the last of other sweeps than the plan's expires, seconds since the epoch; None for never, or no such work.
    expires: float | None = None
    #: The same of those that are through with their jobs.
    through: float | None = None
    #: What these jobs ask for, each with the number of jobs that do.
    asked: tuple[tuple[JobResources, int], ...] = ()
    #: What its machines may cost, where they are rented.
    cost: FleetCost | None = None

    @property
    def rents(self) -> bool:
        """See `adds_rental_cost`."""
        return adds_rental_cost(self.cost, self.before or 0, self.after or 0, self.machines)

    @property
    def changes(self) -> bool:
        """Are machines made, changed or given back, or is there work and nobody to do it?"""
        if self.after is None:
            return self.jobs > 0 and self.agents == 0
        return self.before != self.after or bool(self.machines)


@dataclass(frozen=True)
class Plan:
    """All that applying would change."""

    sweeps: tuple[SweepPlan, ...]
    fleets: tuple[FleetPlan, ...] = ()
    #: The store that was looked at.
    store: str = ""
    #: When that was, seconds since the epoch.
    at: float = 0.0
    #: What should be known before applying, and is of none of these sweeps and fleets.
    warnings: tuple[str, ...] = ()

    def expires(self, fleet: FleetPlan, now: float) -> float | None:
        """Return when the last of a fleet's sweeps expires if the plan is applied at `now`; None for never."""
        ends = [sweep.expires(now) for sweep in self._active(fleet) if sweep.jobs.unfinished]
        return max((end for end in [*ends, fleet.expires] if end is not None), default=None)

    def through(self, fleet: FleetPlan, now: float) -> float | None:
        """Return the same of its sweeps that are through with their jobs, and of which the plan changes nothing."""
        done = [sweep for sweep in self._active(fleet) if not sweep.jobs.unfinished and not sweep.revises]
        ends = [sweep.expires(now) for sweep in done]
        return max((end for end in [*ends, fleet.through] if end is not None), default=None)

    def _active(self, fleet: FleetPlan) -> list[SweepPlan]:
        return [each for each in self.sweeps if each.active and fleet.fleet in each.desired.settings.providers]

    @property
    def changes(self) -> bool:
        """Is there anything to apply?"""
        return any(sweep.changes for sweep in self.sweeps) or any(fleet.changes for fleet in self.fleets)

    @property
    def released(self) -> int:
        """How many running jobs applying would stop."""
        return sum(sweep.released for sweep in self.sweeps)

    @property
    def uprooted(self) -> int:
        """How many jobs run on machines that applying takes away."""
        return sum(change.stops for fleet in self.fleets for change in fleet.machines)

    @property
    def rented(self) -> tuple[FleetPlan, ...]:
        """The fleets that rent; see `adds_rental_cost`."""
        return tuple(fleet for fleet in self.fleets if fleet.rents)

    @property
    def redone(self) -> int:
        """How many finished jobs applying would run again."""
        return sum(sweep.redone for sweep in self.sweeps)

    def with_fleets(self, fleets: Iterable[FleetPlan]) -> Plan:
        """Return the plan with what the fleets themselves say of their machines."""
        return replace(self, fleets=tuple(fleets))
