"""From what a user types (a sweep's name, a job's id or the beginning of one) to what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from monkey.errors import NotFound
from monkey.protocol.status.store_snapshot import StoreSnapshot, SweepView
from monkey.protocol.sweeps.revision import NumberedRevision
from monkey.protocol.sweeps.sweep_state import make_missing_sweep

#: What a job's id, or its beginning, looks like.
_ID = re.compile(r"[0-9a-f]{1,16}").fullmatch


class LookupResult(NamedTuple):
    """A sweep, or one job of it."""

    view: SweepView
    #: None: the sweep as a whole is meant.
    job: str | None = None


def find_sweep_or_job(snapshot: StoreSnapshot, what: str) -> LookupResult:
    """Return the sweep of that name, or the job whose id begins so, in the first sweep that has it.

    SWEEP/JOB is the job of that sweep. Raises NotFound.
    """
    sweep, slash, beginning = what.partition("/")
    if slash:
        view = find_sweep(snapshot, sweep)
        return LookupResult(view, find_job(view, beginning))
    if what in snapshot.sweeps and (snapshot.sweeps[what].state.revision or snapshot.sweeps[what].state.skipped.total):
        return LookupResult(find_sweep(snapshot, what))
    matches = _jobs(snapshot.sweeps.values(), what)
    if not matches:
        raise make_not_found(what, snapshot.sweeps, "sweep or job")
    job = _one(what, matches)
    return LookupResult(matches[job], job)


class ChosenJob(NamedTuple):
    """A job, and the sweep in which it was found."""

    view: SweepView
    job: str


def find_jobs(snapshot: StoreSnapshot, whats: Iterable[str]) -> list[ChosenJob]:
    """Return the jobs that are meant, those of a sweep in the spec's order, each once. Raises NotFound."""
    found: dict[str, ChosenJob] = {}
    for what in whats:
        view, job = find_sweep_or_job(snapshot, what)
        for each in [job] if job else view.ids:
            found.setdefault(each, ChosenJob(view, each))
    return list(found.values())


def find_job(view: SweepView, beginning: str) -> str:
    """Return the sweep's job whose id begins so. Raises NotFound."""
    matches = _jobs([view], beginning)
    if not matches:
        raise NotFound(f"sweep {view.state.name!r} has no job {beginning!r}", hint="`monkey list jobs` names them")
    return _one(beginning, matches)


def find_sweep(snapshot: StoreSnapshot, name: str) -> SweepView:
    """Return the sweep of that name. Raises NotFound, which names the entries of its log that are skipped."""
    view = snapshot.sweeps.get(name)
    if view is not None and view.state.revision is not None:
        return view
    if view is not None and view.state.skipped.total:
        raise make_missing_sweep(view.state)
    raise make_not_found(name, snapshot.sweeps, "sweep")


def find_revision(revisions: Sequence[NumberedRevision], number: int, sweep: str) -> NumberedRevision:
    """Return the revision of a sweep at that position of its log. Raises NotFound, naming those there are."""
    found = next((one for one in revisions if one.number == number), None)
    if found is None:
        numbers = ", ".join(str(one.number) for one in revisions[-20:])
        hint = f"expected one of {numbers}" if numbers else "`monkey list sweeps` names what there is"
        raise NotFound(f"sweep {sweep!r} has no revision {number}", hint=hint)
    return found


def make_not_found(what: str, sweeps: Iterable[str], kind: str) -> NotFound:
    """Return the error for a name that means nothing, with the nearest that would."""
    near = get_close_matches(what, list(sweeps), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`monkey list sweeps` and `monkey list jobs` name what there is"
    return NotFound(f"there is no {kind} {what!r}", hint=hint)


def _jobs(views: Iterable[SweepView], beginning: str) -> dict[str, SweepView]:
    matches: dict[str, SweepView] = {}
    for view in views if _ID(beginning) else ():
        for job in view.ids:
            if job.startswith(beginning):
                matches.setdefault(job, view)
    return matches


def _one(beginning: str, matches: Mapping[str, SweepView]) -> str:
    if len(matches) > 1:
        some = ", ".join(sorted(matches)[:3])
        raise NotFound(f"{beginning!r} is the beginning of {len(matches)} jobs ({some} …)", hint="give more of the id")
    return next(iter(matches))
