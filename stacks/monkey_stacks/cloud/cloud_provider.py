"""What each cloud says for itself of a fleet of machines rented there; what is the same for all is `rented_fleet`'s."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar

from monkey.errors import FleetError
from monkey.fleet.fleet_port import AuditFinding, FleetWork, Say, TaggedResource
from monkey.plan.change import MachineChange
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud import cloud_descriptions as words
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import Identify, ResourceChange, StateResource

Known = Sequence[StateResource]

P = ParamSpec("P")
_T = TypeVar("_T")


class CloudRequirements(Protocol):
    """What a fleet is to be, what its types of machines have, and the agent's code for them."""

    @property
    def wanted(self) -> words.CloudFleetPlan:
        """What its resources are made from."""

    @property
    def types(self) -> tuple[MachineType, ...]:
        """What its machines have."""

    @property
    def bundle(self) -> Bundle:
        """The agent's code for them."""


@dataclass
class CloudApi(ABC):
    """Machines of a cloud, for one store and project. All of its methods ask the cloud, and may raise FleetError."""

    name: str
    provider: Provider
    project: str
    store_url: str
    opened: Callable[[], Store | None]
    type: str = ""
    booting: bool = False
    touched: bool = False
    #: Told of each step as Pulumi takes it.
    _say: Say | None = None
    _checked: float = float("-inf")
    _saying: threading.Lock = field(default_factory=threading.Lock)

    #: The cloud as people call it, and what it calls a group.
    called: ClassVar[str]
    group_word: ClassVar[str]
    #: In monkey.yaml: the key of machines' types; how to say where a secret is.
    type_key: ClassVar[str]
    secret_form: ClassVar[tuple[str, str]]

    async def _ask(self, what: Callable[P, _T], *args: P.args, **kwargs: P.kwargs) -> _T:
        """Return what the cloud is asked for; what it says against it names the provider."""
        with words.name_provider(self.name, self._cloud.region):
            return await asyncio.to_thread(what, *args, **kwargs)

    @abstractmethod
    def _look(self) -> MachineGroup | None:
        """Return the group; None where there is none."""

    @abstractmethod
    def _machines(self) -> tuple[MachineType, ...]:
        """Return what its types of machines have."""

    @abstractmethod
    def _needs(self, known: Known, work: FleetWork) -> CloudRequirements:
        """Return what the fleet is to be."""

    @abstractmethod
    def _program(self, asked: Any) -> Callable[[], None]:
        """Return the program of it."""

    @abstractmethod
    def _keys(self) -> Mapping[str, str]:
        """Return the variables by which Pulumi is who we are."""

    @abstractmethod
    def _lost(self, known: Known) -> tuple[Identify, list[str]]:
        """Return what finds again what was cut off; and, in words, what the cloud has that nobody wrote down."""

    @abstractmethod
    def _end(self, plan: ScalingPlan, asked: Any, known: Known, say: Say) -> None:
        """End what is outdated or too much."""

    @abstractmethod
    def _clear(self, known: Known, say: Say) -> Identify:
        """Take away what nobody wrote down, and return what finds again what was cut off."""

    @abstractmethod
    def _size(self, plan: ScalingPlan, asked: Any, work: FleetWork, say: Say) -> None:
        """Have the group be of as many machines as it is to have, once it is sure when they end."""

    @abstractmethod
    def _check_place(self, known: Known) -> None:
        """Raise FleetError where the fleet is elsewhere than monkey.yaml says; asks no cloud."""

    @abstractmethod
    def _remove_lone(self, say: Say) -> None:
        """Take away the machines that no group counts."""

    @abstractmethod
    def _remove_rest(self, say: Say) -> None:
        """Take away what is there though all that is known of was destroyed."""

    @abstractmethod
    def _trouble(self) -> tuple[str, bool]:
        """Return why the group gets no machines, and whether that may pass; "" where it gets some."""

    @abstractmethod
    def _audit(self, known: Known, heard: Mapping[str, int] | None) -> tuple[AuditFinding, ...]:
        """Return what is not as it is known; `heard`: living agents, where there is work for each."""

    @abstractmethod
    def _holdings(self) -> tuple[TaggedResource, ...]:
        """Return all that the cloud has of the fleet."""

    @abstractmethod
    def _creation(self, asked: Any) -> MachineChange:
        """Say what becomes of a fleet that has nothing yet."""

    @abstractmethod
    def _change(self, change: ResourceChange) -> MachineChange:
        """Say a change of Pulumi's."""

    @abstractmethod
    def _agreed(self, known: Known) -> RentalBounds:
        """Return what the state lets the fleet be."""

    @abstractmethod
    def _translate(self, text: str) -> FleetError | None:
        """Return the error for what the cloud said; None where nobody knows it."""

    def _postponed(self, there: MachineGroup | None, work: FleetWork) -> list[MachineChange]:
        """Say that machines end at another time, where no resource does."""
        return words.describe_postponement(there, work.expires)

    def _emptied(self, there: MachineGroup) -> str:
        """Say when a group's machines end."""
        return words.describe_emptying(there.expires)

    @property
    def _cloud(self) -> CloudSettings:
        assert self.provider.cloud is not None
        return self.provider.cloud
