"""Desired against observed: what to change. No I/O, no clock; a million jobs in about a second."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from monkey.errors import NotADescendant, PlanError
from monkey.plan.advice import SweepSituation, suggest_extension, suggest_reopening, suggest_retry
from monkey.plan.change import JobChanges, Plan, StaleJobs, SweepPlan
from monkey.plan.desired import DesiredSweep, UploadSize
from monkey.plan.explain import (
    IDENTITY_CHANGED,
    KEEPABLE_REASONS,
    explain_parameter_changes,
    explain_recipe_changes,
    find_setting_changes,
)
from monkey.plan.matching import RowMatches, match_rows
from monkey.plan.observed import AppliedRevision, ObservedProject, ObservedSweep
from monkey.plan.states import count_all_states, count_states, find_reopened_jobs
from monkey.plan.work import plan_fleets
from monkey.spec.job.expires import format_utc_time
from monkey.spec.job.job_table import ABSENT


def compute_plan(desired: Sequence[DesiredSweep], observed: ObservedProject, keep_stale: Collection[str] = ()) -> Plan:
    """Return what must change for the store to hold what is desired. Undesired sweeps are left alone.

    `keep_stale`: kinds of reasons (`KEEPABLE_REASONS`) that do not make a finished job stale: its result is adopted.
    Raises PlanError for specs of one name, and for a kind that is none.
    """
    _check_request(desired, keep_stale)
    keep, there, sweeps = tuple(sorted(keep_stale)), {"", *observed.code}, []
    for want in desired:
        sweep = _plan_sweep(want, observed, keep)
        # A sweep that is done needs its code no more, nor its data.
        if sweep.revises or sweep.jobs.unfinished:
            sweep = _with_upload(sweep, observed, there)
        sweeps.append(sweep)
    return Plan(tuple(sweeps), plan_fleets(sweeps, observed), observed.store, observed.at)


def _with_upload(sweep: SweepPlan, observed: ObservedProject, there: set[str]) -> SweepPlan:
    """Say what the sweep needs and is not in the store; `there` gets what is sent for it, and not for the next."""
    want, upload, datasets = sweep.desired, UploadSize(), dict[str, UploadSize]()
    if want.recipe.code not in there:
        upload = UploadSize(want.code_bytes, 1)
        there.add(want.recipe.code)
    for name, oid in want.recipe.datasets.items():
        lacks = UploadSize() if oid in there else observed.datasets.get(oid, want.datasets.get(name, UploadSize()))
        there.add(oid)
        if lacks.objects:
            datasets[name] = lacks
            upload = UploadSize(upload.bytes + lacks.bytes, upload.objects + lacks.objects)
    return replace(sweep, upload=upload, datasets=datasets)


def check_descent(plan: Plan) -> None:
    """Raise NotADescendant where applying would put an older commit in the place of a newer one.

    A slow CI run of yesterday must not undo what was merged since; `--rollback` is for those who mean it.
    """
    for sweep in plan.sweeps:
        applied = sweep.observed.applied if sweep.observed else None
        if sweep.revises and not sweep.desired.descends and applied is not None:
            now, then = (str((git or {}).get("commit", "?"))[:10] for git in (sweep.desired.git, applied.git))
            raise NotADescendant(
                f"sweep {sweep.name!r} was last applied from commit {then}, "
                f"and this one ({now}) does not descend from it",
                hint="`git pull` first (in CI: clone with full history); or go back on purpose with --rollback",
            )


def _check_request(desired: Sequence[DesiredSweep], keep_stale: Collection[str]) -> None:
    sources: dict[str, str] = {}
    for want in desired:
        if want.name in sources:
            raise PlanError(
                f"two specs are named {want.name!r}: {sources[want.name]} and {want.source}",
                hint="give one of them another `name:`",
            )
        sources[want.name] = want.source
    for kind in sorted(set(keep_stale) - set(KEEPABLE_REASONS)):
        raise PlanError(
            f"--keep-stale {kind}: there is no such reason to be stale by which results could be kept",
            hint=f"expected one of {', '.join(KEEPABLE_REASONS)}",
        )


def _plan_sweep(want: DesiredSweep, observed: ObservedProject, keep: tuple[str, ...]) -> SweepPlan:
    seen = observed.sweeps.get(want.name)
    applied = seen.applied if seen else None
    if seen is None or applied is None:
        kept, new = _split_rows(want.table.ids, observed.finished)
        kept_states, homes = _count_kept_jobs(want, kept, None, observed)
        return SweepPlan(want, seen, JobChanges(new=new, kept=kept, kept_states=kept_states, elsewhere=homes))
    lots = _split_jobs(want, applied, observed)
    stale, taken, spared = _adopt_results(lots.stale, applied, observed, keep)
    kept_states, homes = _count_kept_jobs(want, lots.kept, seen, observed)
    before = applied.settings.stop_when
    jobs = JobChanges(
        new=lots.new,
        stale=stale,
        kept=array("i", sorted([*lots.kept, *taken])) if taken else lots.kept,
        removed=lots.removed,
        kept_states={**kept_states, "adopted": len(taken)} if taken else kept_states,
        removed_states=count_states((applied.table.ids[row] for row in lots.removed), seen, before),
        replaced_states=count_states(
            (applied.table.ids[row] for row in lots.replaced if row not in spared), seen, before
        ),
        elsewhere=homes,
    )
    adopted = {**_keep_adoptions(want, applied), **{want.table.ids[row]: job for row, job in taken.items()}}
    settings = find_setting_changes(applied.settings, want.settings)
    return SweepPlan(
        want, seen, jobs, settings, UploadSize(), adopted, keep if taken else (), _collect_notes(want, seen, jobs)
    )


class _JobSplit(NamedTuple):
    new: Sequence[int]
    stale: tuple[StaleJobs, ...]
    kept: Sequence[int]
    removed: Sequence[int]
    #: Rows of the applied table that stale jobs take the place of.
    replaced: Collection[int]


def _split_jobs(want: DesiredSweep, applied: AppliedRevision, observed: ObservedProject) -> _JobSplit:
    ids, old_ids = want.table.ids, applied.table.ids
    if ids == old_ids:
        return _JobSplit((), (), range(len(ids)), (), ())
    known = set(old_ids)
    kept, rest = _split_rows(ids, known, observed.finished)
    wanted = set(ids)
    gone = array("i", (row for row, job in enumerate(old_ids) if job not in wanted))
    matched = match_rows(want.table, rest, applied.table, gone)
    removed = array("i", (row for row in gone if row not in matched.replaced)) if matched.replaced else gone
    stale = _group_by_reason(want, applied, matched, observed.within.get(want.name, {}))
    return _JobSplit(matched.unmatched, stale, kept, removed, matched.replaced)


def _split_rows(ids: Sequence[str], *known: Collection[str]) -> tuple[Sequence[int], Sequence[int]]:
    """Part the rows into those whose job is known and the others."""
    if not any(known):
        return (), range(len(ids))
    if len(known) == 1:
        there = known[0]
        inside = [job in there for job in ids]
    else:
        one, two = known
        inside = [job in one or job in two for job in ids]
    return (
        array("i", (row for row, hit in enumerate(inside) if hit)),
        array("i", (row for row, hit in enumerate(inside) if not hit)),
    )


def _group_by_reason(
    want: DesiredSweep, applied: AppliedRevision, matched: RowMatches, within: Mapping[str, str]
) -> tuple[StaleJobs, ...]:
    """Part stale jobs by reason: the recipe's is common to all, but not every job has every parameter."""
    if not matched.rows:
        return ()
    common = explain_recipe_changes(applied.recipe, want.recipe, applied.code_files, want.code_files, within)
    new, old = want.table.columns, applied.table.columns
    added, removed = [n for n in new if n not in old], [n for n in old if n not in new]
    if not added and not removed:
        return (StaleJobs(common or (IDENTITY_CHANGED,), matched.rows, matched.before),)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[array[int], array[int]]] = {}
    for row, before in zip(matched.rows, matched.before, strict=True):
        gained = tuple(name for name in added if new[name].index[row] != ABSENT)
        lost = tuple(name for name in removed if old[name].index[before] != ABSENT)
        rows, befores = groups.setdefault((gained, lost), (array("i"), array("i")))
        rows.append(row)
        befores.append(before)
    return tuple(
        StaleJobs((*common, *explain_parameter_changes(*names)) or (IDENTITY_CHANGED,), rows, befores)
        for names, (rows, befores) in groups.items()
    )


