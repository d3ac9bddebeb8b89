"""The port that a cloud implements for rented fleets; `cloud_fleet` has the part that all clouds share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding, FleetWork, TaggedResource
from monkey.plan.cost import MachineChange
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud.cloud_descriptions import CloudFleetPlan
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import Identify, ResourceChange, StateResource
from monkey_stacks.state.state_rules import StateRules

Known = Sequence[StateResource]


class CloudRequirements(Protocol):
    """The requirements of a fleet: its resources, its types of machines, and the agent's code."""

    @property
    def wanted(self) -> CloudFleetPlan:
        """Return the inputs of the fleet's resources."""

    @property
    def types(self) -> tuple[MachineType, ...]:
        """Return the capacities of its types of machines."""

    @property
    def bundle(self) -> Bundle:
        """Return the agent's code for its machines."""


class CloudApi(Protocol):
    """One fleet's resources at its cloud. Every method blocks until the cloud answers, and may raise FleetError."""

    #: The provider's type; the cloud's name for people, and its word for a group.
    type: ClassVar[str]
    called: ClassVar[str]
    group_word: ClassVar[str]
    #: For monkey.yaml: the key of machines' types, and the form of a secret's place.
    type_key: ClassVar[str]
    secret_form: ClassVar[tuple[str, str]]
    #: What the state of its fleets may have.
    rules: ClassVar[StateRules]

    @property
    def pinned(self) -> Mapping[str, str]:
        """Return the settings of Pulumi's provider that say where the fleet is."""

    def find_group(self) -> MachineGroup | None:
        """Return the group; None where there is none."""

    def read_machine_types(self) -> tuple[MachineType, ...]:
        """Return the capacities of the fleet's types of machines."""

    def find_requirements(self, known: Known, work: FleetWork, signers: str) -> CloudRequirements:
        """Return the fleet's requirements for this work; `signers`: the list of those that machines are to obey."""

    def make_program(self, asked: Any) -> Callable[[], None]:
        """Return Pulumi's program for the requirements `asked`."""

    def read_credentials(self) -> Mapping[str, str]:
        """Return the environment variables that make Pulumi the same cloud user as we are."""

    def find_orphans(self, known: Known) -> tuple[Identify, list[str]]:
        """Return the function that identifies resources of an interrupted apply, and the names of orphans."""

    def end_machines(self, plan: ScalingPlan, asked: Any, known: Known, say: Say) -> None:
        """End the machines that are outdated or too many."""

    def clear_orphans(self, known: Known, say: Say) -> Identify:
        """Remove the orphans; return the function that identifies resources of an interrupted apply."""

    def apply_size(self, plan: ScalingPlan, asked: Any, work: FleetWork, say: Say) -> None:
        """Set the time at which the group's machines end, then the group's size."""

    def check_place(self, known: Known) -> None:
        """Raise FleetError where the recorded fleet is elsewhere than monkey.yaml says, without asking the cloud."""

    def check_ownership(self, recorded: Known) -> None:
        """Raise FleetError where a recorded resource exists, and is not the fleet's own by the cloud's word."""

    def end_loose_machines(self, say: Say) -> None:
        """End the machines that belong to no group."""

    def remove_rest(self, say: Say) -> None:
        """Remove the resources that are left after all recorded ones were destroyed."""

    def explain_trouble(self) -> tuple[str, bool]:
        """Return why the group gets no machines, and whether that may pass; "" where it gets some."""

    def audit_stack(self, known: Known, heard: Mapping[str, int] | None) -> tuple[AuditFinding, ...]:
        """Return each difference from the record; `heard`: living agent to its jobs, if machines should have agents."""

    def list_resources(self) -> tuple[TaggedResource, ...]:
        """Return all resources with the fleet's tags, or with another's of the project."""

    def describe_creation(self, asked: Any) -> MachineChange:
        """Describe the creation of the whole fleet."""

    def describe_change(self, change: ResourceChange) -> MachineChange:
        """Describe a change that Pulumi plans."""

    def describe_postponement(self, there: MachineGroup | None, work: FleetWork) -> list[MachineChange]:
        """Describe a change of the time at which machines end, where no resource's change shows it."""

    def describe_emptying(self, there: MachineGroup) -> str:
        """Describe when the group's machines end."""

    def recall_bounds(self, known: Known) -> RentalBounds:
        """Return the bounds that the recorded state sets to the fleet's machines."""

    def translate_error(self, text: str) -> FleetError | None:
        """Return the error for the cloud's message; None for an unknown one."""
