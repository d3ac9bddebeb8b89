"""The advice for sweeps that do not continue by themselves: one text for the plan, the screens and the verbs."""

from __future__ import annotations

from dataclasses import dataclass

#: The time by which examples extend a sweep.
_EXAMPLE_EXTENSION = "6h"


@dataclass(frozen=True)
class SweepSituation:
    """The state of a sweep, as far as advice depends on it."""

    name: str
    #: Number of jobs that failed for good, and of jobs that are not finished.
    failed: int = 0
    unfinished: int = 0
    paused: bool = False
    cancelled: bool = False
    #: Whether a failure cancels it.
    fail_fast: bool = False
    #: Whether a job failed because the store does not have its data, or has it damaged.
    lacks_data: bool = False
    #: Whether it has expired, or is about to.
    over: bool = False


def is_blocked(at: SweepSituation) -> bool:
    """Return whether the sweep has jobs left that cannot run: it is paused, cancelled or expired."""
    return bool(at.unfinished) and (at.paused or at.cancelled or at.over)


def suggest_next_step(at: SweepSituation) -> str:
    """Return the next step for the sweep, without a full stop: "`monkey retry digits` tries again"."""
    if at.over and at.unfinished:
        return _suggest_more_time(at)
    if is_blocked(at) and not _would_cancel_again(at):
        rest = f" with the rest, {suggest_retry(at)} what failed" if at.failed else ""
        return f"`monkey resume {at.name}` goes on{rest}"
    if at.unfinished and not is_blocked(at):
        watch = f"`monkey status -w {at.name}` watches"
        return f"{watch}, {suggest_retry(at)} what failed" if at.failed else watch
    if at.failed and at.paused:
        return f"{_join_steps(*_list_retry_steps(at), f'`monkey resume {at.name}`')} tries again"
    if at.failed:
        return suggest_retry(at) + (" and goes on with the rest" if is_blocked(at) else "")
    return f"`monkey results {at.name}` shows them"


def suggest_retry(at: SweepSituation) -> str:
    """Return the steps that retry its failed jobs with a chance of success: "`monkey retry digits` tries again"."""
    return f"{_join_steps(*_list_retry_steps(at))} tries again"


def _suggest_more_time(at: SweepSituation) -> str:
    steps = [f"`monkey extend {at.name} {_EXAMPLE_EXTENSION}`"]
    if not (at.paused or at.cancelled):
        return suggest_extension(at.name) + (f" with the rest, {suggest_retry(at)} what failed" if at.failed else "")
    steps += _list_retry_steps(at) if at.failed else []
    steps += [f"`monkey resume {at.name}`"] if at.paused or not at.failed else []
    return f"{_join_steps(*steps)} goes on"


def suggest_extension(name: str) -> str:
    """Return the sentence with the verb that extends an expired sweep: "`monkey extend digits 6h`", and its effect."""
    return f"`monkey extend {name} {_EXAMPLE_EXTENSION}` goes on"


def suggest_reopening(at: SweepSituation) -> str:
    """Return the verb that makes a cancelled sweep continue to its end."""
    return f"`monkey {'retry' if _would_cancel_again(at) else 'resume'} {at.name}`"


def _would_cancel_again(at: SweepSituation) -> bool:
    """Return whether a failed job would cancel the resumed sweep again: each failure does so once, however old."""
    return bool(at.failed) and at.fail_fast


def _list_retry_steps(at: SweepSituation) -> list[str]:
    retry = f"`monkey retry {at.name}`"
    return ["`monkey push` where the data is", retry] if at.lacks_data else [retry]


def _join_steps(*steps: str) -> str:
    return ", then ".join(steps) + ("," if len(steps) > 1 else "")
