"""What becomes of a fleet at Google, in words for plans and lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from monkey.plan.cost import MachineChange
from monkey_stacks.cloud import cloud_descriptions
from monkey_stacks.cloud.cloud_descriptions import format_time
from monkey_stacks.engine.engine_outcome import ResourceChange, format_property
from monkey_stacks.gcp.api.group import parse_time
from monkey_stacks.gcp.api.naming import IMAGE
from monkey_stacks.gcp.desired_resources import GcpFleetPlan

#: How it begins that an image is another one, by its path.
_FOUND = "image's version "
_NAMES = {
    "machineType": "machine_type",
    "networkInterfaces": "network",
}


def describe_creation(wanted: GcpFleetPlan) -> MachineChange:
    """Return what becomes of a fleet that has nothing yet."""
    network = f"in {wanted.subnetwork}" if wanted.network else "a network of its own without a way in"
    kind = "spot machines" if wanted.spot else "machines"
    about = f"{kind} {wanted.type} in {wanted.region}, at most {wanted.max_instances}; {network}"
    return MachineChange("create", "group", f"{about}; a service account for them", part=True)


def describe_ending(at: float | None) -> str:
    """Say when machines end: nothing empties their group."""
    return "nothing says when its machines end" if at is None else f"its machines end by {format_time(at)}"


def describe_resource_change(change: ResourceChange) -> MachineChange:
    """Return a change of Pulumi's in words."""
    said = cloud_descriptions.describe_property_changes(change, _NAMES, _difference)
    whys = said.why.split("; ")
    named = any(why.startswith("image ") for why in whys)
    # An image that has another name in monkey.yaml is another one: that is told once.
    return replace(said, why="; ".join(why for why in whys if not (named and why.startswith(_FOUND))))


def _difference(name: str, before: Any, after: Any) -> str | None:
    if name in ("name", "shieldedInstanceConfig"):  # they follow from what else is different
        return ""
    if name == "metadata":
        images = [(each or {}).get(IMAGE) for each in (before, after)]
        return "" if images[0] == images[1] else f"image {images[0]} → {images[1]}"
    if name == "instanceLifecyclePolicy":
        return "what becomes of machines that are gone"
    if name == "versions":
        return "machines that come are made from the new template"
    if name == "metadataStartupScript":
        return cloud_descriptions.TOLD
    if name == "scheduling":
        return _scheduling(before or {}, after or {})
    if name == "disks":
        return _disks(before or [], after or [])
    if name == "distributionPolicyZones":
        return f"zones {', '.join(before or ())} → {', '.join(after or ())}"
    return None


def _scheduling(before: Any, after: Any) -> str:
    models = [each.get("provisioningModel") == "SPOT" for each in (before, after)]
    said = [f"spot {str(models[0]).lower()} → {str(models[1]).lower()}"] if models[0] != models[1] else []
    ends = [parse_time(each.get("terminationTime")) for each in (before, after)]
    said += [f"machines end {format_time(ends[0])} → {format_time(ends[1])}"] if ends[0] != ends[1] else []
    return "; ".join(said) or "how machines are rented"


def _disks(before: Any, after: Any) -> str:
    old, new = ((each or [{}])[0] for each in (before, after))
    names = {"sourceImage": "image's version", "diskType": "kind of disk"}
    said = [cloud_descriptions.describe_disk(old.get("diskSizeGb"), new.get("diskSizeGb"))]
    said += [
        f"{word} {format_property(old.get(key))} → {format_property(new.get(key))}"
        for key, word in names.items()
        if old.get(key) != new.get(key)
    ]
    return "; ".join(filter(None, said)) or "how disks are made"
