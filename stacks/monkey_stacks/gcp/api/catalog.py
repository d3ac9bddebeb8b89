"""What Google says of what monkey.yaml asks for: types of machines, the image, zones. Machines are made from this."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.gcp.api.account import GcpAccount

#: Families of Debian's images, by architecture.
DEBIAN = {"x86_64": "debian-cloud/debian-12", "arm64": "debian-cloud/debian-12-arm64"}
#: Google's own images with drivers of NVIDIA, which a hint names.
_DRIVERS = "deeplearning-platform-release/common-cu128-ubuntu-2204-nvidia-570"
#: Series of machines that take Hyperdisks alone.
_HYPER = ("a4", "a4x", "c4", "c4a", "c4d", "h4d", "m4", "n4", "n4a", "n4d", "x4")


@dataclass(frozen=True)
class GcpImage:
    """An image."""

    #: "projects/debian-cloud/global/images/debian-12-bookworm-v20260101".
    id: str
    arch: str
    #: Bytes that it needs.
    least: int


@dataclass(frozen=True)
class MachineOffer:
    """A type of machines, and where in the region it is to be had."""

    machine: MachineType
    zones: tuple[str, ...]


def read_machine_type(account: GcpAccount, type_: str) -> MachineOffer:
    """Return what Google has of a type in the region; asked once. Raises FleetError."""
    if type_ not in account.remembered:
        account.remembered[type_] = _asked(account, type_)
    found: MachineOffer = account.remembered[type_]
    return found


def _asked(account: GcpAccount, type_: str) -> MachineOffer:
    region = account.region
    asked = {"filter": f'name="{type_}"', "returnPartialSuccess": "true"}
    pages = account.pages("GET", f"{account.place}/aggregated/machineTypes", **asked)
    scopes = {name: scope for page in pages for name, scope in page.get("items", {}).items()}
    here = {name.rpartition("/")[2]: scope for name, scope in scopes.items() if name.startswith(f"zones/{region}-")}
    if not here:
        raise FleetError(
            f"there is no region {region}", hint="check region: in monkey.yaml: `gcloud compute regions list`"
        )
    found = {zone: scope["machineTypes"][0] for zone, scope in here.items() if scope.get("machineTypes")}
    if not found:
        raise FleetError(
            f"there is no type of machines {type_} in {region}",
            hint=f"check machine_type: in monkey.yaml: `gcloud compute machine-types list --filter zone~{region}`",
        )
    return MachineOffer(_machine(next(iter(found.values()))), tuple(sorted(found)))


def _machine(raw: dict[str, Any]) -> MachineType:
    gpus = sum(int(each.get("guestAcceleratorCount", 0)) for each in raw.get("accelerators", ()))
    arch = "arm64" if raw.get("architecture") == "ARM64" else "x86_64"
    return MachineType(raw["name"], float(raw["guestCpus"]), int(raw["memoryMb"]) << 20, gpus, arch)


def select_zones(found: MachineOffer, asked: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the zones in which machines may be: those asked for, else those of the state, else all that have them.

    Raises FleetError where the type is not to be had in one that was asked for.
    """
    if missing := sorted(set(asked) - set(found.zones)):
        raise FleetError(
            f"{found.machine.type} is not to be had in {', '.join(missing)}",
            hint=f"check zones: in monkey.yaml: it is in {', '.join(found.zones)}",
        )
    if asked:
        return tuple(sorted(asked))
    return tuple(sorted(kept)) if kept and set(kept) <= set(found.zones) else found.zones


def select_image_name(cloud: CloudSettings, machine: MachineType) -> str:
    """Return the image as monkey.yaml has it, or else the one that machines have by default. Raises FleetError."""
    if cloud.image is not None:
        return cloud.image
    if machine.gpus:
        raise FleetError(
            f"{machine.type} has GPUs, and Debian, the default image, has no driver for them",
            hint=f"write an image with drivers: image: {_DRIVERS}",
        )
    return DEBIAN[machine.arch]


def find_image(account: GcpAccount, name: str, arch: str, kept: str = "") -> GcpImage:
    """Return the image `name`: of a family, or one; `kept`: the id to continue while it is there.

    A family's newest image is looked up once: machines would else be replaced whenever a newer one is published.
    Raises FleetError where there is none, or it is of another architecture.
    """
    raw = next(filter(None, (account.find("compute", f"compute/v1/{path}") for path in _paths(name, kept))), None)
    if raw is None:
        raise FleetError(
            f"there is no image {name}",
            hint="name one by image: in monkey.yaml: PROJECT/FAMILY, or projects/P/global/images/NAME",
        )
    found = "arm64" if raw.get("architecture") == "ARM64" else "x86_64"
    if found != arch:
        raise FleetError(
            f"expected an image for {arch}, found {name}, which is for {found}",
            hint=f"name one for {arch} by image: in monkey.yaml",
        )
    link = re.sub(r".*?(?=projects/)", "", raw["selfLink"], count=1)
    return GcpImage(link, found, int(raw.get("diskSizeGb", 0)) << 30)


def _paths(name: str, kept: str) -> Iterable[str]:
    if kept:
        yield kept
    if "/" in name and not name.startswith("projects/"):
        project, _, family = name.partition("/")
        yield f"projects/{project}/global/images/family/{family}"
    else:
        yield name


def select_disk_type(type_: str) -> str:
    """Return the kind of disk that a type of machines boots from: the balanced one that it takes."""
    hyper = type_.split("-")[0] in _HYPER or type_.startswith("a3-ultragpu")
    return "hyperdisk-balanced" if hyper else "pd-balanced"


def check_network(account: GcpAccount, network: str, subnetwork: str) -> None:
    """Raise FleetError where the subnetwork of monkey.yaml is not there, or not of that network."""
    path = spell_subnetwork_path(account, subnetwork)
    found = account.find("compute", f"compute/v1/{path}")
    if found is None:
        raise FleetError(
            f"there is no such network in the region: {path} was not found",
            hint="check network: and subnetwork: in monkey.yaml; leave both out for a network of its own",
        )
    if not found["network"].endswith(f"/{network.rpartition('/')[2]}"):
        raise FleetError(f"{subnetwork} is not part of {network}", hint="check network: and subnetwork: in monkey.yaml")


def spell_subnetwork_path(account: GcpAccount, name: str) -> str:
    """Return the path of a subnetwork as monkey.yaml has it: a name, or already a path."""
    if "projects/" in name:
        return name[name.index("projects/") :]
    return f"projects/{account.project}/regions/{account.region}/subnetworks/{name}"


def spell_network_path(account: GcpAccount, name: str) -> str:
    """Return the path of a network as monkey.yaml has it: a name, or already a path."""
    if "projects/" in name:
        return name[name.index("projects/") :]
    return f"projects/{account.project}/global/networks/{name}"
