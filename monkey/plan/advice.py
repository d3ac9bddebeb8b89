"""What helps a sweep that does not go on by itself: said here once, for the plan, the screens and the verbs."""

from __future__ import annotations

from dataclasses import dataclass

#: The time that examples give a sweep besides.
MORE = "6h"


@dataclass(frozen=True)
class Standing:
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


def stopped(at: Standing) -> bool:
    """Say whether it has jobs left, and an order that keeps them from running."""
    return bool(at.unfinished) and (at.paused or at.cancelled or at.over)


def helps(at: Standing) -> str:
    """Return what may be done next, without a full stop: "`monkey retry digits` tries again"."""
    if at.over and at.unfinished:
        return _more_time(at)
    if stopped(at) and not _fails_at_once(at):
        rest = f" with the rest, {tries_again(at)} what failed" if at.failed else ""
        return f"`monkey resume {at.name}` goes on{rest}"
    if at.unfinished and not stopped(at):
        watch = f"`monkey status -w {at.name}` watches"
        return f"{watch}, {tries_again(at)} what failed" if at.failed else watch
    if at.failed and at.paused:
        return f"{_steps(*_retry(at), f'`monkey resume {at.name}`')} tries again"
    if at.failed:
        return tries_again(at) + (" and goes on with the rest" if stopped(at) else "")
    return f"`monkey results {at.name}` shows them"


def tries_again(at: Standing) -> str:
    """Return what has its failed jobs tried again, with a chance: "`monkey retry digits` tries again"."""
    return f"{_steps(*_retry(at))} tries again"


def _more_time(at: Standing) -> str:
    steps = [f"`monkey extend {at.name} {MORE}`"]
    if not (at.paused or at.cancelled):
        return goes_on(at.name) + (f" with the rest, {tries_again(at)} what failed" if at.failed else "")
    steps += _retry(at) if at.failed else []
    steps += [f"`monkey resume {at.name}`"] if at.paused or not at.failed else []
    return f"{_steps(*steps)} goes on"


def goes_on(name: str) -> str:
    """Return what gives an expired sweep more time: "`monkey extend digits 6h` goes on"."""
    return f"`monkey extend {name} {MORE}` goes on"


def opens(at: Standing) -> str:
    """Return the verb that has a cancelled sweep go on to its end."""
    return f"`monkey {'retry' if _fails_at_once(at) else 'resume'} {at.name}`"


def _fails_at_once(at: Standing) -> bool:
    """Would the next failure that is met cancel it again? Each of them does so once, however old it is."""
    return bool(at.failed) and at.fail_fast


def _retry(at: Standing) -> list[str]:
    retry = f"`monkey retry {at.name}`"
    return ["`monkey push` where the data is", retry] if at.lacks_data else [retry]


def _steps(*steps: str) -> str:
    return ", then ".join(steps) + ("," if len(steps) > 1 else "")
