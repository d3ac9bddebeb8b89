"""Failed jobs, sorted as a person would: those whose reason and last line say the same are of one kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from monkey.protocol.status.store_snapshot import JobState, JobView, SweepView
from monkey.spec.job.job_table import ParameterValue

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
#: Characters of a last line that are compared, and shown.
COMPARED = 300
#: Characters from which on a parameter's value is known for one where it stands in a line.
TELLING = 3


@dataclass
class FailureKind:
    """Failures that a person would call the same."""

    first: JobView
    count: int = 0


def normalize_failure(text: str, parameters: Mapping[str, ParameterValue] | None = None) -> str:
    """Return the text less what differs between jobs that fail alike: their parameters, paths, addresses, numbers."""
    for value in (parameters or {}).values():
        if isinstance(value, str) and len(value) >= TELLING and value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "#", text)
    for pattern in _VARYING:
        text = pattern.sub("#", text)
    return text


def find_last_line(job: JobView) -> str:
    """Return the last line that a job wrote before it failed by itself; "" where that says nothing of the failure."""
    if job.state is not JobState.FAILED or not (job.reason or _EXIT).startswith(_EXIT):
        return ""
    return next((line.strip()[:COMPARED] for line in reversed(job.log_tail) if line.strip()), "")


def group_failures(view: SweepView) -> list[FailureKind]:
    """Return the kinds of failure of a sweep, the commonest first."""
    kinds: dict[tuple[int | None, str, str], FailureKind] = {}
    revision = view.state.revision
    for job in view.ids:
        if revision is not None and view.where(job) is JobState.FAILED:
            seen = view.view(job)
            parameters = revision.table.parameters(revision.rows[job])
            key = (
                seen.exit_code,
                normalize_failure(seen.reason or ""),
                normalize_failure(find_last_line(seen), parameters),
            )
            kinds.setdefault(key, FailureKind(seen)).count += 1
    return sorted(kinds.values(), key=lambda kind: -kind.count)