def _adopt_results(
    groups: tuple[StaleJobs, ...], applied: AppliedRevision, observed: ObservedProject, keep: Collection[str]
) -> tuple[tuple[StaleJobs, ...], dict[int, str], set[int]]:
    """Take finished jobs that are stale for no reason but those of `keep`.

    Returns what is left stale, row of the desired table to the job whose result it takes, rows of the applied table.
    """
    left, taken, spared = [], {}, set()
    for group in groups:
        if not all(reason.kind in keep for reason in group.reasons):
            left.append(group)
            continue
        rows, befores = array("i"), array("i")
        for row, before in zip(group.rows, group.before, strict=True):
            job = applied.table.ids[before]
            job = applied.adopted.get(job, job)
            if job in observed.finished:
                taken[row] = job
                spared.add(before)
            else:
                rows.append(row)
                befores.append(before)
        if rows:
            left.append(StaleJobs(group.reasons, rows, befores))
    return tuple(left), taken, spared


def _keep_adoptions(want: DesiredSweep, applied: AppliedRevision) -> dict[str, str]:
    """Results adopted earlier stay adopted for as long as their jobs are wanted."""
    if not applied.adopted:
        return {}
    wanted = set(want.table.ids)
    return {job: result for job, result in applied.adopted.items() if job in wanted}


