"""Where a rented fleet is, by its state: what is listed where monkey.yaml says another place, or its group is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest

from monkey.apply.inspect.instances import _rows
from monkey.errors import FleetError
from monkey.fleet.fleet_records import Instance
from monkey.plan.cost import MachineChange
from monkey.signing.entry_signers import load_user_signers
from monkey.spec.project.provider import parse_provider
from monkey.store.memory import MemoryStore
from monkey.store.store_port import Store
from monkey_stacks.aws.fleet import AwsApi
from monkey_stacks.cloud import cloud_descriptions
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.cloud.scaling import GroupMember, MachineGroup
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp.fleet import GcpApi

GROUP = StateResource(
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager", "group", "g", {"region": "europe-west4"}
)
NETWORK = StateResource("gcp:compute/network:Network", "network", "n", {"project": "mine"})
VPC = StateResource("aws:ec2/vpc:Vpc", "vpc", "v", {}, {"region": "eu-central-1"})
AWS = {"type": "aws", "region": "eu-central-1", "instance_type": "m5.large"}
GCP = {"type": "gcp", "gcp_project": "mine", "region": "europe-west4", "machine_type": "e2-standard-2"}


@dataclass
class Aws(AwsApi):
    """A cloud that must not be asked."""

    known: ClassVar[tuple[StateResource, ...]] = (VPC,)

    def find_group(self) -> MachineGroup | None:
        raise AssertionError("asked")


@dataclass
class Gcp(GcpApi):
    """A cloud that has this group."""

    known: ClassVar[tuple[StateResource, ...]] = (GROUP, NETWORK)
    there: MachineGroup | None = None

    def find_group(self) -> MachineGroup | None:
        return self.there


@dataclass
class KnownFleet(CloudFleet):
    """A fleet whose state has what its cloud says."""

    async def _known(self) -> tuple[StateResource, ...]:
        return cast(Aws | Gcp, self.api).known


def fleet(kind: Callable[..., Any], entry: dict[str, Any], **more: Any) -> KnownFleet:
    store: Store = MemoryStore()
    provider = parse_provider(entry)
    api = kind("cloud", provider, "shop", "gs://b", **more)
    return KnownFleet("cloud", provider, "shop", lambda: store, api, load_user_signers)


@pytest.mark.parametrize(
    ("made", "key", "there"),
    [
        (fleet(Aws, AWS | {"region": "eu-west-1"}), "region", "eu-central-1"),
        (fleet(Gcp, GCP | {"region": "us-central1"}), "region", "europe-west4"),
        (fleet(Gcp, GCP | {"gcp_project": "other-proj"}), "gcp_project", "mine"),
    ],
)
def test_a_fleet_that_is_elsewhere_is_told_as_that_and_nothing_else(made: Any, key: str, there: str) -> None:
    said = f"the machines of provider 'cloud' are in {there}, and monkey.yaml says"
    (listed,) = asyncio.run(made.instances())
    assert listed.about.startswith(said) and f"with {key}: {there}" in listed.about and not listed.runs
    (found,) = asyncio.run(made.audit(busy=True))
    assert found.text.startswith(said) and f"with {key}: {there}" in found.hint
    assert asyncio.run(made.tagged_resources()) == ()
    with pytest.raises(FleetError, match=said):
        asyncio.run(made.destroy(print))


def test_a_group_is_listed_as_it_is() -> None:
    (parts,) = asyncio.run(fleet(Gcp, GCP).instances())
    assert (parts.machine, parts.about) == (
        "parts",
        "no managed instance group is there; of its other parts are written down: network",
    )
    there = MachineGroup(1, (GroupMember("i-1", "e2-standard-2", "now"),), 4e9)
    group, machine = asyncio.run(fleet(Gcp, GCP, there=there).instances())
    assert group.about.endswith("1 asked for, its machines end by 2096-10-02 07:06 UTC") and machine.runs
    assert [row.state for row in _rows("cloud", [group, machine], [])] == ["machines", "not heard of"]
    assert [row.state for row in _rows("cloud", [Instance("group", (), runs=False)], [])] == ["no machine"]


def test_a_part_that_is_made_again_says_why() -> None:
    def why(name: str, *known: StateResource) -> str:
        return cloud_descriptions.explain_remaking(MachineChange("create", name, part=True), known).why

    cut = StateResource(NETWORK.type, "network", "", interrupted=True)
    assert why("group", GROUP) == "it is not there any more, though an apply made it"
    assert why("network", cut) == why("firewall", cut) == "an apply or a destroy was cut off"
    assert why("secret-a", GROUP) == ""
