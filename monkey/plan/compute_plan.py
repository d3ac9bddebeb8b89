"""Desired against observed: what to change. No I/O, no clock; a million jobs in about a second."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from monkey.errors import PlanError
from monkey.plan.adoption.adopting import FoundAdoptions, adopt_stale_results, find_adoptions, keep_adoptions
from monkey.plan.adoption.final_results import FinalResults, collect_adoptions, trace_results
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.commits.refusals import refuse_sweep
from monkey.plan.desired import DesiredSweep, UploadSize
from monkey.plan.explain import (
    IDENTITY_CHANGED,
    KEEP_NOTHING,
    KEEPABLE_REASONS,
    explain_parameter_changes,
    explain_recipe_changes,
    find_setting_changes,
)
from monkey.plan.jobs.job_changes import JobChanges, StaleJobs
from monkey.plan.jobs.matching import RowMatches, match_rows
from monkey.plan.jobs.states import count_all_states, count_states
from monkey.plan.observed import AppliedRevision, ObservedProject, ObservedSweep
from monkey.plan.text.sweep_notes import collect_sweep_notes, note_failed_adopters
from monkey.plan.work import plan_fleets
from monkey.spec.job.job_table import ABSENT


def compute_plan(
    desired: Sequence[DesiredSweep],
    observed: ObservedProject,
    keep_stale: Collection[str] = (),
    force: str = "",
    *,
    unattended: bool = False,
) -> Plan:
    """Return what must change for the store to hold what is desired. Undesired sweeps are left alone.

    `keep_stale`: kinds of reasons (`KEEPABLE_REASONS`) that do not make a finished job stale: its result is adopted.
    `force`: why sweeps are changed that would be refused; "" where they are not.
    `unattended`: CI or sync applies, and what a person cancelled stays so.

    Raises PlanError for specs of one name, and for a kind that is none.
    """
    _check_request(desired, keep_stale)
    keep, there, sweeps = tuple(sorted(keep_stale)), {"", *observed.code}, []
    adopted = collect_adoptions(observed)
    for want in desired:
        sweep = _plan_sweep(want, observed, trace_results(observed, adopted, want.name), keep)
        sweep = refuse_sweep(sweep, force, unattended=unattended)
        sweep = replace(sweep, notes=(*collect_sweep_notes(sweep), *sweep.notes))
        # A sweep that is done needs its code no more, nor its data.
        if sweep.revises or (sweep.jobs.unfinished and sweep.refusal is None):
            sweep = _with_upload(sweep, observed, there)
        sweeps.append(sweep)
    fleets = plan_fleets([sweep for sweep in sweeps if sweep.refusal is None], observed)
    return Plan(tuple(sweeps), fleets, observed.store, observed.project, observed.at, keep_stale=keep)


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


def _check_request(desired: Sequence[DesiredSweep], keep_stale: Collection[str]) -> None:
    sources: dict[str, str] = {}
    for want in desired:
        if want.name in sources:
            raise PlanError(
                f"two specs are named {want.name!r}: {sources[want.name]} and {want.source}",
                hint="give one of them another `name:`",
            )
        sources[want.name] = want.source
    for kind in sorted(set(keep_stale) - {*KEEPABLE_REASONS, KEEP_NOTHING}):
        raise PlanError(
            f"--keep-stale {kind}: there is no such reason to be stale by which results could be kept",
            hint=f"expected one of {', '.join(KEEPABLE_REASONS)}; or {KEEP_NOTHING}, to run what has adopted a result",
        )
    if KEEP_NOTHING in keep_stale and len(keep_stale) > 1:
        raise PlanError(f"--keep-stale {KEEP_NOTHING} stands alone", hint="give up results first, then keep others")


def _plan_sweep(
    want: DesiredSweep, observed: ObservedProject, finals: FinalResults, keep: tuple[str, ...]
) -> SweepPlan:
    seen = observed.sweeps.get(want.name)
    applied = seen.applied if seen else None
    found = find_adoptions(want, observed, finals, drop=KEEP_NOTHING in keep)
    lots, results, failed = found.lots, found.results, observed.failed.get(want.name, frozenset())
    told = (*found.warnings, *note_failed_adopters(results, failed))
    if seen is None or applied is None:
        kept, rest = _split_rows(want.table.ids, observed.finished, results)
        before, new = _part_failed(want.table.ids, rest, failed)
        kept_states, homes = _count_kept_jobs(want, kept, None, observed, results)
        jobs = JobChanges(new=new, kept=kept, kept_states=kept_states, elsewhere=homes)
        jobs = _add_failed(jobs, before, want, observed)
        return SweepPlan(want, seen, jobs, adopted=results, adoptions=tuple(lots), dropped=found.dropped, notes=told)
    split = _split_jobs(want, applied, observed, found)
    stale, taken = adopt_stale_results(split.stale, want, applied, keep, finals)
    lots = [*lots, taken] if taken.results else lots
    adopted = {**results, **taken.results}
    replaced = _leave_sources(split.replaced, applied, adopted, finals)
    kept_states, homes = _count_kept_jobs(want, split.kept, seen, observed, results)
    rows = array("i", (row for row, job in enumerate(want.table.ids) if job in taken.results)) if taken.results else ()
    rules = applied.settings.stop_when
    jobs = JobChanges(
        new=split.new,
        stale=stale,
        kept=array("i", sorted([*split.kept, *rows])) if rows else split.kept,
        removed=_leave_sources(split.removed, applied, adopted, finals),
        kept_states=_add_adopted(kept_states, len(taken.results)),
        replaced_states=count_states((applied.table.ids[row] for row in replaced), seen, rules),
        elsewhere=homes,
    )
    jobs = _add_failed(jobs, split.failed, want, observed)
    gone = (applied.table.ids[row] for row in jobs.removed)
    jobs = replace(jobs, removed_states=count_states(gone, seen, rules))
    settings = find_setting_changes(applied.settings, want.settings)
    adopted = {**keep_adoptions(want, applied, found.dropped), **adopted}
    return SweepPlan(want, seen, jobs, settings, UploadSize(), adopted, tuple(lots), found.dropped, told)


def _leave_sources(
    rows: Collection[int], applied: AppliedRevision, adopted: Mapping[str, str], finals: FinalResults
) -> Sequence[int]:
    """Return the rows of the applied table without those whose result a wanted job takes: that job is their heir."""
    if not adopted:
        return rows if isinstance(rows, Sequence) else array("i", rows)
    ids, own, taken = applied.table.ids, applied.adopted, set(adopted.values())
    return array("i", (row for row in rows if finals.find(own.get(ids[row], ids[row])) not in taken))


def _add_adopted(states: Mapping[str, int], count: int) -> Mapping[str, int]:
    return {**states, "adopted": states.get("adopted", 0) + count} if count else states


class _JobSplit(NamedTuple):
    new: Sequence[int]
    stale: tuple[StaleJobs, ...]
    kept: Sequence[int]
    removed: Sequence[int]
    #: Rows of the applied table that stale jobs take the place of.
    replaced: Collection[int]
    failed: Sequence[int] = ()


def _split_jobs(
    want: DesiredSweep, applied: AppliedRevision, observed: ObservedProject, found: FoundAdoptions
) -> _JobSplit:
    ids, old_ids = want.table.ids, applied.table.ids
    if ids == old_ids and not found.dropped:
        return _JobSplit((), (), range(len(ids)), (), ())
    known = {*old_ids, *found.results} - found.dropped
    kept, rest = _split_rows(ids, known, observed.finished)
    # Before they are matched: none is stale, so none takes the place of an old job, nor its result (`--keep-stale`).
    failed, rest = _part_failed(ids, rest, observed.failed.get(want.name, frozenset()))
    wanted = set(ids)
    gone = array("i", (row for row, job in enumerate(old_ids) if job not in wanted))
    matched = match_rows(want.table, rest, applied.table, gone)
    removed = array("i", (row for row in gone if row not in matched.replaced)) if matched.replaced else gone
    stale = _group_by_reason(want, applied, matched, observed.within.get(want.name, {}))
    return _JobSplit(matched.unmatched, stale, kept, removed, matched.replaced, failed)


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


def _part_failed(
    ids: Sequence[str], rows: Sequence[int], failed: AbstractSet[str]
) -> tuple[Sequence[int], Sequence[int]]:
    """Part the rows into those whose job has failed before and the others."""
    if not failed:
        return (), rows
    before = array("i", (row for row in rows if ids[row] in failed))
    return before, array("i", (row for row in rows if ids[row] not in failed)) if before else rows


def _add_failed(jobs: JobChanges, rows: Sequence[int], want: DesiredSweep, observed: ObservedProject) -> JobChanges:
    ids = [want.table.ids[row] for row in rows]
    homes = _count_by_sweep(ids, want.name, observed) if rows else {}
    return replace(jobs, failed=rows, met=len(observed.met & set(ids)), failed_in=homes)


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


def _count_kept_jobs(
    want: DesiredSweep,
    rows: Sequence[int],
    seen: ObservedSweep | None,
    observed: ObservedProject,
    adopted: Mapping[str, str],
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Count the kept jobs by state, and those that the newest revision lacked by the sweep they come from.

    `adopted`: those of them that take a result by this plan.
    """
    ids, rules = want.table.ids, want.settings.stop_when
    applied = seen.applied if seen else None
    if seen is not None and applied is not None and ids == applied.table.ids and len(rows) == len(ids):
        counted = count_all_states(seen, rules)
        if adopted:
            counted -= count_states(adopted, seen, rules)
        return _add_adopted(counted, len(adopted)), {}
    known = set(applied.table.ids) if applied else frozenset[str]()
    here = [ids[row] for row in rows if ids[row] in known and ids[row] not in adopted]
    there = [ids[row] for row in rows if ids[row] not in known and ids[row] not in adopted]
    counted = count_states(here, seen, rules) if seen else Counter[str]()
    counted["succeeded"] += len(there)
    return _add_adopted(+counted, len(adopted)), _count_by_sweep(there, want.name, observed)


def _count_by_sweep(jobs: Sequence[str], name: str, observed: ObservedProject) -> Counter[str]:
    """Count jobs that have ended by the sweep that has them; "" for an earlier revision of any."""
    left, homes = set(jobs), Counter[str]()
    for other, seen in observed.sweeps.items():
        if left and other != name and seen.applied is not None:
            found = left.intersection(seen.applied.table.ids)
            left -= found
            homes[other] += len(found)
    homes[""] += len(left)
    return +homes
