"""What becomes of a fleet on AWS, in words for plans and lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from monkey.plan.cost import MachineChange
from monkey_stacks.aws.desired_resources import AwsFleetPlan
from monkey_stacks.cloud import cloud_descriptions
from monkey_stacks.engine.engine_outcome import ResourceChange, format_property

_NAMES = {"imageId": "image", "instanceType": "instance_type", "vpcZoneIdentifiers": "network"}
#: What follows from something else that is told.
_FOLLOWS = ("tags", "tagsAll", "tagSpecifications", "latestVersion", "vpcSecurityGroupIds")


def describe_creation(wanted: AwsFleetPlan) -> MachineChange:
    """Return what becomes of a fleet that has nothing yet."""
    network = f"in {wanted.vpc}" if wanted.vpc else "a network of its own without a way in"
    kind = "spot machines" if wanted.spot else "machines"
    about = f"{kind} {' or '.join(wanted.types)} in {wanted.region}, at most {wanted.max_instances}; {network}"
    return MachineChange("create", "group", f"{about}; a role for them", part=True)


def describe_resource_change(change: ResourceChange) -> MachineChange:
    """Return a change of Pulumi's in words."""
    return cloud_descriptions.describe_property_changes(change, _NAMES, _difference)


def _difference(name: str, before: Any, after: Any) -> str | None:
    if name == "mixedInstancesPolicy":
        return _mixed(before, after)
    if name == "userData":
        return cloud_descriptions.TOLD
    if name in _FOLLOWS:
        return ""
    if name == "blockDeviceMappings":
        return _disk(before, after)
    if name in ("maxSize", "minSize"):
        key = "max_instances" if name == "maxSize" else "min_size"
        return f"{key} {format_property(before)} → {format_property(after)}"
    return None


def _mixed(before: Any, after: Any) -> str:
    types = [", ".join(_types(each)) or "none" for each in (before, after)]
    shares = [_spot(each) for each in (before, after)]
    said = [f"instance_type {types[0]} → {types[1]}"] if types[0] != types[1] else []
    said += [f"spot {shares[0]} → {shares[1]}"] if shares[0] != shares[1] else []
    return "; ".join(said) or "how machines are chosen"


def _disk(before: Any, after: Any) -> str:
    sizes = [((each or [{}])[0].get("ebs") or {}).get("volumeSize") for each in (before, after)]
    return cloud_descriptions.describe_disk(*sizes) or "how disks are made"


def _types(policy: Any) -> Iterable[str]:
    overrides = (policy or {}).get("launchTemplate", {}).get("overrides") or ()
    return [str(each.get("instanceType")) for each in overrides]


def _spot(policy: Any) -> str:
    share = (policy or {}).get("instancesDistribution", {}).get("onDemandPercentageAboveBaseCapacity", 100)
    return "false" if share else "true"
