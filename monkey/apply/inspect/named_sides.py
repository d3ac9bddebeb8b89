"""From what a user types to two jobs or revisions to compare: JOB, SWEEP/JOB, SWEEP@3/JOB; SWEEP, SWEEP@3."""

from __future__ import annotations

import re
from typing import NamedTuple

from monkey.apply.inspect.attempt_records import read_attempts
from monkey.apply.inspect.result_facts import read_result_facts
from monkey.apply.world.lookup import find_job, find_revision, find_sweep, find_sweep_or_job
from monkey.apply.world.world import World
from monkey.errors import MonkeyError, NotFound
from monkey.protocol.record.recorded_job import RecordedJob
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.protocol.sweeps.sweep_log import list_revisions

_FORM = re.compile(r"(?P<sweep>[^@/]+)(?:@(?P<number>[0-9]{1,15}))?(?:/(?P<job>[0-9a-f]{1,16}))?")
_ID = re.compile(r"[0-9a-f]{4,16}").fullmatch


class _Side(NamedTuple):
    """A revision, by the view of its jobs; or one job of it."""

    view: SweepView
    revision: NumberedRevision
    #: None: the revision as a whole is meant.
    job: str | None = None


#: Two jobs, or two revisions.
ComparedSides = tuple[RecordedJob, RecordedJob] | tuple[NumberedRevision, NumberedRevision]


async def find_sides(world: World, snapshot: StoreSnapshot, whats: tuple[str, str]) -> ComparedSides:
    """Return the two that are meant. Raises NotFound, StoreError; MonkeyError for a job beside a revision.

    A job that no newest revision has is looked for in earlier ones, the newest of these first.
    """
    before, after = [await _find_side(world, snapshot, what) for what in whats]
    if before.job is not None and after.job is not None:
        return await _read_job(world, before, before.job), await _read_job(world, after, after.job)
    if before.job is None and after.job is None:
        return before.revision, after.revision
    kinds = zip(whats, (before, after), strict=True)
    found = ", ".join(f"{what} is a {'revision' if one.job is None else 'job'}" for what, one in kinds)
    raise MonkeyError(
        f"expected two jobs or two revisions: {found}",
        hint="name jobs as JOB, SWEEP/JOB or SWEEP@3/JOB, and revisions as SWEEP or SWEEP@3",
    )


async def _find_side(world: World, snapshot: StoreSnapshot, what: str) -> _Side:
    form = _FORM.fullmatch(what)
    if form is None:
        raise NotFound(
            f"expected a job or a revision, found {what!r}", hint="write JOB, SWEEP/JOB, SWEEP@3/JOB, SWEEP or SWEEP@3"
        )
    sweep, number, job = form["sweep"], form["number"], form["job"]
    if number is None and job is None:
        return await _find_plain(world, snapshot, sweep)
    view = find_sweep(snapshot, sweep)
    if number is not None:
        revision = find_revision(await list_revisions(world.at, world.keys, world.signers, sweep), int(number), sweep)
        view = view.with_revision(revision.revision)
        return _Side(view, revision, find_job(view, job) if job else None)
    try:
        return _make_newest(view, find_job(view, job))
    except NotFound:
        if found := await _find_earlier(world, view, job):
            return found
        raise


async def _find_plain(world: World, snapshot: StoreSnapshot, what: str) -> _Side:
    try:
        found = find_sweep_or_job(snapshot, what)
    except NotFound:
        for view in snapshot.sweeps.values() if _ID(what) else ():
            if earlier := await _find_earlier(world, view, what):
                return earlier
        raise
    return _make_newest(found.view, found.job)


def _make_newest(view: SweepView, job: str | None) -> _Side:
    revision = view.state.revision
    assert revision is not None  # it was found
    return _Side(view, NumberedRevision(view.state.revision_at, revision), job)


async def _find_earlier(world: World, view: SweepView, beginning: str) -> _Side | None:
    """Return the job of the newest earlier revision that has one whose id begins so. Raises NotFound for several."""
    for one in reversed(await list_revisions(world.at, world.keys, world.signers, view.state.name)):
        if any(job.startswith(beginning) for job in one.revision.table.ids):
            old = view.with_revision(one.revision)
            return _Side(old, one, find_job(old, beginning))
    return None


async def _read_job(world: World, side: _Side, job: str) -> RecordedJob:
    facts = await read_result_facts(world, await read_attempts(world, side.view, job))
    numbered, seen = side.revision, side.view.view(job)
    if facts is None:
        return RecordedJob(numbered.revision, numbered.number, seen)
    return RecordedJob(numbered.revision, numbered.number, seen, facts.facts, facts.trouble)
