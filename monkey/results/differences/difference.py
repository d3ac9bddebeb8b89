"""A difference: who was compared, and the parts in which the two differ. Equal parts are not in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from monkey.results.differences.code_difference import CodeDifference
from monkey.results.differences.data_difference import DataChange
from monkey.results.differences.value_change import ValueChange


class PartDifference(NamedTuple):
    """Values of one kind that differ, such as the parameters."""

    name: str
    changes: tuple[ValueChange, ...]
    #: Does a result depend on them? What came of a job, and where it ran, are no inputs.
    inputs: bool = True
    #: Are they measured, so that it matters by how much they differ?
    measured: bool = False

    def to_json(self) -> list[dict[str, Any]]:
        """Return the changes for programs; with the difference of the numbers, where they are measured."""
        steps = [{"difference": one.step} if self.measured and one.step is not None else {} for one in self.changes]
        return [one.to_json() | step for one, step in zip(self.changes, steps, strict=True)]


class JobsDifference(NamedTuple):
    """Jobs that the second revision adds, removes, and has in the place of others; and how many both have."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    #: The job before, and the one with the same parameters after: its recipe is another.
    changed: tuple[tuple[str, str], ...]
    same: int
    #: The added and the removed ones in words, a few lines each.
    added_words: tuple[str, ...] = ()
    removed_words: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        changed = [{"a": before, "b": after} for before, after in self.changed]
        return {"added": self.added, "removed": self.removed, "changed": changed, "same": self.same}


@dataclass(frozen=True)
class Difference:
    """What differs between two jobs or revisions, A and B."""

    #: "job" or "revision".
    kind: str
    #: For programs and people: "sweep", "revision", "job" and what else names a side.
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    parts: tuple[PartDifference, ...]
    code: CodeDifference | None = None
    data: tuple[DataChange, ...] = ()
    jobs: JobsDifference | None = None
    #: What could not be compared, and why.
    notes: tuple[str, ...] = ()

    @property
    def has_other_inputs(self) -> bool:
        """Does anything differ that results depend on, or that a revision wants?"""
        return bool(self.code or self.data or self.jobs or any(part.inputs for part in self.parts))

    def to_json(self) -> dict[str, Any]:
        """Return it for programs; a part that is equal has no key."""
        told: dict[str, Any] = {"kind": self.kind, "a": self.before, "b": self.after}
        told["equal_inputs"] = not self.has_other_inputs
        told |= {"jobs": self.jobs.to_json()} if self.jobs else {}
        told |= {part.name: part.to_json() for part in self.parts}
        told |= {"code": self.code.to_json()} if self.code else {}
        told |= {"data": [one.to_json() for one in self.data]} if self.data else {}
        return told | ({"notes": self.notes} if self.notes else {})
