"""The fleet of machines rented at AWS: an auto scaling group, and the least around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from monkey.errors import FleetError
from monkey.fleet.fleet_port import AuditFinding, FleetWork, Say, TaggedResource
from monkey.plan.change import MachineChange
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.aws import descriptions as words
from monkey_stacks.aws import group_changes, machine_audit, requirements
from monkey_stacks.aws.api import catalog, errors, group, inventory, orphans
from monkey_stacks.aws.api.account import AwsAccount, open_account
from monkey_stacks.aws.api.naming import AwsStack, name_stack
from monkey_stacks.aws.program import make_program
from monkey_stacks.aws.requirements import AwsRequirements
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.cloud.cloud_provider import Known
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.scaling import MachineGroup, ScalingPlan
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import Identify, ResourceChange


def make_fleet(
    name: str, provider: Provider, project: str, store_url: str, opened: Callable[[], Store | None]
) -> AwsFleet:
    """Return the fleet of a provider; `opened` returns the store at `store_url`, once there is one."""
    return AwsFleet(name, provider, project, store_url, opened)


@dataclass
class AwsFleet(CloudFleet):
    """Machines at AWS, for one store and project; see `monkey.fleet.fleet_port.Fleet`."""

    type: str = "aws"
    _account: AwsAccount | None = None

    called: ClassVar[str] = "AWS"
    group_word: ClassVar[str] = "auto scaling group"
    type_key: ClassVar[str] = "instance_type"
    secret_form: ClassVar[tuple[str, str]] = ("ssm:/PATH", "secretsmanager:NAME")

    @property
    def _at(self) -> AwsAccount:
        if self._account is None:
            self._account = open_account(self._cloud.region, self.store_url)
        return self._account

    @property
    def _stack(self) -> AwsStack:
        return name_stack(self.store_url, self.project, self.name)

    def _look(self) -> MachineGroup | None:
        return group.find_group(self._at, self._stack)

    def _machines(self) -> tuple[MachineType, ...]:
        return catalog.read_machine_types(self._at, self._cloud.types)

    def _needs(self, known: Known, work: FleetWork) -> AwsRequirements:
        return requirements.find_requirements(self._at, self.provider, self._stack, self.store_url, known)

    def _program(self, asked: AwsRequirements) -> Callable[[], None]:
        return make_program(asked.wanted)

    def _keys(self) -> Mapping[str, str]:
        return self._at.keys()

    def _lost(self, known: Known) -> tuple[Identify, list[str]]:
        things = inventory.list_stack(self._at, self._stack)
        return orphans.make_finder(things, known), [each.name for each in orphans.find_orphans(things, known)]

    def _end(self, plan: ScalingPlan, asked: AwsRequirements, known: Known, say: Say) -> None:
        group_changes.end_machines(self._at, plan, say)

    def _clear(self, known: Known, say: Say) -> Identify:
        return group_changes.clear_orphans(self._at, self._stack, known, say)

    def _size(self, plan: ScalingPlan, asked: AwsRequirements, work: FleetWork, say: Say) -> None:
        group_changes.apply_size(self._at, self._stack, plan, work.expires, say)

    def _check_place(self, known: Known) -> None:
        requirements.check_region(self._cloud.region, known, self.name)

    def _remove_lone(self, say: Say) -> None:
        group_changes.end_loose_machines(self._at, self._stack, say)

    def _remove_rest(self, say: Say) -> None:
        orphans.remove_resources(self._at, inventory.list_stack(self._at, self._stack), say)

    def _trouble(self) -> tuple[str, bool]:
        return group.explain_trouble(self._at, self._stack)

    def _audit(self, known: Known, heard: Mapping[str, int] | None) -> tuple[AuditFinding, ...]:
        return machine_audit.audit_stack(self._at, self._stack, known, heard)

    def _holdings(self) -> tuple[TaggedResource, ...]:
        here = partial(name_stack, self.store_url, self.project)
        return machine_audit.list_holdings(self._at, self._stack, self._cloud.prices, here)

    def _creation(self, asked: AwsRequirements) -> MachineChange:
        return words.describe_creation(asked.wanted)

    def _change(self, change: ResourceChange) -> MachineChange:
        return words.resource_change(change)

    def _agreed(self, known: Known) -> RentalBounds:
        return requirements.recall_requirements(known)

    def _translate(self, text: str) -> FleetError | None:
        return errors.translate_cloud_error(text)
