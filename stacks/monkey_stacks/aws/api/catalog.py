"""What AWS says of what monkey.yaml asks for: types of machines, the image, zones. Machines are made from this."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.errors import FleetError
from monkey.fleet.user_directories import open_cache_home
from monkey.spec.project.cloud import CloudSettings
from monkey.untrusted_files import hold_below
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.errors import translate_errors
from monkey_stacks.cloud.slot_capacity import MachineType

#: Where Debian tells of its newest image, by AWS's names of architectures.
DEBIAN = {
    "x86_64": "resolve:ssm:/aws/service/debian/release/12/latest/amd64",
    "arm64": "resolve:ssm:/aws/service/debian/release/12/latest/arm64",
}
#: AWS's own image with drivers of NVIDIA, which a hint names.
_DRIVERS = "resolve:ssm:/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
_RESOLVE = "resolve:ssm:"


@dataclass(frozen=True)
class AwsImage:
    """An image, and what a machine with it calls its disk."""

    id: str
    device: str
    arch: str
    #: Bytes that it needs.
    least: int


def read_machine_types(account: AwsAccount, types: Sequence[str]) -> tuple[MachineType, ...]:
    """Return the types as AWS knows them; what was asked once is remembered. Raises FleetError."""
    known = _remembered(account.region)
    if missing := [type_ for type_ in types if type_ not in known]:
        known |= {each.type: each for each in _asked(account, missing)}
        _remember(account.region, known)
    if unknown := [type_ for type_ in types if type_ not in known]:
        raise FleetError(
            f"there is no type of machines {', '.join(unknown)} in {account.region}",
            hint="check instance_type: in monkey.yaml: `aws ec2 describe-instance-types` lists them",
        )
    found = tuple(known[type_] for type_ in types)
    if len({each.arch for each in found}) > 1:
        archs = ", ".join(f"{each.type} is {each.arch}" for each in found)
        raise FleetError(
            f"expected types of one architecture, found {archs}", hint="make two providers of it: an image is of one"
        )
    return found


def _asked(account: AwsAccount, types: Sequence[str]) -> list[MachineType]:
    with translate_errors():
        answer = account.client("ec2").describe_instance_types(InstanceTypes=list(types))
        return [_machine(raw) for raw in answer["InstanceTypes"]]


def _machine(raw: dict[str, Any]) -> MachineType:
    gpus = sum(each.get("Count", 0) for each in raw.get("GpuInfo", {}).get("Gpus", ()))
    archs = raw["ProcessorInfo"]["SupportedArchitectures"]
    memory = int(raw["MemoryInfo"]["SizeInMiB"]) << 20
    arch = "arm64" if "arm64" in archs else "x86_64"
    return MachineType(raw["InstanceType"], float(raw["VCpuInfo"]["DefaultVCpus"]), memory, gpus, arch)


def _file(region: str) -> Path:
    return open_cache_home() / "aws" / f"types-{region}.json"


def _remembered(region: str) -> dict[str, MachineType]:
    """Return what is known; a file that cannot be read knows nothing."""
    try:
        return {name: MachineType(**raw) for name, raw in json.loads(_file(region).read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(region: str, known: dict[str, MachineType]) -> None:
    """Keep what is known, where there is a place for it: the next one asks again otherwise."""
    with contextlib.suppress(OSError):
        path = _file(region)
        with hold_below(path.parent.parent, path.parent.name, make=True):
            write_atomically(path, json.dumps({name: asdict(each) for name, each in known.items()}), mode=0o600)


def select_image_name(cloud: CloudSettings, types: Sequence[MachineType]) -> str:
    """Return the image as monkey.yaml has it, or else the one that machines have by default. Raises FleetError."""
    if cloud.image is not None:
        return cloud.image
    arch = types[0].arch
    if gpus := [each.type for each in types if each.gpus]:
        raise FleetError(
            f"{', '.join(gpus)} has GPUs, and Debian, the default image, has no driver for them",
            hint=f"write an image with drivers: image: {_DRIVERS.format(arch)}",
        )
    return DEBIAN[arch]


def find_image(account: AwsAccount, name: str, arch: str, kept: str = "") -> AwsImage:
    """Return the image `name`: an id, or a parameter that holds one; `kept`: the id to continue while it is there.

    A parameter's image is looked up once: machines would else be replaced whenever a newer one is published.
    Raises FleetError where there is none, or it is of another architecture.
    """
    found = _look(account, kept) if kept else None
    found = found or _look(account, _resolved(account, name) if name.startswith(_RESOLVE) else name)
    if found is None:
        raise FleetError(
            f"there is no image {name} in {account.region}",
            hint="name one of this region by image: in monkey.yaml",
        )
    if found.arch != arch:
        raise FleetError(
            f"expected an image for {arch}, found {name}, which is for {found.arch}",
            hint=f"name one for {arch} by image: in monkey.yaml",
        )
    return found


def _resolved(account: AwsAccount, name: str) -> str:
    with translate_errors():
        answer = account.client("ssm").get_parameter(Name=name.removeprefix(_RESOLVE))
        return str(answer["Parameter"]["Value"])


def _look(account: AwsAccount, id_: str) -> AwsImage | None:
    from botocore.exceptions import ClientError

    try:
        with translate_errors():
            answer = account.client("ec2").describe_images(ImageIds=[id_])["Images"]
    except FleetError as exc:
        if isinstance(exc.__cause__, ClientError) and "InvalidAMI" in str(exc.__cause__):
            return None
        raise
    if not answer or answer[0].get("State", "available") != "available":
        return None
    raw = answer[0]
    disks = [each.get("Ebs", {}).get("VolumeSize", 0) for each in raw.get("BlockDeviceMappings", ())]
    device = raw.get("RootDeviceName") or "/dev/xvda"
    return AwsImage(raw["ImageId"], device, raw["Architecture"], max(disks, default=0) << 30)


def find_zones(account: AwsAccount, types: Sequence[str]) -> tuple[str, ...]:
    """Return the zones of the region in which at least one of the types is to be had. Raises FleetError."""
    ec2 = account.client("ec2")
    with translate_errors():
        there = ec2.describe_availability_zones(Filters=[{"Name": "zone-type", "Values": ["availability-zone"]}])
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": list(types)}]
        )
        offered = {each["Location"] for page in pages for each in page["InstanceTypeOfferings"]}
        names = {zone["ZoneName"] for zone in there["AvailabilityZones"] if zone.get("State") == "available"}
    if not offered & names:
        raise FleetError(
            f"{' or '.join(types)} is not to be had in any zone of {account.region}",
            hint="check instance_type: and region: in monkey.yaml",
        )
    return tuple(sorted(offered & names))


def check_network(account: AwsAccount, vpc: str, subnets: Sequence[str]) -> None:
    """Raise FleetError where the subnets of monkey.yaml are not there, or not of that network."""
    with translate_errors():
        found = account.client("ec2").describe_subnets(SubnetIds=list(subnets))["Subnets"]
    if other := [each["SubnetId"] for each in found if each["VpcId"] != vpc]:
        raise FleetError(f"{', '.join(other)} is not part of {vpc}", hint="check vpc: and subnets: in monkey.yaml")
