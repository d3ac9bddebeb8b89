"""The error for a resource at a cloud that the state names, and that belongs to another stack or to no fleet at all."""

from __future__ import annotations

from collections.abc import Mapping

from monkey.errors import FleetError

#: Characters of a foreign text that an error shows.
_SHOWN = 300


def make_foreign_error(
    cloud: str, thing: str, fleet: str, wanted: Mapping[str, str], found: Mapping[str, str]
) -> FleetError:
    """Return the error for a resource of the state that is not ours at the cloud; `wanted`, `found`: its marks."""
    differing = [name for name, value in wanted.items() if found.get(name) != value]
    expected = ", ".join(f"{name}={wanted[name]}" for name in differing)
    there = ", ".join(f"{name}={found[name][:_SHOWN]!r}" for name in differing if name in found) or "none of these"
    return FleetError(
        f"the state of provider {fleet!r} (below machines/{fleet}/state in the store) names the {thing[:_SHOWN]} at "
        f"{cloud}, which is not this fleet's: expected {expected}, found {there}. Nothing was changed",
        hint="another program may have changed that state to have the resource changed or deleted: find out who wrote "
        "it, and put an older version in its place. If the resource is the fleet's, give it what was expected again",
    )
