"""How far the jobs of a sweep are, counted by state, as a plan that is compared with it needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from monkey.plan.observed import ObservedSweep
from monkey.spec.job.stop_when import StopRule, find_met_rule


def find_reopened_jobs(seen: ObservedSweep, rules: Sequence[StopRule]) -> set[str]:
    """Return the jobs that met a condition, and would not have met any of these."""
    return {job for job, met in seen.stopped.items() if not find_met_rule(rules, met)}


def count_all_states(seen: ObservedSweep, rules: Sequence[StopRule]) -> Counter[str]:
    """The states of all jobs of the newest revision, without looking at each."""
    again = len(find_reopened_jobs(seen, rules))
    running = len(seen.running - seen.succeeded - seen.failed)
    return +Counter(
        succeeded=len(seen.succeeded),
        failed=len(seen.failed),
        stopped=len(seen.stopped) - again,
        running=running,
        queued=seen.unfinished - running + again,
    )


def count_states(jobs: Iterable[str], seen: ObservedSweep, rules: Sequence[StopRule]) -> Counter[str]:
    """The states of some jobs."""
    stopped = seen.stopped.keys() - find_reopened_jobs(seen, rules)
    places = {"succeeded": seen.succeeded, "failed": seen.failed, "running": seen.running, "stopped": stopped}
    return Counter(next((name for name, there in places.items() if job in there), "queued") for job in jobs)
