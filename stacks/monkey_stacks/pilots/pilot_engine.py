"""The port that every engine of pilots implements: what it is asked, and what it answers. It may block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding
from monkey.store.content.upload_progress import Begin
from monkey.store.store_port import Store
from monkey_stacks.cloud.slot_capacity import MachineType

#: Digits of an image's digest that tell it from a fleet's other images.
_MARK_DIGITS = 8


@dataclass(frozen=True)
class Pilot:
    """A pilot, as its engine knows it."""

    #: As the engine names it.
    id: str
    #: "on n1, 1:04:43 left"; "waits: Priority".
    about: str
    #: The name of its agent; "" as long as it waits.
    agent: str = ""
    #: Why it would wait for ever, and what to do; "" for nothing that is known.
    stuck: str = ""
    hint: str = ""
    #: The mark of the image whose jobs alone it runs (`mark_image`); "" for a pilot of jobs without an image.
    image: str = ""


@dataclass(frozen=True)
class PilotFailure:
    """Why a pilot could not begin."""

    #: The pilot's name, as its engine has it.
    name: str
    why: str
    #: See `Pilot.image`.
    image: str = ""


@dataclass(frozen=True)
class EngineState:
    """What an engine has of one fleet."""

    pilots: tuple[Pilot, ...] = ()
    #: Those that could not begin, the newest last.
    failures: tuple[PilotFailure, ...] = ()
    #: Files, secrets or whatever else of the fleet lies there.
    remains: bool = False


@dataclass(frozen=True)
class PilotOffer:
    """What an engine says of one more pilot of each image, before it is asked for."""

    state: EngineState
    #: Notes of a plan: when it would start.
    notes: tuple[str, ...] = ()
    #: Why it would refuse it, by the images (NAME@sha256:…, "" for none) of those that it would refuse.
    troubles: Mapping[str, str] = field(default_factory=dict)
    #: What the pilots that are there work with, and should not: "signers".
    stale: tuple[str, ...] = ()


@dataclass(frozen=True)
class PilotRequest:
    """What pilots are to work with. What is secret is never shown, and never part of what engines record."""

    #: How many, by the image of their jobs (NAME@sha256:…); all under "" where each pilot runs all images.
    wanted: Mapping[str, int]
    #: Seconds that jobs may take to end after SIGTERM, the longest.
    grace: float
    signers: str = field(repr=False)
    #: Lines of the file of secrets by their names; and names whose values stay as the pilots have them.
    secrets: Mapping[str, str] = field(repr=False)
    kept: Sequence[str] = ()

    @property
    def total(self) -> int:
        """The number of pilots in all."""
        return sum(self.wanted.values())


def mark_image(image: str) -> str:
    """Return the mark of an image, NAME@sha256:…, for names of an engine's objects; "" for none."""
    return image.partition("@sha256:")[2][:_MARK_DIGITS]


class PilotEngine(Protocol):
    """An engine that starts pilots. Every method may block, and may raise FleetError."""

    @property
    def type(self) -> str:
        """The provider's type in monkey.yaml."""

    @property
    def where(self) -> str:
        """Where the engine is asked, as people name it: "login.hpc"."""

    @property
    def logs(self) -> str:
        """Where people find what pilots printed: a place, or a command."""

    @property
    def marker(self) -> Mapping[str, str]:
        """What to write down, so that another machine finds the pilots without monkey.yaml."""

    @property
    def bound(self) -> Mapping[str, Any]:
        """What a saved plan is bound to: what pilots are asked for with."""

    @property
    def most(self) -> int:
        """The number of pilots at most; with `runs_one_image`, of each image."""

    @property
    def runs_one_image(self) -> bool:
        """Whether a pilot runs inside of an image, and jobs of that image alone."""

    @property
    def shape(self) -> MachineType:
        """What one pilot has."""

    @property
    def time(self) -> float | None:
        """Seconds that one pilot has; None for no limit."""

    def describe_pilot(self, image: str = "") -> str:
        """Say what a pilot would be: "partition gpu, 8 CPUs, 4h". `image`: that of its jobs, where they have one."""

    def check_store(self) -> None:
        """Raise FleetError where pilots could not reach the store, as far as this machine knows."""

    def list_pilots(self) -> EngineState:
        """Ask what there is of the fleet."""

    def foresee(self, request: PilotRequest | None = None) -> PilotOffer:
        """Ask what there is, and what would become of one more pilot of each image; changes nothing.

        `request`: what pilots should work with; None to leave that out.
        """

    def submit(self, request: PilotRequest, say: Say) -> int:
        """Hand over what pilots need, and ask for those that are missing; return how many that were."""

    def audit(self, state: EngineState) -> Sequence[AuditFinding]:
        """Return what only this engine can find."""

    def remove(self, say: Say) -> None:
        """End all pilots, wait until they are gone, and remove what was handed over."""

    async def prepare(self, store: Store, say: Say, bars: Begin) -> None:
        """Put into the store what pilots fetch from it; `bars` counts the bytes."""
