"""The port that every fleet implements: the machines of one provider entry, and the agents on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from monkey.spec.recipe import Resources


@dataclass(frozen=True)
class Machines:
    """What a fleet has, or is to have: how many machines with an agent, and of what kind."""

    fleet: str
    type: str
    count: int


@dataclass(frozen=True)
class Strange:
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

    def prepare(self) -> None:
        """Begin now what makes `converge` quick, where that can be undone by `close`; never fails."""

    def close(self) -> None:
        """Give back what `prepare` began and `converge` did not need."""

    async def observe(self) -> Machines:
        """Return what is there now."""

    def preview(self, seen: Machines, jobs: int) -> Machines:
        """Return what `converge` would make of it for so many unfinished jobs; asks nobody."""

    async def converge(self, machines: Machines) -> None:
        """Make it so. Returns as soon as the machines are asked for; `check` says what became of them."""

    def shortage(self, asked: Resources) -> str:
        """Say of what one of its machines has less than a job asks for; "" where it has enough or nobody knows."""

    def check_secrets(self, names: Sequence[str]) -> None:
        """Raise FleetError where its machines would not know a secret; asks nobody but this machine."""

    async def check(self) -> bool:
        """Say whether something that can do work is there or on its way.

        Raises FleetError, with its last words, where what `converge` started could not even begin.
        """

    async def strange(self) -> Strange | None:
        """Return the living agent whose jobs would get another environment than those of one started by us; or None."""

    def last_words(self) -> str:
        """Return what its agents said last, as indented lines, where that is to be had."""

    async def destroy(self) -> None:
        """Take everything away that `converge` ever made; its work is released, and goes on elsewhere."""
