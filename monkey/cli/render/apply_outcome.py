"""What came of sweeps: the last thing that `apply` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from monkey.apply.inspect.log_reading import AT_WORK
from monkey.apply.watch.sweep_progress import SweepProgress, WaitOutcome, judge_counts
from monkey.apply.world.sweep_status import judge_standing
from monkey.cli.render.failure_groups import format_failures
from monkey.cli.render.progress_lines import BestJob, format_best_job, format_state_counts
from monkey.cli.terminal.text import Terminal, flatten_text, make_printable, quote_log_line
from monkey.plan.advice import suggest_next_step
from monkey.protocol.status.store_snapshot import JobState, JobView, SweepView
from monkey.spec.job.expires import format_utc_time


def format_outcome(
    progress: Sequence[SweepProgress],
    best: Mapping[str, BestJob],
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
            lines.append(format_best_job(best[one.name]))
        if tables.get(one.name) and (changed or one.counts.get(JobState.FAILED)):
            lines += ["", *tables[one.name]]
        lines += format_failures(one, to)
    return lines


def _ended(one: SweepProgress, to: Terminal, *, changed: bool) -> list[str]:
    name = to.paint(flatten_text(one.name), "bold")
    if one.wait is WaitOutcome.SUCCEEDED:
        done = f"{name}: " + to.paint(format_full_success(one.total), "green")
        return [f"{done}." if changed else f"{done}; nothing to do."]
    more = "; nothing to do" if one.wait is WaitOutcome.STOPPED and not (changed or one.view.state.goal) else ""
    return [f"{name}: {format_state_counts(one.counts, to)}{more}.", *explain_hold(one)]


def explain_hold(one: SweepProgress) -> list[str]:
    """Return which order keeps a sweep from continuing, and what helps; nothing where none does."""
    at, why = judge_standing(one.view, one.counts), one.view.state.cancelled
    orders = ["is paused"] if at.paused else []
    what = "reached its goal" if one.view.state.goal else "was cancelled"
    orders += [what + (f" ({flatten_text(why)})" if why != "cancelled" else "")] if why is not None else []
    orders += [over] if (over := explain_expiry(one.view, one.counts)) else []
    # What helps where jobs failed is told behind the failures.
    then = "" if at.failed else f"; {flatten_text(suggest_next_step(at))}"
    return [f"It {' and '.join(orders)}{then}."] if orders else []


def explain_expiry(view: SweepView, counts: Mapping[JobState, int]) -> str:
    """Return that a sweep has expired, when, and what is left of it; "" where it has not, or nothing is."""
    left = counts.get(JobState.EXPIRED, 0) + counts.get(JobState.RUNNING, 0) + counts.get(JobState.FROZEN, 0)
    if not view.over or not left or view.state.expires is None or view.state.cancelled is not None:
        return ""
    jobs = "1 job" if left == 1 else f"{left:,} jobs"
    return f"has expired ({format_utc_time(view.state.expires)}) with {jobs} left"


def summarize_states(view: SweepView) -> str:
    """Return how a sweep's jobs stand, and why it was cancelled: "2 succeeded, 4 cancelled (enough)"."""
    counts, why = view.counts, view.state.cancelled
    if judge_counts(counts) is WaitOutcome.SUCCEEDED:
        return format_full_success(sum(counts.values()))
    reason = f" ({flatten_text(why)})" if why is not None and why != "cancelled" else ""
    return format_state_counts(counts, Terminal()) + reason


def format_full_success(jobs: int) -> str:
    """Return "all 3 jobs succeeded"."""
    return f"all {jobs:,} jobs succeeded" if jobs > 1 else "its job succeeded"


def explain_silence(what: str, jobs: Sequence[JobView]) -> list[str]:
    """Return why there is no log: the jobs may still write, or have ended without a word, or never began."""
    what, failed = flatten_text(what), next((job for job in jobs if job.state is JobState.FAILED), None)
    if any(job.state in AT_WORK for job in jobs):
        state = f"it is {jobs[0].state}" if len(jobs) == 1 else "none of its jobs has"
        return [f"{what} has written nothing yet ({state}); a log comes every 30 s, with -f every second"]
    if failed is not None:
        who = "" if len(jobs) == 1 else f"the first that failed: job {failed.job}: "
        said = [f"{what} wrote nothing; {who}{flatten_text(failed.reason or 'it failed, and no reason was recorded')}"]
        return said + [quote_log_line(line) for line in failed.log_tail]
    state = f"; it {jobs[0].state}" if len(jobs) == 1 and jobs[0].state is JobState.SUCCEEDED else ""
    return [f"{what} wrote nothing{state}"]


def format_detached(names: Sequence[str]) -> list[str]:
    """Return how to come back to sweeps that continue without us."""
    which = " ".join(names) if len(names) == 1 else ""
    some = names[0] if names else "NAME"
    listed, go = ", ".join(map(make_printable, names)), "goes" if len(names) == 1 else "go"
    return [
        f"Detached: {listed} {go} on without this terminal.",
        f"  monkey status {which}".rstrip().ljust(34) + "how it is doing",
        f"  monkey status -w {which}".rstrip().ljust(34) + "watch again",
        f"  monkey cancel {some}".ljust(34) + "stop it",
    ]