def _count_kept_jobs(
    want: DesiredSweep, rows: Sequence[int], seen: ObservedSweep | None, observed: ObservedProject
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Count the kept jobs by state, and those that the newest revision lacked by the sweep they come from."""
    ids = want.table.ids
    applied = seen.applied if seen else None
    if seen is not None and applied is not None and ids == applied.table.ids:
        return count_all_states(seen, want.settings.stop_when), {}
    known = set(applied.table.ids) if applied else frozenset[str]()
    here = [ids[row] for row in rows if ids[row] in known]
    there = [ids[row] for row in rows if ids[row] not in known]
    counted = count_states(here, seen, want.settings.stop_when) if seen else Counter[str]()
    counted["succeeded"] += len(there)
    return +counted, _count_by_sweep(there, want.name, observed)


def _count_by_sweep(jobs: Sequence[str], name: str, observed: ObservedProject) -> Counter[str]:
    """Count finished jobs by the sweep that they are finished in; "" for an earlier revision of any."""
    left, homes = set(jobs), Counter[str]()
    for other, seen in observed.sweeps.items():
        if left and other != name and seen.applied is not None:
            found = left.intersection(seen.applied.table.ids)
            left -= found
            homes[other] += len(found)
    homes[""] += len(left)
    return +homes


def _collect_notes(want: DesiredSweep, seen: ObservedSweep, jobs: JobChanges) -> tuple[str, ...]:
    notes = []
    fail_fast = seen.applied is not None and seen.applied.settings.fail_fast
    at = SweepSituation(want.name, len(seen.failed), fail_fast=fail_fast, lacks_data=seen.lacks_data)
    if seen.paused:
        notes.append(f"paused: nothing runs before `monkey resume {want.name}`")
    if seen.over and seen.unfinished and seen.cancelled is None and seen.expires is not None:
        notes.append(
            f"expired at {format_utc_time(seen.expires)}: {suggest_extension(want.name)}, and so does a new revision"
        )
    if seen.cancelled is not None:
        why = "" if seen.cancelled == "cancelled" else f" ({seen.cancelled})"  # what it is where no reason was given
        notes.append(
            f"{'stopped' if seen.goal else 'cancelled'}{why}: a new revision or {suggest_reopening(at)} opens it again"
        )
    if again := len(find_reopened_jobs(seen, want.settings.stop_when).intersection(want.table.ids)):
        notes.append(f"stop_when changes: {again} stopped {'job goes' if again == 1 else 'jobs go'} on")
    failed = jobs.kept_states.get("failed", 0)
    if failed and seen.applied and want.settings.max_retries > seen.applied.settings.max_retries:
        notes.append(
            f"max_retries is raised: up to {failed} failed {'job is' if failed == 1 else 'jobs are'} tried again"
        )
    elif failed:
        jobs_are = "1 job has" if failed == 1 else f"{failed} jobs have"
        notes.append(f"{jobs_are} failed: {suggest_retry(at)}")
    return tuple(notes)
