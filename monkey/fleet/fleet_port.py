"""The port that every fleet implements: the machines of one provider entry, and the agents on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from monkey.plan.change import MachineChange, adds_rental_cost
from monkey.plan.cost import FleetCost
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


#: Counts the work anew, as a fleet is about to be made.
Recount = Callable[[], Awaitable[FleetWork]]


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
        """See `adds_rental_cost`."""
        return adds_rental_cost(self.cost, self.before, self.after, self.changes)


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
    """A machine that a fleet made, by what is written down: nobody was asked."""

    #: As monkey.yaml names it.
    machine: str
    #: The names that agents on it give themselves in heartbeats.
    agents: tuple[str, ...]
    #: How it is kept alive, and the like: one phrase.
    about: str = ""
    #: Do agents run on it? Not on what machines come out of.
    runs: bool = True


@dataclass(frozen=True)
class AuditFinding:
    """Something that is not as we know it to be."""

    machine: str
    text: str
    hint: str


#: Is called with what was done, in words.
Say = Callable[[str], None]


def keep_silent(said: object) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class OutdatedAgent:
    """A living agent that was started with something else than we would start it with now."""

    #: As its heartbeats name it: "fleet/agent/boot".
    agent: str
    #: Names of the variables (or "the Python", "the version of monkey") that differ; never what they hold.
    differs: tuple[str, ...]


class Fleet(Protocol):
    """The machines of one provider. Every method may raise FleetError, unless it says otherwise."""

    #: The provider's name in monkey.yaml, and its type.
    name: str
    type: str
    #: By the last `check`: what `converge` asked for is there, and no more is to be learnt of it for minutes.
    booting: bool
    #: Machines that are paid for may have been made or taken away by it.
    touched: bool

    def prepare(self) -> None:
        """Begin now what makes `converge` quick, where that can be undone by `close`; never fails."""

    def close(self) -> None:
        """Give back what `prepare` began and `converge` did not need."""

    async def living(self) -> int | None:
        """Say how many of its agents live; None where that is only to be had from their heartbeats."""

    async def preview(self, work: FleetWork) -> FleetForecast:
        """Return what `converge` would do. What hinders only some of its machines is told with them."""

    async def converge(self, work: FleetWork, say: Say, recount: Recount | None = None) -> None:
        """Make it so; what concerns only some of its machines is said, and does not hinder the others.

        `recount` counts the work again, where somebody else changed the machines meanwhile. Returns as soon as
        the machines are asked for; `check` says what became of them.
        """

    def shortage(self, asked: JobResources) -> str:
        """Say of what one of its machines has less than a job asks for; "" where it has enough or nobody knows."""

    def check_secrets(self, names: Sequence[str]) -> None:
        """Raise FleetError where its machines would not know a secret; asks nobody but this machine."""

    async def examine(self) -> str:
        """Ask, as `preview` does, whether machines could be rented as monkey.yaml says; "" where none are.

        Changes nothing. Raises FleetError, StoreError.
        """

    async def check(self) -> bool:
        """Say whether something that can do work is there or on its way.

        Raises FleetError, with its last words, where what `converge` started could not even begin.
        """

    async def strange(self) -> OutdatedAgent | None:
        """Return the living agent whose jobs would get another environment than those of one started by us; or None."""

    def last_words(self) -> str:
        """Return what its agents said last, as indented lines, where that is to be had."""

    async def instances(self) -> tuple[Instance, ...]:
        """Return the machines that there are, as they are written down; asks none of them."""

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """Ask the machines themselves, and return what is there and should not be, or not there and should.

        `busy`: there is work, so that every machine should have an agent alive.
        """

    async def holdings(self) -> tuple[TaggedResource, ...]:
        """Ask the cloud what it has that is tagged as this fleet's, or as another's of the project; () for none."""

    async def destroy(self, say: Say) -> None:
        """Take everything away that `converge` ever made; its work is released, and goes on elsewhere."""
