"""From what monkey.yaml says to what is to be made: AWS is asked for what only AWS knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from monkey.errors import FleetError
from monkey.spec.project.provider import Provider
from monkey_stacks import store_credentials
from monkey_stacks.aws import desired_resources
from monkey_stacks.aws.api import catalog
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.inventory import TYPES
from monkey_stacks.aws.api.naming import IMAGE, AwsStack
from monkey_stacks.aws.desired_resources import AwsFleetPlan
from monkey_stacks.boot import write_user_data
from monkey_stacks.bundle import publishing
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud import machine_settings
from monkey_stacks.cloud.rent_cost import RentalBounds
from monkey_stacks.cloud.slot_capacity import MachineType
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.state.state_rules import StateRules, explain_misreading


@dataclass(frozen=True)
class AwsRequirements:
    """What a fleet is to be, what its types of machines have, and the agent's code for them."""

    wanted: AwsFleetPlan
    types: tuple[MachineType, ...]
    bundle: Bundle


def find_requirements(
    account: AwsAccount,
    provider: Provider,
    stack: AwsStack,
    store_url: str,
    known: Iterable[StateResource],
    signers: str,
) -> AwsRequirements:
    """Return what a fleet is to be; `known`: the state, `signers`: for its machines. Raises FleetError, StoreError."""
    cloud = provider.rented
    known = list(known)
    check_region(cloud.region, known, stack.fleet)
    types = catalog.read_machine_types(account, cloud.types)
    name = catalog.select_image_name(cloud, types)
    image = catalog.find_image(account, name, types[0].arch, find_kept_image(known, name))
    if cloud.network:
        catalog.check_network(account, cloud.network, cloud.subnets)
    zones = () if cloud.network else catalog.find_zones(account, cloud.types)
    bundle = publishing.build_for_store(store_url, types[0].arch)
    address = store_credentials.strip_profile(store_url)
    said = machine_settings.make_settings(provider, stack, address, bundle, stack.name, signers)
    found = AwsFleetPlan(
        stack=stack,
        region=cloud.region,
        types=cloud.types,
        image_name=name,
        image=image,
        disk=cloud.disk,
        max_instances=cloud.max_instances,
        spot=cloud.spot,
        vpc=cloud.network or "",
        subnets=cloud.subnets,
        zones=zones,
        user_data=write_user_data(said),
        role=desired_resources.write_role(cloud, stack, store_url, account.partition),
        made=machine_settings.hash_machine_inputs(cloud, image.id, said),
        configured=machine_settings.hash_configuration(cloud, said),
    )
    return AwsRequirements(found, types, bundle)


def find_kept_image(known: Iterable[StateResource], name: str) -> str:
    """Return the image that the state has for the name of monkey.yaml; "" where there is none."""
    for each in known:
        if each.type == TYPES["launch-template"] and (each.inputs.get("tags") or {}).get(IMAGE) == name:
            return str(each.inputs.get("imageId", ""))
    return ""


def recall_requirements(known: Iterable[StateResource]) -> RentalBounds:
    """Return what the state lets a fleet be."""
    for each in known:
        if each.type == TYPES["auto-scaling-group"]:
            policy = each.inputs.get("mixedInstancesPolicy") or {}
            overrides = (policy.get("launchTemplate") or {}).get("overrides") or ()
            most = each.inputs.get("maxSize")
            types = tuple(str(one.get("instanceType")) for one in overrides)
            return RentalBounds(types, None if most is None else int(most))
    return RentalBounds()


def find_region(known: Iterable[StateResource]) -> str:
    """Return the region in which the state has machines; "" where that is not written down."""
    return next(_list_regions(known), "")


def _list_regions(known: Iterable[StateResource]) -> Iterator[str]:
    for each in known:
        arn = str(each.outputs.get("arn", "")).split(":")
        found = (each.inputs.get("region"), each.outputs.get("region"), arn[3] if len(arn) > 3 else "")
        yield from map(str, filter(None, found))


def check_region(region: str, known: Iterable[StateResource], fleet: str) -> None:
    """Raise FleetError where a part of the fleet is in another region: nothing there could be found from here."""
    there = next((found for found in _list_regions(known) if found != region), "")
    if there:
        raise FleetError(
            f"the machines of provider {fleet!r} are in {there}, and monkey.yaml says {region}",
            hint=f"`monkey destroy --fleet {fleet}` with region: {there} first; or add a provider for the new region",
        )


def _inspect(resource: StateResource, project: str, fleet: str) -> str:
    """Return what a plan could not read of a resource in the state; "" for nothing."""

    def read_image(known: list[StateResource]) -> str:
        tags = resource.inputs.get("tags") if resource.type == TYPES["launch-template"] else None
        return find_kept_image(known, str((tags or {}).get(IMAGE)))

    return explain_misreading(resource, (recall_requirements, find_region, read_image, _read_bounds))


def _read_bounds(known: list[StateResource]) -> list[int]:
    """Read the sizes of groups, as an audit does."""
    return [int(each.inputs[name]) for each in known for name in ("minSize", "maxSize") if name in each.inputs]


#: What the state of a fleet may have: Pulumi's library adds the settings that begin with "skip".
STATE_RULES = StateRules(
    "aws",
    frozenset(TYPES.values()),
    {"aws": ("region", "skipCredentialsValidation", "skipRegionValidation", "skipMetadataApiCheck")},
    _inspect,
)
