"""Orders to sweeps that were applied: pause, resume, cancel, retry, extend. Each is one entry of the sweep's log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from monkey.apply.cost_limits import Agree, agree_to, extend_expiry, refuse_cost
from monkey.apply.execute import Say
from monkey.apply.fleet_work import call_for_agents
from monkey.apply.history.authorship import stamp_entry
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.world.lookup import find_job, find_sweep
from monkey.apply.world.world import World
from monkey.errors import MonkeyError
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_order
from monkey.spec.job.expires import Expiry


def say_nothing(what: str, done: str) -> None:
    """Ignore a report of what was done: a `Say` without output."""


@dataclass(frozen=True)
class OrderOutcome:
    """The outcome of an order to a sweep."""

    #: The sweep before the order; unchanged since, if `changed` is false.
    view: SweepView
    #: False: there was nothing to order, and nothing was written.
    changed: bool
    #: Number of jobs that the order retries, stops or opens again.
    jobs: int = 0
    #: Number of these that were running.
    running: int = 0
    #: Number of cancelled jobs that continue beside the retried ones.
    besides: int = 0


async def pause_sweep(world: World, name: str) -> OrderOutcome:
    """Pause the sweep: stop its running jobs, keep their checkpoints, and start none until a resume. Raises NotFound.

    A sweep that has no job left to run, or is not active, stays as it is.
    """
    view = find_sweep(await world.reader().read(), name)
    done = _done(view)
    if not view.state.active or not done.jobs:
        return OrderOutcome(view, changed=False)
    await append_order(world.at, world.keys, world.signers, name, "pause", stamp=stamp_entry())
    return done


async def cancel_sweep(world: World, name: str, reason: str) -> OrderOutcome:
    """Cancel the sweep: stop its running jobs, and start no queued one unless it is resumed. Raises NotFound.

    A sweep that has no job left to run, or is cancelled already, stays as it is.
    """
    view = find_sweep(await world.reader().read(), name)
    done = _done(view)
    if view.state.cancelled is not None or not done.jobs:
        return OrderOutcome(view, changed=False)
    await append_order(world.at, world.keys, world.signers, name, "cancel", reason=reason, stamp=stamp_entry())
    return done


async def resume_sweep(world: World, name: str, agree: Agree = refuse_cost, say: Say = say_nothing) -> OrderOutcome:
    """Resume a sweep that was paused or cancelled; where that costs, `agree` must consent. Raises NotFound."""
    view = find_sweep(await world.reader().read(), name)
    if view.state.active:
        return OrderOutcome(view, changed=False)
    await agree_to(world, view, agree)
    entry = await append_order(world.at, world.keys, world.signers, name, "resume", stamp=stamp_entry())
    done = _done(view)
    await _call_for_work(world, view, entry, say)
    return done


async def extend_sweep(
    world: World, name: str, asked: Expiry, agree: Agree, say: Say = say_nothing
) -> tuple[OrderOutcome, float | None]:
    """Extend a sweep by `asked`, from its expiry on, or from now if it has expired; where that costs, ask `agree`.

    Returns the outcome and the new expiry in seconds since the epoch (None: the sweep never expires). Raises NotFound,
    MonkeyError where the new expiry is not later, PlanError where it would cost too much.
    """
    view = find_sweep(await world.reader().read(), name)
    done = _done(view)
    if view.state.expires is None or not done.jobs:
        return OrderOutcome(view, changed=False), view.state.expires
    until = extend_expiry(world, view, asked)
    opened = not view.state.paused and view.state.cancelled is None
    if opened:
        await agree_to(world, view, agree, until)
    entry = await append_order(world.at, world.keys, world.signers, name, "extend", until=until, stamp=stamp_entry())
    if opened:
        await _call_for_work(world, view, entry, say)
    return done, until


async def retry_jobs(
    world: World,
    name: str,
    jobs: Collection[str] = (),
    *,
    choose: Callable[[SweepView], Sequence[str]] | None = None,
    stopped: bool = False,
    agree: Agree = refuse_cost,
    say: Say = say_nothing,
) -> OrderOutcome:
    """Retry jobs that failed, or met a condition of `stop_when`, with a fresh count of attempts. Raises NotFound.

    `jobs` are the beginnings of job ids; `choose` chooses failed jobs instead. Without either, all failed jobs are
    retried, and with `stopped` also those that met a condition. A cancelled sweep continues; a paused one waits for
    `resume_sweep`. Where that costs, `agree` must consent.
    """
    view = find_sweep(await world.reader().read(), name)
    chosen = choose(view) if choose else [_ended(view, job) for job in jobs]
    chosen = chosen or [job for job in view.ids if _again(view, job, stopped=stopped)]
    if not chosen:
        return OrderOutcome(view, changed=False)
    if not view.state.paused:
        await agree_to(world, view, agree, again=frozenset(chosen))
    since = {job: await _head(world, job) for job in chosen}
    entry = await append_order(world.at, world.keys, world.signers, name, "retry", jobs=since, stamp=stamp_entry())
    await _call_for_work(world, view, entry, say)
    return OrderOutcome(view, changed=True, jobs=len(chosen), besides=view.counts[JobState.CANCELLED] + view.left_out)


def _again(view: SweepView, job: str, *, stopped: bool) -> bool:
    where = view.where(job)
    return where is JobState.FAILED or (stopped and where is JobState.STOPPED and view.met(job) is not None)


def _ended(view: SweepView, beginning: str) -> str:
    """Return the failed or stopped job whose id begins with `beginning`.

    Raises NotFound, and MonkeyError for a job that neither failed nor met a condition.
    """
    job = find_job(view, beginning)
    if not _again(view, job, stopped=True):
        raise MonkeyError(f"job {job} of sweep {view.state.name!r} has not failed: it is {view.where(job)}")
    return job


def _done(view: SweepView) -> OrderOutcome:
    counts = view.counts
    running = counts[JobState.RUNNING] + counts[JobState.FROZEN]
    held = counts[JobState.PAUSED] + counts[JobState.CANCELLED] + counts[JobState.EXPIRED]
    waiting = counts[JobState.QUEUED] + held + view.left_out
    return OrderOutcome(view, changed=True, jobs=running + waiting, running=running)


async def _head(world: World, job: str) -> int:
    log = EntryLog(world.keys.job_log(job))
    await log.refresh(world.at)
    return log.head


async def _call_for_work(world: World, view: SweepView, entry: int, say: Say) -> None:
    """Queue the jobs that entry `entry` of the sweep's log opened again, and start agents for them; report to `say`."""
    assert view.state.revision is not None
    name, fleets = view.state.name, view.state.revision.settings.providers
    await mark_queue(world.at, world.keys, fleets, name, entry)
    for fleet in fleets:
        await call_for_agents(world, fleet, name, partial(say, fleet))
    await wait_for_agents(world.reader(), [world.fleet(fleet) for fleet in fleets])
