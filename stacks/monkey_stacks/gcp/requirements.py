"""From what monkey.yaml says to what is to be made: Google is asked for what only Google knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monkey.errors import FleetError
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.boot import write_user_data
from monkey_stacks.bundle import publishing
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud import machine_settings
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp import desired_resources, machine_rights
from monkey_stacks.gcp.api import catalog
from monkey_stacks.gcp.api.account import GcpAccount
from monkey_stacks.gcp.api.group import parse_time
from monkey_stacks.gcp.api.inventory import REGISTERED, TYPES
from monkey_stacks.gcp.api.naming import IMAGE, GcpStack
from monkey_stacks.gcp.desired_resources import GcpFleetPlan
from monkey_stacks.state.state_rules import StateRules, explain_misreading


@dataclass(frozen=True)
class GcpRequirements:
    """What a fleet is to be, what its type of machines has, and the agent's code for them."""

    wanted: GcpFleetPlan
    types: tuple[MachineType, ...]
    bundle: Bundle


def find_requirements(
    account: GcpAccount,
    provider: Provider,
    stack: GcpStack,
    store_url: str,
    known: Sequence[StateResource],
    expires: float | None,
    signers: str,
) -> GcpRequirements:
    """Return what a fleet is to be; `known`: the state, `signers`: for its machines. Raises FleetError, StoreError."""
    cloud = provider.rented
    check_place(cloud, known, stack.fleet)
    offer = catalog.read_machine_type(account, cloud.types[0])
    machine = offer.machine
    name = catalog.select_image_name(cloud, machine)
    image = catalog.find_image(account, name, machine.arch, find_kept_image(known, name))
    network, subnetwork = _network(account, cloud)
    check_group_role(account)
    bundle, where = publishing.build_for_store(store_url, machine.arch), parse_bucket_url(store_url)
    said = machine_settings.make_settings(provider, stack, store_url, bundle, stack.group(cloud.region), signers)
    zones = catalog.select_zones(offer, cloud.zones, list_kept_zones(known))
    found = GcpFleetPlan(
        stack=stack,
        gcp_project=cloud.gcp_project,
        region=cloud.region,
        zones=zones,
        type=machine.type,
        gpus=machine.gpus,
        image_name=name,
        image=image,
        disk=cloud.disk,
        disk_type=catalog.select_disk_type(machine.type),
        max_instances=cloud.max_instances,
        spot=cloud.spot,
        network=network,
        subnetwork=subnetwork,
        bucket=where.bucket,
        prefix=where.prefix,
        secrets=_list_secret_paths(cloud),
        user_data=write_user_data(said),
        made=machine_settings.hash_machine_inputs(cloud, image.id, said, zones),
        until=desired_resources.find_end_time(expires, known),
        configured=machine_settings.hash_configuration(cloud, said),
    )
    return GcpRequirements(found, (machine,), bundle)


def _list_secret_paths(cloud: CloudSettings) -> tuple[str, ...]:
    paths = {desired_resources.spell_secret_path(each, cloud.gcp_project) for each in cloud.secrets.values()}
    return tuple(sorted(paths))


def _network(account: GcpAccount, cloud: CloudSettings) -> tuple[str, str]:
    """Return the paths of a network that is there already, and of its part; "" for one of our own."""
    if not cloud.network:
        return "", ""
    subnetwork = cloud.subnets[0] if cloud.subnets else ""
    catalog.check_network(account, cloud.network, subnetwork)
    return catalog.spell_network_path(account, cloud.network), catalog.spell_subnetwork_path(account, subnetwork)


def check_group_role(account: GcpAccount) -> None:
    """Raise FleetError where the project lacks the role by which machines leave their group.

    Without it, machines would stay, and be paid for, until the end of their sweeps.
    """
    needed = machine_rights.GROUP_CALLS
    found = account.find("iam", f"v1/{machine_rights.spell_group_role(account.project)}")
    if found is None:
        told, verb = "there is none in the project", ("create", f" --stage GA --permissions {','.join(needed)}")
    elif found.get("deleted"):
        told, verb = "it was deleted", ("undelete", "")
    elif lacks := [call for call in needed if call not in found.get("includedPermissions", ())]:
        told, verb = f"it lacks {' and '.join(lacks)}", ("update", f" --add-permissions {','.join(lacks)}")
    else:
        return
    raise FleetError(
        f"expected the role {machine_rights.GROUP_ROLE}, by which machines leave their group: {told}",
        hint="have an administrator make it, once for all fleets: "
        f"`gcloud iam roles {verb[0]} {machine_rights.GROUP_ROLE} --project {account.project}{verb[1]}`",
    )


def find_kept_image(known: Sequence[StateResource], name: str) -> str:
    """Return the image that the state has for the name of monkey.yaml; "" where there is none."""
    for each in _of(known, "instance-template"):
        if (each.inputs.get("metadata") or {}).get(IMAGE) == name:
            return str(each.inputs["disks"][0]["sourceImage"])
    return ""


def list_kept_zones(known: Sequence[StateResource]) -> list[str]:
    """Return the zones of the state's group: one that comes to the region later is to replace no group."""
    return [zone for each in _of(known, "instance-group") for zone in each.inputs.get("distributionPolicyZones", ())]


def find_place(known: Sequence[StateResource]) -> tuple[str, str, str]:
    """Return the project, the region and the type of the state's machines; "" for what is not written down."""
    groups, templates = _of(known, "instance-group"), _of(known, "instance-template")
    region = next((str(each.inputs["region"]) for each in [*groups, *_of(known, "subnetwork")]), "")
    type_ = next((str(each.inputs["machineType"]) for each in templates), "")
    return next((str(each.inputs["project"]) for each in known if each.inputs.get("project")), ""), region, type_


def recall_requirements(known: Sequence[StateResource]) -> RentalBounds:
    """Return what the state lets a fleet be; how many machines there may be is not in it."""
    for each in _of(known, "instance-template"):
        ends = (each.inputs.get("scheduling") or {}).get("terminationTime")
        return RentalBounds((str(each.inputs.get("machineType")),), until=parse_time(ends))
    return RentalBounds()


def check_place(cloud: CloudSettings, known: Sequence[StateResource], fleet: str) -> None:
    """Raise FleetError where the fleet is in another project or region: nothing there could be found from here."""
    project, region, _ = find_place(known)
    for key, there, here in (("gcp_project", project, cloud.gcp_project), ("region", region, cloud.region)):
        if there and there != here:
            raise FleetError(
                f"the machines of provider {fleet!r} are in {there}, and monkey.yaml says {here}",
                hint=f"`monkey destroy --fleet {fleet}` with {key}: {there} first; or add a provider for the new one",
            )


def _of(known: Sequence[StateResource], kind: str) -> list[StateResource]:
    return [each for each in known if each.type == TYPES[kind]]


def _inspect(resource: StateResource, project: str, fleet: str) -> str:
    """Return what a plan could not read of a resource in the state; "" for nothing."""

    def read_image(known: list[StateResource]) -> str:
        metadata = resource.inputs.get("metadata") or {}
        return find_kept_image(known, str(metadata.get(IMAGE)))

    readers = (recall_requirements, find_place, list_kept_zones, read_image)
    return explain_misreading(resource, (*readers, lambda known: desired_resources.find_end_time(None, known)))


#: What the state of a fleet may have: Pulumi's library adds a zone where the environment names one.
STATE_RULES = StateRules("gcp", REGISTERED, {"gcp": ("project", "region", "zone")}, _inspect)
