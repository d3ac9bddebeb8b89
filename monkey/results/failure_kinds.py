"""Failed jobs, sorted as a person would: those whose reason and last line say the same are of one kind.

A kind is known by its signature: six hex digits, the same on every machine and in every sweep.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from monkey.errors import NotFound
from monkey.plan.text.terminal_codes import read_log_line
from monkey.protocol.status.store_snapshot import JobState, JobView, SweepView
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ParameterValue
from monkey.spec.job.recipe import LOG_ELSEWHERE

#: Begins the reason of an attempt that ended by itself: only then is the last line of its log about the failure.
_EXIT = "exit code "
#: What differs from job to job where the mistake is the same, in the order of looking: paths and URLs; addresses and
#: hashes; numbers; and how many of these stand in a row.
_VARYING = (
    re.compile(r"(?<![\w.+~@%=:-])[\w.+~@%=:-]*/[^\s'\"(),;<>]*"),
    re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f-]*[0-9])[0-9a-f]{8}[0-9a-f-]*\b", re.IGNORECASE),
    re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?", re.IGNORECASE),
    re.compile(r"#(?:[\s,x×]*#)*,?"),
)
#: What only some of the jobs say that wanted the same environment or image.
_LOG_ELSEWHERE = re.compile(rf" \({re.escape(LOG_ELSEWHERE)} [^)\s]*\)")
#: Characters of a last line that are compared, and shown.
COMPARED = 300
#: Characters from which on a parameter's value is known for one where it stands in a line.
TELLING = 3
#: Hex digits of a signature: few to type, and two kinds of one sweep hardly ever share them.
SIGNATURE_DIGITS = 6
#: Signatures that an error names.
_NAMED = 5


class EndedJob(Protocol):
    """What a signature is made of; `JobView` is one."""

    @property
    def state(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def log_tail(self) -> Sequence[str]: ...


@dataclass
class FailureKind:
    """Failures that a person would call the same."""

    signature: str
    first: JobView
    #: In the spec's order.
    jobs: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many jobs failed so."""
        return len(self.jobs)


def normalize_failure(text: str, parameters: Mapping[str, ParameterValue] | None = None) -> str:
    """Return the text less what differs between jobs that fail alike: their parameters, paths, addresses, numbers."""
    for value in (parameters or {}).values():
        if isinstance(value, str) and len(value) >= TELLING and value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "#", text)
    return _replace_varying(text)


# Of very many jobs, most fail with one of a few texts.
@lru_cache(maxsize=1024)
def _replace_varying(text: str) -> str:
    text = _LOG_ELSEWHERE.sub("", text)
    for pattern in _VARYING:
        text = pattern.sub("#", text)
    return text


def sign_failure(job: EndedJob, parameters: Mapping[str, ParameterValue]) -> str:
    """Return the signature of a failed job; "" for one that did not fail."""
    if job.state != JobState.FAILED:
        return ""
    said = [job.exit_code, normalize_failure(job.reason or ""), normalize_failure(find_last_line(job), parameters)]
    # What is no text of any encoding (a lone surrogate) has a signature, too.
    return hashlib.sha256(dump_canonical_json(said).encode(errors="replace")).hexdigest()[:SIGNATURE_DIGITS]


def find_last_line(job: EndedJob) -> str:
    """Return the last line that a job wrote before it failed by itself; "" where that says nothing of the failure."""
    if job.state != JobState.FAILED or not (job.reason or _EXIT).startswith(_EXIT):
        return ""
    shown = (read_log_line(line).strip() for line in reversed(job.log_tail))
    return next(filter(None, shown), "")[:COMPARED]


def group_failures(view: SweepView) -> list[FailureKind]:
    """Return the kinds of failure of a sweep, the commonest first."""
    kinds: dict[str, FailureKind] = {}
    revision = view.state.revision
    failed = JobState.FAILED  # of an enumeration, a name is slow to find
    for job, state in zip(view.ids, view.states, strict=True):
        if revision is not None and state is failed:
            seen = view.view(job)
            signature = sign_failure(seen, revision.table.parameters(revision.rows[job]))
            kinds.setdefault(signature, FailureKind(signature, seen)).jobs.append(job)
    return sorted(kinds.values(), key=lambda kind: -kind.count)


def select_failures(view: SweepView, signature: str) -> list[str]:
    """Return the jobs that failed with this signature. Raises NotFound, naming the signatures that there are."""
    kinds = {kind.signature: kind.jobs for kind in group_failures(view)}
    if signature not in kinds:
        there = ", ".join(f"{name} ({len(jobs):,})" for name, jobs in list(kinds.items())[:_NAMED]) or "none"
        raise NotFound(
            f"no job of {view.state.name!r} failed with signature {signature!r}; signatures there: {there}",
            hint=f"`monkey status {view.state.name}` shows failures with their signatures",
        )
    return kinds[signature]
