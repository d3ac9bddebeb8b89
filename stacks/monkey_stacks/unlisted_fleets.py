"""Fleets with machines that monkey.yaml no longer names: their state says what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monkey.errors import CorruptObject
from monkey.fleet.fleet_port import Fleet
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.aws.fleet import make_fleet as make_aws_fleet
from monkey_stacks.aws.requirements import find_region
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from monkey_stacks.gcp.fleet import make_fleet as make_gcp_fleet
from monkey_stacks.gcp.requirements import find_place
from monkey_stacks.provider_types import find_provider_type
from monkey_stacks.ssh.fleet import make_fleet as make_ssh_fleet


async def open_unlisted_fleet(
    name: str, project: str, store_url: str, opened: Callable[[], Store | None]
) -> Fleet | None:
    """Return the fleet whose state is under this name; None without resources. Raises StoreError, CorruptObject."""
    store = opened()
    known = await PulumiEngine(store, project, name).resources() if store is not None else ()
    if not known:
        return None
    if find_provider_type(known) == "aws":
        return make_aws_fleet(name, _aws(known), project, store_url, opened)
    if find_provider_type(known) == "gcp":
        return make_gcp_fleet(name, _gcp(known), project, store_url, opened)
    return make_ssh_fleet(name, Provider("ssh"), project, store_url, opened)


async def has_remains(name: str, project: str, opened: Callable[[], Store | None]) -> bool:
    """Return whether a state under this name has resources, or cannot be read. Raises StoreError."""
    store = opened()
    try:
        return store is not None and bool(await PulumiEngine(store, project, name).resources())
    except CorruptObject:
        return True


def _aws(known: Sequence[StateResource]) -> Provider:
    """Return as much of the provider as its destruction needs."""
    types = [each.inputs["instanceType"] for each in known if "instanceType" in each.inputs]
    return Provider("aws", cloud=CloudSettings(find_region(known), tuple(types)))


def _gcp(known: Sequence[StateResource]) -> Provider:
    """Return as much of the provider as its destruction needs."""
    project, region, type_ = find_place(known)
    return Provider("gcp", cloud=CloudSettings(region, (type_,), gcp_project=project))
