"""Failed jobs, grouped by reason, with the end of one log."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.world.sweep_status import judge_standing
from monkey.cli.render.parameter_text import find_job_parameters, format_parameters
from monkey.cli.terminal.text import Terminal, flatten_text, format_plural, quote_log_line
from monkey.plan.advice import suggest_next_step
from monkey.plan.text.short_texts import cut_text
from monkey.protocol.status.store_snapshot import JobState, JobView
from monkey.results.causes.ended_jobs import EndedJobs
from monkey.results.causes.spec_offer import suggest_change
from monkey.results.failure_kinds import FailureKind, find_last_line, group_failures

#: Kinds of failure that are shown; the rest are counted.
_MAX_KINDS = 3
#: Last lines of a log that are shown.
LOG_LINES = 10


def format_failures(one: SweepProgress, to: Terminal) -> list[str]:
    """Return what went wrong: the commonest kinds of failure, the log's end for the first of each, and what helps."""
    if not one.counts.get(JobState.FAILED):
        return []
    kinds, ended = group_failures(one.view), EndedJobs(one.view)
    lines: list[str] = []
    for kind in kinds[:_MAX_KINDS]:
        lines += ["", *_told(one, kind, to), *_explain(one, kind, ended, to)]
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


def _in_short(kinds: Sequence[FailureKind]) -> str:
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


def _told(one: SweepProgress, kind: FailureKind, to: Terminal) -> list[str]:
    told = format_parameters(find_job_parameters(one.view, kind.first.job))
    who = f"{told}; job {kind.first.job}" if told else f"job {kind.first.job}"
    which = who if kind.count == 1 else f"the first: {who}"
    failed = f"{format_plural(kind.count, 'job')} failed: {_reason(kind.first)}"
    head = to.paint(failed, "red") + f" ({which}; signature {kind.signature})"
    return [head, *(_quoted(line, to) for line in kind.first.log_tail[-LOG_LINES:])]


def _explain(one: SweepProgress, kind: FailureKind, ended: EndedJobs, to: Terminal) -> list[str]:
    """Return the rule that separates these failures from what did not fail, and what of the spec would heed it."""
    rule = ended.explain(kind)
    diff = suggest_change(one.view, kind, rule)
    lines = [f"  {to.paint(flatten_text(str(rule)), 'yellow')}"] if rule else []
    if diff:
        lines += ["  a change of the spec that would spare such jobs:", *(f"    {flatten_text(line)}" for line in diff)]
    return lines


def _quoted(line: str, to: Terminal) -> str:
    shown = quote_log_line(line)
    return to.paint(cut_text(shown, to.width) if to.width else shown, "dim")
