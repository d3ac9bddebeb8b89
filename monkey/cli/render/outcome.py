"""What came of sweeps: the last thing that `apply` says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from monkey.apply.logs import AT_WORK
from monkey.apply.wait import Progress, Wait
from monkey.cli.render.progress import Best, best_text, counts_text
from monkey.cli.render.words import Terminal, cut, one_line, plural, printable
from monkey.protocol.snapshot import JobView, State
from monkey.spec.command import text_of
from monkey.spec.table import Value

#: Last lines of a failed job's log that are shown.
LOG_LINES = 10
_DIGITS = re.compile(r"[0-9]+").sub
#: Kinds of failure that are told apart; the rest are counted.
KINDS = 5


def outcome(
    progress: Sequence[Progress],
    best: Mapping[str, Best],
    tables: Mapping[str, Sequence[str]],
    to: Terminal,
    *,
    changed: bool,
) -> list[str]:
    """Return what became of every sweep: its best jobs (`tables`, lines by sweep), its failures, what to do next."""
    lines: list[str] = []
    for one in progress:
        lines += ["", *_ended(one, to, changed=changed)] if lines else _ended(one, to, changed=changed)
        if one.name in best:
            lines.append(best_text(best[one.name]))
        if tables.get(one.name) and (changed or one.counts.get(State.FAILED)):
            lines += ["", *tables[one.name]]
        lines += failures(one, to)
    return lines


def _ended(one: Progress, to: Terminal, *, changed: bool) -> list[str]:
    name = to.paint(one_line(one.name), "bold")
    if one.wait is Wait.SUCCEEDED:
        jobs = f"all {one.total:,} jobs" if one.total > 1 else "its job"
        done = f"{name}: " + to.paint(f"{jobs} succeeded", "green")
        return [f"{done}." if changed else f"{done}; nothing to do."]
    lines = [f"{name}: {counts_text(one.counts, to)}."]
    if one.wait is Wait.PAUSED:
        lines.append(f"It is paused; `monkey resume {one_line(one.name)}` goes on.")
    if one.view.state.cancelled is not None:
        why = one_line(one.view.state.cancelled)
        lines.append(f"It was cancelled ({why}); `monkey resume {one_line(one.name)}` goes on.")
    return lines


@dataclass
class _Kind:
    """Failures that look alike: same reason, same last line but for numbers."""

    first: JobView
    count: int = 0


def failures(one: Progress, to: Terminal) -> list[str]:
    """Return what went wrong: each kind of failure once, the log's end for the first."""
    kinds = _kinds(one)
    lines: list[str] = []
    for i, kind in enumerate(kinds[:KINDS]):
        reason = one_line(kind.first.reason or "no reason was recorded")
        told = parameters_text(_parameters(one, kind.first.job))
        who = f"{told}; job {kind.first.job}" if told else f"job {kind.first.job}"
        which = who if kind.count == 1 else f"the first: {who}"
        lines += ["", to.paint(f"{plural(kind.count, 'job')} failed: {reason}", "red") + f" ({which})"]
        if i == 0:
            lines += [_quoted(line, to) for line in kind.first.log_tail[-LOG_LINES:]]
    if len(kinds) > KINDS:
        rest = sum(kind.count for kind in kinds[KINDS:])
        lines += ["", f"… and {plural(rest, 'job')} that failed in {len(kinds) - KINDS} other ways"]
    if kinds:
        lines += [
            "",
            f"`monkey logs {kinds[0].first.job}` shows all of it; `monkey retry {one_line(one.name)}` tries again.",
        ]
    return lines


def _kinds(one: Progress) -> list[_Kind]:
    kinds: dict[tuple[str, str], _Kind] = {}
    for job in one.view.ids:
        if one.counts.get(State.FAILED) and one.view.where(job) is State.FAILED:
            view = one.view.view(job)
            last = next((line for line in reversed(view.log_tail) if line.strip()), "")
            # Numbers differ from job to job where the mistake is the same.
            kinds.setdefault((view.reason or "", _DIGITS("#", last)), _Kind(view)).count += 1
    return list(kinds.values())


def _quoted(line: str, to: Terminal) -> str:
    shown = f"  │ {one_line(line)}"
    return to.paint(cut(shown, to.width) if to.width else shown, "dim")


def _parameters(one: Progress, job: str) -> dict[str, Value]:
    revision = one.view.state.revision
    return revision.table.parameters(revision.rows[job]) if revision and job in revision.rows else {}


def parameters_text(parameters: Mapping[str, Value]) -> str:
    """Return "lr=0.1 seed=3", each value as the job got it."""
    return " ".join(f"{one_line(name)}={one_line(text_of(value)) or repr('')}" for name, value in parameters.items())


def silence(what: str, jobs: Sequence[JobView]) -> list[str]:
    """Return why there is no log: the jobs may still write, or have ended without a word, or never began."""
    what, failed = one_line(what), next((job for job in jobs if job.state is State.FAILED), None)
    if any(job.state in AT_WORK for job in jobs):
        state = f"it is {jobs[0].state}" if len(jobs) == 1 else "none of its jobs has"
        return [f"{what} has written nothing yet ({state}); a log comes every 30 s, with -f every second"]
    if failed is not None:
        who = "" if len(jobs) == 1 else f"the first that failed: job {failed.job}: "
        said = [f"{what} wrote nothing; {who}{one_line(failed.reason or 'it failed, and no reason was recorded')}"]
        return said + [f"  │ {one_line(line)}" for line in failed.log_tail]
    state = f"; it {jobs[0].state}" if len(jobs) == 1 and jobs[0].state is State.SUCCEEDED else ""
    return [f"{what} wrote nothing{state}"]


def detached(names: Sequence[str]) -> list[str]:
    """Return how to come back to sweeps that go on without us."""
    which = " ".join(names) if len(names) == 1 else ""
    some = names[0] if names else "NAME"
    return [
        f"Detached: {', '.join(map(printable, names))} {'goes' if len(names) == 1 else 'go'} on without this terminal.",
        f"  monkey status {which}".rstrip().ljust(34) + "how it is doing",
        f"  monkey status -w {which}".rstrip().ljust(34) + "watch again",
        f"  monkey cancel {some}".ljust(34) + "stop it",
    ]
