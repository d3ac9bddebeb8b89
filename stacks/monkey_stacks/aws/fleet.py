"""The fleet of machines rented at AWS: an auto scaling group, and the least around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from monkey.errors import FleetError
from monkey.fleet.fleet_port import Finding, Holding, Say, Work
from monkey.plan.change import MachineChange
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.aws import descriptions as words
from monkey_stacks.aws import group_changes, machine_audit, requirements
from monkey_stacks.aws.api import catalog, errors, group, inventory, orphans
from monkey_stacks.aws.api.account import Account, account
from monkey_stacks.aws.api.naming import Stack, stack
from monkey_stacks.aws.program import program
from monkey_stacks.aws.requirements import Needs
from monkey_stacks.cloud.cloud_fleet import RentedFleet
from monkey_stacks.cloud.cloud_provider import Known
from monkey_stacks.cloud.rent_cost import Bounds
from monkey_stacks.cloud.scaling import Course, Group
from monkey_stacks.cloud.slot_capacity import Machine
from monkey_stacks.engine.engine_outcome import Change, Identify


def make(name: str, provider: Provider, project: str, store_url: str, opened: Callable[[], Store | None]) -> AwsFleet:
    """Return the fleet of a provider; `opened` returns the store at `store_url`, once there is one."""
    return AwsFleet(name, provider, project, store_url, opened)


@dataclass
class AwsFleet(RentedFleet):
    """Machines at AWS, for one store and project; see `monkey.fleet.fleet_port.Fleet`."""

    type: str = "aws"
    _account: Account | None = None

    called: ClassVar[str] = "AWS"
    group_word: ClassVar[str] = "auto scaling group"
    type_key: ClassVar[str] = "instance_type"
    secret_form: ClassVar[tuple[str, str]] = ("ssm:/PATH", "secretsmanager:NAME")

    @property
    def _at(self) -> Account:
        if self._account is None:
            self._account = account(self._cloud.region, self.store_url)
        return self._account

    @property
    def _stack(self) -> Stack:
        return stack(self.store_url, self.project, self.name)

    def _look(self) -> Group | None:
        return group.look(self._at, self._stack)

    def _machines(self) -> tuple[Machine, ...]:
        return catalog.machines(self._at, self._cloud.types)

    def _needs(self, known: Known, work: Work) -> Needs:
        return requirements.find(self._at, self.provider, self._stack, self.store_url, known)

    def _program(self, asked: Needs) -> Callable[[], None]:
        return program(asked.wanted)

    def _keys(self) -> Mapping[str, str]:
        return self._at.keys()

    def _lost(self, known: Known) -> tuple[Identify, list[str]]:
        things = inventory.look(self._at, self._stack)
        return orphans.finder(things, known), [each.name for each in orphans.strays(things, known)]

    def _end(self, plan: Course, asked: Needs, known: Known, say: Say) -> None:
        group_changes.end(self._at, plan, say)

    def _clear(self, known: Known, say: Say) -> Identify:
        return group_changes.clear(self._at, self._stack, known, say)

    def _size(self, plan: Course, asked: Needs, work: Work, say: Say) -> None:
        group_changes.size(self._at, self._stack, plan, work.expires, say)

    def _check_place(self, known: Known) -> None:
        requirements.check_region(self._cloud.region, known, self.name)

    def _remove_lone(self, say: Say) -> None:
        group_changes.lone(self._at, self._stack, say)

    def _remove_rest(self, say: Say) -> None:
        orphans.remove(self._at, inventory.look(self._at, self._stack), say)

    def _trouble(self) -> tuple[str, bool]:
        return group.trouble(self._at, self._stack)

    def _audit(self, known: Known, heard: Mapping[str, int] | None) -> tuple[Finding, ...]:
        return machine_audit.audit(self._at, self._stack, known, heard)

    def _holdings(self) -> tuple[Holding, ...]:
        here = partial(stack, self.store_url, self.project)
        return machine_audit.holdings(self._at, self._stack, self._cloud.prices, here)

    def _creation(self, asked: Needs) -> MachineChange:
        return words.creation(asked.wanted)

    def _change(self, change: Change) -> MachineChange:
        return words.resource_change(change)

    def _agreed(self, known: Known) -> Bounds:
        return requirements.agreed(known)

    def _translate(self, text: str) -> FleetError | None:
        return errors.translate(text)
