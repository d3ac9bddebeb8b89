"""The port that a cloud implements for fleets rented there; what all clouds share is `cloud_fleet`'s."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding, FleetWork, TaggedResource
from monkey.plan.change import MachineChange
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud.cloud_descriptions import CloudFleetPlan
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import Identify, ResourceChange, StateResource

Known = Sequence[StateResource]


class CloudRequirements(Protocol):
    """What a fleet is to be, what its types of machines have, and the agent's code for them."""

    @property
    def wanted(self) -> CloudFleetPlan:
        """What its resources are made from."""

    @property
    def types(self) -> tuple[MachineType, ...]:
        """What its machines have."""

    @property
    def bundle(self) -> Bundle:
        """The agent's code for them."""


class CloudApi(Protocol):
    """One fleet's resources at its cloud. Every method blocks while the cloud answers, and may raise FleetError."""

    #: The provider's type; the cloud as people call it, and what it calls a group.
    type: ClassVar[str]
    called: ClassVar[str]
    group_word: ClassVar[str]
    #: In monkey.yaml: the key of machines' types; how to say where a secret is.
    type_key: ClassVar[str]
    secret_form: ClassVar[tuple[str, str]]

    def find_group(self) -> MachineGroup | None:
        """Return the group; None where there is none."""

    def read_machine_types(self) -> tuple[MachineType, ...]:
        """Return what its types of machines have."""

    def find_requirements(self, known: Known, work: FleetWork) -> CloudRequirements:
        """Return what the fleet is to be."""

    def make_program(self, asked: Any) -> Callable[[], None]:
        """Return Pulumi's program of it."""

    def read_credentials(self) -> Mapping[str, str]:
        """Return the variables by which Pulumi is the same user as we are."""

    def find_orphans(self, known: Known) -> tuple[Identify, list[str]]:
        """Return what identifies resources of an interrupted apply, and the names of resources that nobody recorded."""

    def end_machines(self, plan: ScalingPlan, asked: Any, known: Known, say: Say) -> None:
        """End the machines that are outdated or too many."""

    def clear_orphans(self, known: Known, say: Say) -> Identify:
        """Remove the resources that no apply recorded; returns what identifies those of an interrupted apply."""

    def apply_size(self, plan: ScalingPlan, asked: Any, work: FleetWork, say: Say) -> None:
        """Set the group's size, once the time at which its machines end is set."""

    def check_place(self, known: Known) -> None:
        """Raise FleetError where the fleet is elsewhere than monkey.yaml says; asks no cloud."""

    def end_loose_machines(self, say: Say) -> None:
        """End the machines that no group counts."""

    def remove_rest(self, say: Say) -> None:
        """Remove the resources that are left after all recorded ones were destroyed."""

    def explain_trouble(self) -> tuple[str, bool]:
        """Return why the group gets no machines, and whether that may pass; "" where it gets some."""

    def audit_stack(self, known: Known, heard: Mapping[str, int] | None) -> tuple[AuditFinding, ...]:
        """Return each difference from the record; `heard`: jobs by living agent, where each should have one."""

    def list_resources(self) -> tuple[TaggedResource, ...]:
        """Return all resources with the fleet's tags, or with another's of the project."""

    def describe_creation(self, asked: Any) -> MachineChange:
        """Describe the creation of the whole fleet."""

    def describe_change(self, change: ResourceChange) -> MachineChange:
        """Describe a change of Pulumi's."""

    def describe_postponement(self, there: MachineGroup | None, work: FleetWork) -> list[MachineChange]:
        """Describe that machines end at another time, where no resource's change says so."""

    def describe_emptying(self, there: MachineGroup) -> str:
        """Describe when the group's machines end."""

    def recall_bounds(self, known: Known) -> RentalBounds:
        """Return what the state lets the fleet be."""

    def translate_error(self, text: str) -> FleetError | None:
        """Return the error for the cloud's message; None for an unknown one."""
