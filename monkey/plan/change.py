"""The plan: what an apply would change, and why; of `compute_plan`, shown by `text.lines`, saved by `saved_plan`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from monkey.plan.adoption.adopted_jobs import AdoptedJobs
from monkey.plan.commits.place import Refusal
from monkey.plan.cost import FleetCost, MachineChange, may_raise_rent
from monkey.plan.desired import DesiredSweep, UploadSize
from monkey.plan.gone_sweeps import GoneSweep
from monkey.plan.jobs.job_changes import JobChanges, SettingChange
from monkey.plan.observed import ObservedSweep
from monkey.spec.job.recipe import JobResources


@dataclass(frozen=True)
class SweepPlan:
    """The plan of one sweep: what an apply would change in it."""

    desired: DesiredSweep
    #: None for a sweep that was never applied.
    observed: ObservedSweep | None
    jobs: JobChanges
    settings: tuple[SettingChange, ...] = ()
    #: Bytes and objects that are not in the store yet, code and datasets together.
    upload: UploadSize = field(default_factory=UploadSize)
    #: Job of the desired table to the finished job whose result it takes, by this plan or an earlier one.
    adopted: Mapping[str, str] = field(default_factory=dict)
    #: Those of them that the newest revision does not have yet, by reason.
    adoptions: tuple[AdoptedJobs, ...] = ()
    #: Jobs that lose an adopted result by this plan, and are run, unless they have failed before.
    dropped: AbstractSet[str] = frozenset()
    #: Facts that are no change, but should be known before an apply.
    notes: tuple[str, ...] = ()
    #: Name of a dataset to the bytes and objects of it that are not in the store yet.
    datasets: Mapping[str, UploadSize] = field(default_factory=dict)
    #: Why an apply leaves the sweep as it is, whatever else the plan says of it.
    refusal: Refusal | None = None
    #: Why it is changed though it would have been refused; "" for most.
    forced: str = ""

    @property
    def name(self) -> str:
        """Return the sweep's name."""
        return self.desired.name

    @property
    def head(self) -> int:
        """Return the number of the last entry of the sweep's log that the plan knows; 0 for none."""
        return self.observed.head if self.observed else 0

    @property
    def changed_at(self) -> int:
        """Return the number of the last of them that changed anything; 0 for none."""
        return self.observed.changed_at if self.observed else 0

    @property
    def first(self) -> bool:
        """Return whether the sweep was never applied."""
        return self.observed is None or self.observed.applied is None

    @property
    def revises(self) -> bool:
        """Return whether an apply appends a revision."""
        jobs = self.jobs
        if self.refusal is not None:
            return False
        asked = jobs.new or jobs.stale or jobs.removed or jobs.elsewhere or jobs.failed
        seen, adopts = self.observed, jobs.kept_states.get("adopted")
        return self.first or bool(asked or adopts or self.settings or (seen and (seen.foreign or seen.pruned)))

    @property
    def unmarked(self) -> tuple[str, ...]:
        """Return the fleets that have work of this sweep and no marker in their queue: an apply was interrupted."""
        held = self.revises or self.refusal is not None
        return () if held or self.observed is None else self.observed.unmarked

    @property
    def changes(self) -> bool:
        """Return whether there is anything to apply."""
        return self.revises or bool(self.unmarked) or self.upload.objects > 0

    @property
    def active(self) -> bool:
        """Return whether its jobs may run once the plan is applied: a new revision ends a cancellation, not a pause."""
        if self.observed is None:
            return True
        return not self.observed.paused and (self.revises or self.observed.active)

    def expires(self, now: float) -> float | None:
        """Return when the sweep expires if applied at `now`, both in seconds since the epoch; None for never."""
        if not self.revises:
            return self.observed.expires if self.observed else None
        asked = self.desired.settings.expires
        return asked.until(now) if asked else None

    @property
    def released(self) -> int:
        """Return the number of running jobs that an apply stops, as they are removed or replaced."""
        stopped = self.jobs.removed_states.get("running", 0) + self.jobs.replaced_states.get("running", 0)
        return 0 if self.refusal else stopped

    @property
    def redone(self) -> int:
        """Return the number of succeeded jobs that would run again in another form."""
        return 0 if self.refusal else self.jobs.replaced_states.get("succeeded", 0)


