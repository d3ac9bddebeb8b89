"""The fleet of machines rented at AWS: an auto scaling group, and the least around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Say
from monkey.fleet.fleet_records import AuditFinding, FleetWork, TaggedResource
from monkey.plan.cost import MachineChange
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.aws import descriptions as words
from monkey_stacks.aws import group_changes, machine_audit, requirements
from monkey_stacks.aws.api import catalog, errors, group, inventory, orphans, ownership
from monkey_stacks.aws.api.account import AwsAccount, open_account
from monkey_stacks.aws.api.naming import AwsStack, name_stack
from monkey_stacks.aws.requirements import AwsRequirements
from monkey_stacks.cloud.cloud_api import Known
from monkey_stacks.cloud.cloud_descriptions import describe_emptying, describe_postponement
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import Identify, ResourceChange
from monkey_stacks.state.state_rules import StateRules


def make_fleet(
    name: str,
    provider: Provider,
    project: str,
    store_url: str,
    opened: Callable[[], Store | None],
    signers: Callable[[], EntrySigners],
) -> CloudFleet:
    """Return the fleet of a provider; `opened` returns the store at `store_url`, once there is one.

    `signers` returns those that machines are to obey.
    """
    return CloudFleet(name, provider, project, opened, AwsApi(name, provider, project, store_url), signers)


@dataclass
class AwsApi:
    """The resources of one fleet at AWS; see `monkey_stacks.cloud.cloud_api.CloudApi`."""

    name: str
    provider: Provider
    project: str
    store_url: str
    _account: AwsAccount | None = None

    type: ClassVar[str] = "aws"
    called: ClassVar[str] = "AWS"
    group_word: ClassVar[str] = "auto scaling group"
    type_key: ClassVar[str] = "instance_type"
    rules: ClassVar[StateRules] = requirements.STATE_RULES
    secret_form: ClassVar[tuple[str, str]] = ("ssm:/PATH", "secretsmanager:NAME")

    @property
    def _at(self) -> AwsAccount:
        if self._account is None:
            self._account = open_account(self.provider.rented.region, self.store_url)
        return self._account

    @property
    def _stack(self) -> AwsStack:
        return name_stack(self.store_url, self.project, self.name)

    def find_group(self) -> MachineGroup | None:
        return group.find_group(self._at, self._stack)

    def read_machine_types(self) -> tuple[MachineType, ...]:
        return catalog.read_machine_types(self._at, self.provider.rented.types)

    def find_requirements(self, known: Known, work: FleetWork, signers: str) -> AwsRequirements:
        return requirements.find_requirements(self._at, self.provider, self._stack, self.store_url, known, signers)

    def make_program(self, asked: AwsRequirements) -> Callable[[], None]:
        from monkey_stacks.aws.program import make_program  # Pulumi's SDK: an extra, and a second to import

        return make_program(asked.wanted)

    def read_credentials(self) -> Mapping[str, str]:
        return self._at.keys()

    @property
    def pinned(self) -> Mapping[str, str]:
        return {"region": self.provider.rented.region}

    def find_orphans(self, known: Known) -> tuple[Identify, list[str]]:
        things = inventory.list_stack(self._at, self._stack)
        return orphans.make_finder(things, known), [each.name for each in orphans.find_orphans(things, known)]

    def end_machines(self, plan: ScalingPlan, asked: AwsRequirements, known: Known, say: Say) -> None:
        group_changes.end_machines(self._at, plan, say)

    def clear_orphans(self, known: Known, say: Say) -> Identify:
        return group_changes.clear_orphans(self._at, self._stack, known, say)

    def apply_size(self, plan: ScalingPlan, asked: AwsRequirements, work: FleetWork, say: Say) -> None:
        group_changes.apply_size(self._at, self._stack, plan, work.expires, say)

    def check_place(self, known: Known) -> None:
        requirements.check_region(self.provider.rented.region, known, self.name)

    def check_ownership(self, recorded: Known) -> None:
        ownership.check_ownership(self._at, self._stack, recorded)

    def end_loose_machines(self, say: Say) -> None:
        group_changes.end_loose_machines(self._at, self._stack, say)

    def remove_rest(self, say: Say) -> None:
        orphans.remove_resources(self._at, inventory.list_stack(self._at, self._stack), say)

    def explain_trouble(self) -> tuple[str, bool]:
        return group.explain_trouble(self._at, self._stack)

    def audit_stack(self, known: Known, heard: Mapping[str, int] | None) -> tuple[AuditFinding, ...]:
        return machine_audit.audit_stack(self._at, self._stack, known, heard)

    def list_resources(self) -> tuple[TaggedResource, ...]:
        here = partial(name_stack, self.store_url, self.project)
        return machine_audit.find_tagged_resources(self._at, self._stack, self.provider.rented.prices, here)

    def describe_creation(self, asked: AwsRequirements) -> MachineChange:
        return words.describe_creation(asked.wanted)

    def describe_change(self, change: ResourceChange) -> MachineChange:
        return words.describe_resource_change(change)

    def recall_bounds(self, known: Known) -> RentalBounds:
        return requirements.recall_requirements(known)

    def translate_error(self, text: str) -> FleetError | None:
        return errors.translate_cloud_error(text)

    def describe_postponement(self, there: MachineGroup | None, work: FleetWork) -> list[MachineChange]:
        return describe_postponement(there, work.expires)

    def describe_emptying(self, there: MachineGroup) -> str:
        return describe_emptying(there.expires)
