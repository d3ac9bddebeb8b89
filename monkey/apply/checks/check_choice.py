"""The choice of the jobs to check: those that are named, or a sample of what has succeeded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.world.lookup import find_sweep_or_job
from monkey.errors import MonkeyError
from monkey.protocol.status.store_snapshot import JobState, StoreSnapshot, SweepView
from monkey.spec.sweep.sweep_names import parse_check_name, parse_preview_name

#: Hex digits of the hash that decides whether a job is part of a day's sample.
_DIGITS = 13


class JobToCheck(NamedTuple):
    """A job that has succeeded, in the sweep that it was chosen of."""

    view: SweepView
    #: The job that has the record: another one than the sweep's, where that adopts a result.
    job: str


def select_recorded_jobs(snapshot: StoreSnapshot, whats: Sequence[str]) -> list[JobToCheck]:
    """Return the jobs that have succeeded, each once: the named ones, those of named sweeps; without a name, of all.

    Raises NotFound, and MonkeyError for a named job that has not succeeded, and for a check.
    """
    found: dict[str, JobToCheck] = {}
    for view, job in _list_meant(snapshot, whats):
        if view.where(job) is JobState.SUCCEEDED:
            owner = find_owner(view, job)
            found.setdefault(owner, JobToCheck(view, owner))
    if not found and whats:
        raise MonkeyError(
            f"expected jobs that have succeeded, found none in {', '.join(whats)}", hint="`monkey status` shows them"
        )
    return list(found.values())


def _list_meant(snapshot: StoreSnapshot, whats: Sequence[str]) -> list[tuple[SweepView, str]]:
    if not whats:
        views = [view for name, view in snapshot.sweeps.items() if not _is_derived(name) and not view.state.is_foreign]
        return [(view, job) for view in views for job in view.ids]
    meant = []
    for what in whats:
        view, job = find_sweep_or_job(snapshot, what)
        name = view.state.name
        if parse_check_name(name) is not None:
            raise MonkeyError(f"{what} is a check", hint=f"`monkey rerun --show {name}` shows its verdicts")
        if view.state.is_foreign:
            raise MonkeyError(
                f"no signer whom you trust applied sweep {name!r}, so you cannot have its jobs run",
                hint="`monkey trust` adds signers",
            )
        if job is not None and view.where(job) is not JobState.SUCCEEDED:
            raise MonkeyError(
                f"expected a job that has succeeded, found {job}, which is {view.where(job)}",
                hint=f"`monkey retry {name} {job}` runs a failed one again",
            )
        meant += [(view, each) for each in ([job] if job else view.ids)]
    return meant


def _is_derived(sweep: str) -> bool:
    return parse_check_name(sweep) is not None or parse_preview_name(sweep) is not None


def select_sample(jobs: Sequence[JobToCheck], share: float, day: str) -> list[JobToCheck]:
    """Return this share (0 to 1) of the jobs, by hash of job and day: the same on each machine, others on another day.

    `day`: "2026-11-25".
    """
    limit = int(share * 16**_DIGITS)
    return [one for one in jobs if int(_hash(f"{one.job} {day}"), 16) < limit]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
