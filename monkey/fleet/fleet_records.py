"""What fleets are asked and answer: work, forecasts, machines, resources, findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from monkey.plan.cost import FleetCost, MachineChange, may_raise_rent
from monkey.spec.job.recipe import JobResources


@dataclass(frozen=True)
class FleetWork:
    """What a fleet has to do: that of all its sweeps."""

    #: Unfinished jobs.
    jobs: int
    #: Names of the secrets of sweeps that are at hand: their values must be known here.
    secrets: frozenset[str] = frozenset()
    #: Names of those of other sweeps: where their values are not known here, machines keep the ones they have.
    others: frozenset[str] = frozenset()
    #: When the last of its sweeps expires, seconds since the epoch, UTC; None where none of them has `expires`, or
    #: there is no work. A plan's is the clock's and `expires` of a revision that is yet to be: never an input of it.
    expires: float | None = None
    #: What jobs ask for, each with the number of jobs that do.
    asked: tuple[tuple[JobResources, int], ...] = ()
    #: When the last of its sweeps expires that are through with their jobs, where that is known: machines that there
    #: are may stay rented until then.
    through: float | None = None
    #: Seconds that jobs may run, None among them where some have no limit; and may take to end, the longest.
    timeouts: frozenset[float | None] = frozenset()
    grace: float = 10.0
    #: `asked` by the image that the jobs need, NAME@sha256:…; "" for none.
    images: Mapping[str, tuple[tuple[JobResources, int], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class FleetForecast:
    """What `converge` would make of a fleet."""

    #: Machines, now and then.
    before: int
    after: int
    #: Machine by machine, where they are known apart; those that stay as they are left out.
    changes: tuple[MachineChange, ...] = ()
    #: What should be known before.
    notes: tuple[str, ...] = ()
    #: What its machines are made from, as JSON: a saved plan is bound to it.
    inputs: Mapping[str, Any] = field(default_factory=dict)
    #: What its machines may cost, where they are rented and there is work.
    cost: FleetCost | None = None

    @property
    def rents(self) -> bool:
        """See `may_raise_rent`."""
        return may_raise_rent(self.cost, self.before, self.after, made=any(each.adds for each in self.changes))


@dataclass(frozen=True)
class ForeignResource:
    """Whose something is that is tagged as our project's, and not as the fleet's that found it."""

    #: As its tags have them; "" where they say nothing.
    provider: str
    stack: str
    #: What is known of it, and what to do: "of another store, or of one that is gone".
    text: str
    hint: str


@dataclass(frozen=True)
class TaggedResource:
    """Something that a cloud has of ours, by what it is tagged with, whether or not it is written down here."""

    region: str
    #: "instance g5.xlarge", "auto scaling group": as its cloud calls it.
    kind: str
    #: As its cloud names it.
    id: str
    #: USD an hour; 0 for what costs nothing by being there, None where nobody knows.
    price: float | None = 0.0
    #: None for the fleet's own.
    of: ForeignResource | None = None


@dataclass(frozen=True)
class Instance:
    """A machine that a fleet made, from the records, without asking it."""

    #: As monkey.yaml names it.
    machine: str
    #: The names that agents on it give themselves in heartbeats.
    agents: tuple[str, ...]
    #: How it is kept alive, and the like: one phrase.
    about: str = ""
    #: Do agents run on it? Not on what machines come out of.
    runs: bool = True
    #: It could not begin to work; `about` says why.
    failed: bool = False


@dataclass(frozen=True)
class AuditFinding:
    """Something that is not as we know it to be."""

    machine: str
    text: str
    hint: str


@dataclass(frozen=True)
class OutdatedAgent:
    """A living agent that was started with something else than we would start it with now."""

    #: As its heartbeats name it: "fleet/agent/boot".
    agent: str
    #: Names of the variables (or "the Python", "the version of monkey") that differ; never what they hold.
    differs: tuple[str, ...]
    #: Keys of its provider in monkey.yaml that differ.
    settings: tuple[str, ...] = ()
