"""What an operation on machines amounts to: our own small values, made from Pulumi's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from monkey.errors import FleetError


class ResourceOp(StrEnum):
    """What becomes of a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    SAME = "same"


@dataclass(frozen=True)
class ResourceChange:
    """What becomes of one resource, or would."""

    op: ResourceOp
    #: As Pulumi names it: "pulumi-python:dynamic/ssh:Host".
    type: str
    #: As the program names it.
    name: str
    #: Properties whose change makes it an update or a replacement.
    forced_by: tuple[str, ...] = ()
    #: What these are, and are to be; None for none.
    before: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()


class ChangeStage(StrEnum):
    """How far a change has come."""

    BEGAN = "began"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class EngineProgress:
    """One step of an operation that is running."""

    change: ResourceChange
    stage: ChangeStage
    #: For FAILED: why.
    text: str = ""


@dataclass(frozen=True)
class ResourceFailure:
    """One resource that could not be changed; the others were."""

    type: str
    name: str
    message: str


@dataclass(frozen=True)
class EngineOutcome:
    """What an operation did, or a preview says that it would do."""

    #: Every resource of the program, those that stay the same too; in the order in which the engine met them.
    changes: tuple[ResourceChange, ...] = ()
    failures: tuple[ResourceFailure, ...] = ()
    #: What Pulumi or a provider warned of.
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[ResourceChange, ...]:
        """The changes that are any, by name: the engine meets them in another order each time."""
        found = (change for change in self.changes if change.op is not ResourceOp.SAME)
        return tuple(sorted(found, key=lambda change: (change.name, change.type, change.op)))

    def check(self) -> None:
        """Raise FleetError, which names them all, where some resources could not be changed."""
        if self.failures:
            lines = [f"  {failure.name}: {failure.message}" for failure in self.failures]
            raise FleetError(
                f"{len(lines)} of {len(self.changes)} could not be changed:\n" + "\n".join(lines),
                hint="the others were; mend these, and try again",
            )


@dataclass(frozen=True)
class StateResource:
    """One resource, as the state in the store has it."""

    type: str
    name: str
    #: As its provider knows it.
    id: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    #: An operation on it was cut off: what the provider has may be anything between before and after.
    interrupted: bool = False


#: Is told of each step.
Watch = Callable[[EngineProgress], None]
#: Given the type and the inputs of a resource whose creation was cut off, returns the id under which its provider knows
#: it if it is there, and under which it can be updated or deleted even if it is not; None where nobody can tell, and ""
#: where it is known not to be there.
Identify = Callable[[str, Mapping[str, Any]], str | None]


def identify_nothing(type_: str, inputs: Mapping[str, Any]) -> str | None:
    """Know the id of no resource before it is there."""
    return None


def format_property(value: Any) -> str:
    """Return a property's value as people read it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "none" if value is None else str(value)
