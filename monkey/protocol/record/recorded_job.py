"""A job of a revision, with what is recorded of its result: enough to compare it with another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from monkey.protocol.status.job_view import JobView
from monkey.protocol.sweeps.revision import Revision


@dataclass(frozen=True)
class RecordedJob:
    """A job of a revision, with what is recorded of its result."""

    revision: Revision
    #: The revision's position in its sweep's log.
    number: int
    seen: JobView
    #: As `monkey.protocol.record.facts` has them; {} where none are recorded.
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: Why they cannot be read; "" where they can.
    trouble: str = ""

    @property
    def parameters(self) -> dict[str, Any]:
        """The job's parameters."""
        return self.revision.table.parameters(self.revision.rows[self.seen.job])

    def describe(self) -> dict[str, Any]:
        """Return who it is."""
        job = self.seen.job
        told = {"sweep": self.revision.sweep, "revision": self.number, "job": job, "state": str(self.seen.state)}
        adopts = self.revision.adopted.get(job)
        return told | ({"adopts": adopts} if adopts else {})
