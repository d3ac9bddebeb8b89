"""The rules for the state of one type of fleet: the resources that its program registers, and the inputs of providers.

Writers of the store may write the state too. It names plugins, their settings and pickled code, so all of it is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from monkey_stacks.engine.engine_outcome import StateResource

#: Returns what is wrong with a resource that was recorded for this project and fleet; "" for nothing.
Inspect = Callable[[StateResource, str, str], str]


@dataclass(frozen=True)
class StateRules:
    """What may be in a state. The rules of no type of fleet permit no resource."""

    #: The provider's type: "ssh". "" for a program that no fleet has.
    kind: str = ""
    #: Pulumi's types of the resources that the program registers.
    types: Collection[str] = frozenset()
    #: Package of Pulumi's to the settings of its provider that the program and the package's library give.
    settings: Mapping[str, Collection[str]] = field(default_factory=dict)
    inspect: Inspect | None = None
    #: Returns our own pickled providers of dynamic resources, by Pulumi's types; it needs Pulumi's library.
    pickle: Callable[[], Mapping[str, str]] = dict


def explain_misreading(resource: StateResource, readers: Collection[Callable[[list[StateResource]], object]]) -> str:
    """Return what is wrong with a resource by those who read it: a value of another type ends them by such an error."""
    for read in readers:
        try:
            read([resource])
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
            return f"has inputs that monkey does not write ({exc!r})"
    return ""
