"""The numbered desired state of a sweep: everything an agent needs to run its jobs, and a plan to compare with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from monkey.errors import CorruptObject
from monkey.protocol import entry_shape
from monkey.protocol.sweeps.revision_shape import REVISION
from monkey.signing.entry_signers import Signer
from monkey.spec.job.job_table import JobTable
from monkey.spec.job.recipe import Recipe, SweepSettings


@dataclass(frozen=True)
class Revision:
    """One revision, as appended to its sweep's log."""

    sweep: str
    recipe: Recipe
    settings: SweepSettings
    table: JobTable
    #: The spec as written, and its path in the repository.
    spec_text: str = ""
    source: str = ""
    #: Path to SHA-256 of every file of the code snapshot: lets a plan name the file that made jobs stale.
    code_files: dict[str, str] = field(default_factory=dict)
    #: What `GitInfo` has, None outside a repository.
    git: dict[str, Any] | None = None
    author: str = ""
    #: ISO 8601; for people.
    at: str = ""
    #: When it was applied, seconds since the epoch, where that decides anything: where it expires.
    applied: float = 0.0
    #: Why it was applied though it would have been refused; "" for most.
    force: str = ""
    #: The earlier revision whose content this one brings back; 0 for most.
    restores: int = 0
    #: Job of this table to the finished job whose result it adopts.
    adopted: dict[str, str] = field(default_factory=dict)
    #: The digest of the plan that it was part of; "" where an earlier version applied it.
    plan: str = ""
    #: Job of this table to the finished job that it runs once more, to be compared; {} for all sweeps but checks.
    checks: dict[str, str] = field(default_factory=dict)
    #: Whether who applied it could know that scripts stop where a part fails: earlier versions' did not.
    strict: bool = False

    @cached_property
    def rows(self) -> dict[str, int]:
        """Job to its row of the table."""
        return {job: row for row, job in enumerate(self.table.ids)}

    @property
    def at_seconds(self) -> float:
        """`at` in seconds since the epoch; 0 where nothing is said."""
        return datetime.fromisoformat(self.at).timestamp() if self.at else 0.0

    @property
    def expires(self) -> float | None:
        """When it does, seconds since the epoch, UTC; None for never."""
        asked = self.settings.expires
        return asked.until(self.applied) if asked else None

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        later: dict[str, Any] = {"applied": self.applied} if self.applied else {}
        later |= {"force": self.force} if self.force else {}
        later |= {"restores": self.restores} if self.restores else {}
        later |= {"plan": self.plan} if self.plan else {}
        later |= {"checks": self.checks} if self.checks else {}
        later |= {"strict": True} if self.strict else {}
        return later | {
            "sweep": self.sweep,
            "recipe": self.recipe.to_json(),
            "settings": self.settings.to_json(),
            "table": self.table.to_json(),
            "spec": self.spec_text,
            "source": self.source,
            "code_files": self.code_files,
            "git": self.git,
            "author": self.author,
            "at": self.at,
            "adopted": self.adopted,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Revision:
        """Read what `to_json` wrote."""
        return cls(
            sweep=data["sweep"],
            recipe=Recipe.from_json(data["recipe"]),
            settings=SweepSettings.from_json(data["settings"]),
            table=JobTable.from_json(data["table"]),
            spec_text=data["spec"],
            source=data["source"],
            code_files=data["code_files"],
            git=data["git"],
            author=data["author"],
            at=data["at"],
            applied=data.get("applied", 0.0),
            # `rollback` is what an earlier version kept instead of a reason.
            force=data.get("force") or ("--rollback" if data.get("rollback") else ""),
            restores=data.get("restores", 0),
            adopted=data["adopted"],
            plan=data.get("plan", ""),
            checks=data.get("checks", {}),
            strict=data.get("strict", False),
        )


class NumberedRevision(NamedTuple):
    """A revision, its position in the sweep's log, and who signed it as far as that was asked."""

    number: int
    revision: Revision
    signer: Signer | None = None


def decode_order(key: str, data: bytes) -> dict[str, Any]:
    """Read an entry of a sweep's log, whatever its kind; raises CorruptObject."""
    try:
        body = entry_shape.parse_object(data)
        if body.get("kind") not in _ORDER_KINDS:
            raise entry_shape.MalformedEntry(f"its kind is none of {', '.join(_ORDER_KINDS)}")
        entry_shape.check_shape({name: body[name] for name in _SHAPE if name in body}, _SHAPE)
    except ValueError as exc:
        raise CorruptObject(key, f"expected a sweep's log entry, found {data[:40]!r} ({exc})") from exc
    return body


#: What the fields of orders are.
_SHAPE = {
    "reason": entry_shape.is_text,
    "jobs": entry_shape.is_whole_map,
    "goal": entry_shape.is_flag,
    "cause": lambda value: entry_shape.is_claims([value]),
    "until": entry_shape.is_moment,
    **REVISION,
}

#: What may stand in a sweep's log.
_ORDER_KINDS = ("revision", "pause", "resume", "cancel", "retry", "extend", "seen")