@dataclass(frozen=True)
class FleetPlan:
    """The plan of one fleet: its work, and the changes of its machines."""

    fleet: str
    #: Number of unfinished jobs of all its sweeps.
    jobs: int
    #: Number of living agents; None in a plan without the store.
    agents: int | None
    type: str = ""
    #: Number of machines now, and after an apply; None where the fleet was not asked.
    before: int | None = None
    after: int | None = None
    #: The inputs that its machines are made from; a saved plan is bound to them.
    inputs: Mapping[str, Any] = field(default_factory=dict)
    #: The changes of single machines, where the fleet knows them apart.
    machines: tuple[MachineChange, ...] = ()
    #: Facts that are no change, but should be known before an apply.
    notes: tuple[str, ...] = ()
    #: Names of the secrets that these jobs get: of sweeps of the plan, and of other sweeps.
    secrets: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    #: When the last of the sweeps outside the plan expires, seconds since the epoch; None: never, or no such work.
    expires: float | None = None
    #: The same for sweeps outside the plan that have no jobs left.
    through: float | None = None
    #: The resources that these jobs ask for, each with the number of such jobs.
    asked: tuple[tuple[JobResources, int], ...] = ()
    #: The same by the image that the jobs need, NAME@sha256:…; "" for none.
    images: Mapping[str, tuple[tuple[JobResources, int], ...]] = field(default_factory=dict)
    #: Seconds that these jobs may run, None among them where some have no limit; and may take to end, the longest.
    timeouts: frozenset[float | None] = frozenset()
    grace: float = 10.0
    #: The worst-case cost of its machines, where they are rented.
    cost: FleetCost | None = None
    #: Whether no spec asks for its machines any more, and it has none: an apply removes the rest.
    unwanted: bool = False

    @property
    def rents(self) -> bool:
        """See `may_raise_rent`; without a look at the store, all machines would be new."""
        made = any(each.adds for each in self.machines)
        rents = may_raise_rent(self.cost, self.before or 0, self.after or 0, made=made)
        return rents or (self.agents is None and self.cost is not None)

    @property
    def changes(self) -> bool:
        """Return whether machines change; for a fleet that was not asked, whether jobs wait and no agent lives."""
        if self.after is None:
            return self.jobs > 0 and self.agents == 0
        return self.before != self.after or bool(self.machines)


@dataclass(frozen=True)
class Plan:
    """The whole plan: all that an apply would change."""

    sweeps: tuple[SweepPlan, ...]
    fleets: tuple[FleetPlan, ...] = ()
    #: The identity of the store, and the project's name in it.
    store: str = ""
    project: str = ""
    #: When the store was read, seconds since the epoch.
    at: float = 0.0
    #: Facts that should be known before an apply, and belong to none of these sweeps and fleets.
    warnings: tuple[str, ...] = ()
    #: The arguments of `--keep-stale`.
    keep_stale: tuple[str, ...] = ()
    #: Sweeps of the store that have no spec any more.
    gone: tuple[GoneSweep, ...] = ()
    #: Previews that are cancelled, as their pull request no longer changes these sweeps; and previews that continue, as
    #: theirs is open again.
    ended: tuple[str, ...] = ()
    continued: tuple[str, ...] = ()

    def expires(self, fleet: FleetPlan, now: float) -> float | None:
        """Return when the last of a fleet's sweeps with unfinished jobs expires, if the plan is applied at `now`.

        Both times are in seconds since the epoch; None for never.
        """
        ends = [sweep.expires(now) for sweep in self._active(fleet) if sweep.jobs.unfinished]
        return max((end for end in [*ends, fleet.expires] if end is not None), default=None)

    def through(self, fleet: FleetPlan, now: float) -> float | None:
        """Return the same time for the fleet's sweeps that have no jobs left, and that the plan does not revise."""
        done = [sweep for sweep in self._active(fleet) if not sweep.jobs.unfinished and not sweep.revises]
        ends = [sweep.expires(now) for sweep in done]
        return max((end for end in [*ends, fleet.through] if end is not None), default=None)

    def _active(self, fleet: FleetPlan) -> list[SweepPlan]:
        return [each for each in self.accepted if each.active and fleet.fleet in each.desired.settings.providers]

    @property
    def accepted(self) -> tuple[SweepPlan, ...]:
        """Return the sweeps that an apply does not refuse."""
        return tuple(sweep for sweep in self.sweeps if sweep.refusal is None)

    @property
    def observed(self) -> bool:
        """Return whether the plan was compared with a store."""
        return not any(sweep.jobs.unknown for sweep in self.sweeps)

    @property
    def changes(self) -> bool:
        """Return whether there is anything to apply."""
        changes = any(sweep.changes for sweep in self.sweeps) or any(fleet.changes for fleet in self.fleets)
        return changes or any(gone.pruned for gone in self.gone) or bool(self.ended or self.continued)

    @property
    def released(self) -> int:
        """Return the number of running jobs that an apply would stop, as they are removed, replaced or pruned."""
        return sum(sweep.released for sweep in self.sweeps) + sum(gone.running for gone in self.gone if gone.pruned)

    @property
    def uprooted(self) -> int:
        """Return the number of running jobs that an apply would stop by changes of their machines."""
        return sum(change.stops for fleet in self.fleets for change in fleet.machines)

    @property
    def rented(self) -> tuple[FleetPlan, ...]:
        """Return the fleets that add rental cost; see `may_raise_rent`."""
        return tuple(fleet for fleet in self.fleets if fleet.rents)

    @property
    def unwanted(self) -> tuple[FleetPlan, ...]:
        """Return the fleets of which an apply removes what is left."""
        return tuple(fleet for fleet in self.fleets if fleet.unwanted)

    @property
    def redone(self) -> int:
        """Return the number of succeeded jobs that would run again in another form."""
        return sum(sweep.redone for sweep in self.sweeps)

    def with_fleets(self, fleets: Iterable[FleetPlan]) -> Plan:
        """Return the plan with these fleets, which know their machines themselves."""
        return replace(self, fleets=tuple(fleets))
