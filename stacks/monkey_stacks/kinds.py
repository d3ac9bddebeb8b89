"""Of which type of provider the machines of a state are: by what Pulumi calls them."""

from __future__ import annotations

from collections.abc import Iterable

from monkey.errors import FleetError
from monkey_stacks.outcome import Resource

#: Type of a provider to how Pulumi's types of its resources begin.
KINDS = {"ssh": "pulumi-python:", "aws": "aws:", "gcp": "gcp:"}


def kind(known: Iterable[Resource]) -> str:
    """Return the type of provider that made these; "" for none, or for what nobody knows."""
    return next((name for each in known for name, begins in KINDS.items() if each.type.startswith(begins)), "")


def check(known: Iterable[Resource], type_: str, fleet: str) -> None:
    """Raise FleetError where another type of provider made these: ours could neither change nor remove them."""
    if (found := kind(known)) not in ("", type_):
        raise FleetError(
            f"provider {fleet!r} is of type {type_} now, and has machines of type {found} still",
            hint=f"give the new one another name; then `monkey destroy --fleet {fleet}` takes the old ones away",
        )
