"""The provider type of the machines in a state, found by Pulumi's types of their resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monkey.errors import FleetError
from monkey_stacks.engine.engine_outcome import StateResource

#: Provider type to the beginning of Pulumi's types of its resources.
_TYPE_PREFIXES = {"ssh": "pulumi-python:", "aws": "aws:", "gcp": "gcp:"}


def find_provider_type(known: Iterable[StateResource]) -> str:
    """Return the type of the provider that made these resources; "" for none, or for unknown ones."""
    return next((name for each in known for name, begins in _TYPE_PREFIXES.items() if each.type.startswith(begins)), "")


def check_provider_type(known: Sequence[StateResource], type_: str, fleet: str) -> None:
    """Raise FleetError where not all of these resources were made by this type of provider.

    A provider can neither change nor remove resources of another type. A resource that no type makes was written into
    the state by another program.
    """
    if (found := find_provider_type(known)) not in ("", type_):
        raise FleetError(
            f"provider {fleet!r} is of type {type_} now, and has machines of type {found} still",
            hint=f"give the new one another name; then `monkey destroy --fleet {fleet}` takes the old ones away",
        )
    strange = next((each for each in known if not each.type.startswith(_TYPE_PREFIXES[type_])), None)
    if strange is not None:
        raise FleetError(
            f"the state of provider {fleet!r} (below machines/{fleet}/state in the store) names {strange.name!r} "
            f"of type {strange.type!r}, which monkey does not make",
            hint="somebody may have changed that object: find out who wrote it, and put an older version in its place",
        )
