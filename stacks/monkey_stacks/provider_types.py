"""The provider type of the machines in a state, found by Pulumi's types of their resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monkey.errors import FleetError

#: Provider type to the beginning of Pulumi's types of its resources.
_TYPE_PREFIXES = {"ssh": "pulumi-python:", "aws": "aws:", "gcp": "gcp:"}


def find_provider_type(types: Iterable[str]) -> str:
    """Return the type of the provider that makes resources of Pulumi's `types`; "" for none, or for unknown ones."""
    return next((name for each in types for name, begins in _TYPE_PREFIXES.items() if each.startswith(begins)), "")


def check_provider_type(types: Sequence[str], type_: str, fleet: str) -> None:
    """Raise FleetError where all machines of a state were made by another type of provider than `type_`.

    A provider can neither change nor remove resources of another type.
    """
    found = find_provider_type(types)
    if type_ and found not in ("", type_) and not any(each.startswith(_TYPE_PREFIXES[type_]) for each in types):
        raise FleetError(
            f"provider {fleet!r} is of type {type_} now, and has machines of type {found} still",
            hint=f"give the new one another name; then `monkey destroy --fleet {fleet}` takes the old ones away",
        )
