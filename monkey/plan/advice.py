"""What helps a sweep that does not continue by itself: said here once, for the plan, the screens and the verbs."""

from __future__ import annotations

from dataclasses import dataclass

#: The time that examples give a sweep besides.
_EXAMPLE_EXTENSION = "6h"


@dataclass(frozen=True)
class SweepSituation:
    """How a sweep stands, as far as advice depends on it."""

    name: str
    #: Jobs that failed for good, and jobs that neither failed nor succeeded.
    failed: int = 0
    unfinished: int = 0
    paused: bool = False
    cancelled: bool = False
    #: Does a failure cancel it?
    fail_fast: bool = False
    #: Did a job fail because the store does not have its data, or has it damaged?
    lacks_data: bool = False
    #: Has it expired, or is it about to?
    over: bool = False


def is_blocked(at: SweepSituation) -> bool:
    """Say whether it has jobs left, and an order that keeps them from running."""
    return bool(at.unfinished) and (at.paused or at.cancelled or at.over)


def suggest_next_step(at: SweepSituation) -> str:
    """Return what may be done next, without a full stop: "`monkey retry digits` tries again"."""
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
    """Return what has its failed jobs tried again, with a chance: "`monkey retry digits` tries again"."""
    return f"{_join_steps(*_list_retry_steps(at))} tries again"


def _suggest_more_time(at: SweepSituation) -> str:
    steps = [f"`monkey extend {at.name} {_EXAMPLE_EXTENSION}`"]
    if not (at.paused or at.cancelled):
        return suggest_extension(at.name) + (f" with the rest, {suggest_retry(at)} what failed" if at.failed else "")
    steps += _list_retry_steps(at) if at.failed else []
    steps += [f"`monkey resume {at.name}`"] if at.paused or not at.failed else []
    return f"{_join_steps(*steps)} goes on"


def suggest_extension(name: str) -> str:
    """Return what gives an expired sweep more time: "`monkey extend digits 6h` goes on"."""
    return f"`monkey extend {name} {_EXAMPLE_EXTENSION}` goes on"


def suggest_reopening(at: SweepSituation) -> str:
    """Return the verb that has a cancelled sweep continue to its end."""
    return f"`monkey {'retry' if _would_cancel_again(at) else 'resume'} {at.name}`"


def _would_cancel_again(at: SweepSituation) -> bool:
    """Would the next failure that is met cancel it again? Each of them does so once, however old it is."""
    return bool(at.failed) and at.fail_fast


def _list_retry_steps(at: SweepSituation) -> list[str]:
    retry = f"`monkey retry {at.name}`"
    return ["`monkey push` where the data is", retry] if at.lacks_data else [retry]


def _join_steps(*steps: str) -> str:
    return ", then ".join(steps) + ("," if len(steps) > 1 else "")
