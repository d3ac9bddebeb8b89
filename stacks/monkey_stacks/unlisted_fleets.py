"""Fleets with machines that monkey.yaml no longer names: their state says what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from monkey.errors import CorruptObject
from monkey.fleet.fleet_port import Fleet
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store
from monkey_stacks.aws import requirements as aws_requirements
from monkey_stacks.aws.fleet import make_fleet as make_aws_fleet
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from monkey_stacks.gcp import requirements as gcp_requirements
from monkey_stacks.gcp.fleet import make_fleet as make_gcp_fleet
from monkey_stacks.kubernetes import fleet as kubernetes_fleet
from monkey_stacks.pilots.engine_marker import read_marker
from monkey_stacks.pilots.pilot_fleet import PilotFleet
from monkey_stacks.provider_types import find_provider_type
from monkey_stacks.slurm import fleet as slurm_fleet
from monkey_stacks.ssh import fleet as ssh_fleet
from monkey_stacks.state.state_rules import StateRules

_ALL = (ssh_fleet.STATE_RULES, aws_requirements.STATE_RULES, gcp_requirements.STATE_RULES)


def _inspect(resource: StateResource, project: str, fleet: str) -> str:
    """Return what is wrong with a resource by the rules of its own type of fleet."""
    inspect = next(rules.inspect for rules in _ALL if resource.type in rules.types)
    return inspect(resource, project, fleet) if inspect else ""


#: To read a state of any type of fleet; Pulumi runs by the rules of its own type alone.
_ANY = StateRules(
    types=frozenset(type_ for rules in _ALL for type_ in rules.types),
    settings={package: names for rules in _ALL for package, names in rules.settings.items()},
    inspect=_inspect,
)


async def open_unlisted_fleet(
    name: str,
    project: str,
    store_url: str,
    opened: Callable[[], Store | None],
    signers: Callable[[], EntrySigners],
) -> Fleet | None:
    """Return the fleet whose state is under this name; None without resources. Raises StoreError, CorruptObject."""
    store = opened()
    if store is None:
        return None
    if (marker := await read_marker(store, project, name)) is not None:
        engines = kubernetes_fleet if marker.get("type") == "kubernetes" else slurm_fleet
        engine = engines.make_marked_engine(name, marker, project, store_url)
        return PilotFleet(name, engine.provider, project, store_url, opened, signers, engine)
    known = await PulumiEngine(store, project, name, _ANY).resources()
    if not known:
        return None
    type_ = find_provider_type(each.type for each in known)
    if type_ == "aws":
        return make_aws_fleet(name, _aws(known), project, store_url, opened, signers)
    if type_ == "gcp":
        return make_gcp_fleet(name, _gcp(known), project, store_url, opened, signers)
    return ssh_fleet.make_fleet(name, Provider("ssh"), project, store_url, opened, signers)


async def has_remains(name: str, project: str, opened: Callable[[], Store | None]) -> bool:
    """Return whether a state under this name has resources, or cannot be read. Raises StoreError."""
    store = opened()
    if store is None:
        return False
    try:
        return await read_marker(store, project, name) is not None or bool(
            await PulumiEngine(store, project, name, _ANY).resources()
        )
    except CorruptObject:
        return True


def _aws(known: Sequence[StateResource]) -> Provider:
    """Return as much of the provider as its destruction needs."""
    types = [each.inputs["instanceType"] for each in known if "instanceType" in each.inputs]
    return Provider("aws", cloud=CloudSettings(aws_requirements.find_region(known), tuple(types)))


def _gcp(known: Sequence[StateResource]) -> Provider:
    """Return as much of the provider as its destruction needs."""
    project, region, type_ = gcp_requirements.find_place(known)
    return Provider("gcp", cloud=CloudSettings(region, (type_,), gcp_project=project))
