"""Failed jobs, grouped by reason, with the end of one log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.world.sweep_status import judge_standing
from monkey.cli.render.parameter_text import find_job_parameters, format_parameters
from monkey.cli.terminal.text import Terminal, cut_text, flatten_text, format_plural
from monkey.plan.advice import suggest_next_step
from monkey.protocol.status.store_snapshot import JobState, JobView
from monkey.spec.job.job_table import ParameterValue

#: Kinds of failure that are shown; the rest are counted.
_MAX_KINDS = 3
#: Last lines of a log that are shown.
LOG_LINES = 10
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
class _Kind:
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


def format_failures(one: SweepProgress, to: Terminal) -> list[str]:
    """Return what went wrong: the commonest kinds of failure, the log's end for the first of each, and what helps."""
    if not one.counts.get(JobState.FAILED):
        return []
    kinds = _kinds(one)
    lines: list[str] = []
    for kind in kinds[:_MAX_KINDS]:
        lines += ["", *_told(one, kind, to)]
    if rest := kinds[_MAX_KINDS:]:
        count = format_plural(sum(kind.count for kind in rest), "more job")
        lines += ["", f"… and {count} failed: {_in_short(rest)}. {_listing(one)} shows each."]
    at = judge_standing(one.view, one.counts)
    changed = "" if at.paused or (at.lacks_data and len(kinds) == 1) else "; after a change of the code, `monkey apply`"
    return [
        *lines,
        "",
        f"`monkey logs {kinds[0].first.job}` shows all of it; {flatten_text(suggest_next_step(at))}{changed}.",
    ]


def _in_short(kinds: Sequence[_Kind]) -> str:
    """Return "exit code 1 with 5 other last lines, timed out after 5s"."""
    said: dict[str, int] = {}
    for kind in kinds:
        reason = _reason(kind.first)
        said[reason] = said.get(reason, 0) + bool(find_last_line(kind.first))
    told = [
        reason + (f" with {format_plural(lines, 'other last line')}" if lines else "") for reason, lines in said.items()
    ]
    return ", ".join([*told[:_MAX_KINDS], *(["…"] if len(told) > _MAX_KINDS else [])])


def _listing(one: SweepProgress) -> str:
    return f"`monkey list jobs {flatten_text(one.name)} --state failed`"


def _reason(job: JobView) -> str:
    return flatten_text(job.reason or "no reason was recorded")


def _told(one: SweepProgress, kind: _Kind, to: Terminal) -> list[str]:
    told = format_parameters(find_job_parameters(one.view, kind.first.job))
    who = f"{told}; job {kind.first.job}" if told else f"job {kind.first.job}"
    which = who if kind.count == 1 else f"the first: {who}"
    head = to.paint(f"{format_plural(kind.count, 'job')} failed: {_reason(kind.first)}", "red") + f" ({which})"
    return [head, *(_quoted(line, to) for line in kind.first.log_tail[-LOG_LINES:])]


def _kinds(one: SweepProgress) -> list[_Kind]:
    """Return the kinds of failure, the commonest first."""
    kinds: dict[tuple[int | None, str, str], _Kind] = {}
    for job in one.view.ids:
        if one.view.where(job) is JobState.FAILED:
            view = one.view.view(job)
            key = (
                view.exit_code,
                normalize_failure(view.reason or ""),
                normalize_failure(find_last_line(view), find_job_parameters(one.view, job)),
            )
            kinds.setdefault(key, _Kind(view)).count += 1
    return sorted(kinds.values(), key=lambda kind: -kind.count)


def _quoted(line: str, to: Terminal) -> str:
    shown = f"  │ {flatten_text(line)}"
    return to.paint(cut_text(shown, to.width) if to.width else shown, "dim")
