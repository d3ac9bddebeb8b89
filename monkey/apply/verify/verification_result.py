"""The result of a verification: what was checked, and what is not as it was recorded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class EvidenceKind(StrEnum):
    """A kind of things that a result rests on."""

    CODE = "code"
    DATA = "data"
    OUTPUTS = "outputs"
    FACTS = "facts"
    #: The numbers of a job's end, and the metric files that they were folded from.
    RECORD = "record"


#: What is found in place of an object that is not in the store.
MISSING = "missing"


@dataclass(frozen=True)
class Discrepancy:
    """One thing that is not as it was recorded."""

    kind: EvidenceKind
    key: str
    expected: str
    found: str
    #: The first job that rests on it; "" for all jobs of the sweep.
    job: str = ""


@dataclass
class VerificationResult:
    """What was checked of a sweep, or of one job."""

    #: Number of things that were checked, by kind; each once, however many jobs rest on it.
    checked: Counter[EvidenceKind] = field(default_factory=Counter)
    #: Bytes that were read.
    size: int = 0
    #: Jobs that have ended, and were checked; jobs that have not.
    ended: int = 0
    unfinished: int = 0
    wrong: list[Discrepancy] = field(default_factory=list)

    def note(self, kind: EvidenceKind, key: str, expected: str, found: str, job: str = "") -> None:
        """Take note of something that is not as it was recorded."""
        self.wrong.append(Discrepancy(kind, key, expected, found, job))
