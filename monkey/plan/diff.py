"""Desired against observed: what to change. No I/O, no clock; a million jobs in about a second."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from monkey.errors import NotADescendant, PlanError
from monkey.plan.advice import Standing, goes_on, opens, tries_again
from monkey.plan.change import Jobs, Plan, Stale, SweepPlan
from monkey.plan.desired import Desired, Upload
from monkey.plan.explain import KEEPABLE, UNKNOWN, parameter_reasons, recipe_reasons, setting_changes
from monkey.plan.matching import Matched, match
from monkey.plan.observed import Applied, Observed, ObservedSweep
from monkey.plan.states import reopened, states, whole
from monkey.plan.work import fleet_plans
from monkey.spec.job.expires import time_text
from monkey.spec.job.job_table import ABSENT


def diff(desired: Sequence[Desired], observed: Observed, keep_stale: Collection[str] = ()) -> Plan:
    """Return what must change for the store to hold what is desired. Sweeps that nobody desires are left alone.

    `keep_stale`: kinds of reasons (`explain.KEEPABLE`) that do not make a finished job stale: its result is adopted.
    Raises PlanError for specs of one name, and for a kind that is none.
    """
    _check(desired, keep_stale)
    keep, there, sweeps = tuple(sorted(keep_stale)), {"", *observed.code}, []
    for want in desired:
        sweep = _sweep(want, observed, keep)
        # A sweep that is done needs its code no more, nor its data.
        if sweep.revises or sweep.jobs.unfinished:
            sweep = _with_upload(sweep, observed, there)
        sweeps.append(sweep)
    return Plan(tuple(sweeps), fleet_plans(sweeps, observed), observed.store, observed.at)


def _with_upload(sweep: SweepPlan, observed: Observed, there: set[str]) -> SweepPlan:
    """Say what the sweep needs and is not in the store; `there` gets what is sent for it, and not for the next."""
    want, upload, datasets = sweep.desired, Upload(), dict[str, Upload]()
    if want.recipe.code not in there:
        upload = Upload(want.code_bytes, 1)
        there.add(want.recipe.code)
    for name, oid in want.recipe.datasets.items():
        lacks = Upload() if oid in there else observed.datasets.get(oid, want.datasets.get(name, Upload()))
        there.add(oid)
        if lacks.objects:
            datasets[name] = lacks
            upload = Upload(upload.bytes + lacks.bytes, upload.objects + lacks.objects)
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
                f"sweep {sweep.name!r}: this commit ({now}) does not descend from the one applied last ({then})",
                hint="merge or rebase first; `--rollback` applies it all the same",
            )


def _check(desired: Sequence[Desired], keep_stale: Collection[str]) -> None:
    sources: dict[str, str] = {}
    for want in desired:
        if want.name in sources:
            raise PlanError(
                f"two specs are named {want.name!r}: {sources[want.name]} and {want.source}",
                hint="give one of them another `name:`",
            )
        sources[want.name] = want.source
    for kind in sorted(set(keep_stale) - set(KEEPABLE)):
        raise PlanError(
            f"--keep-stale {kind}: there is no such reason to be stale by which results could be kept",
            hint=f"expected one of {', '.join(KEEPABLE)}",
        )


def _sweep(want: Desired, observed: Observed, keep: tuple[str, ...]) -> SweepPlan:
    seen = observed.sweeps.get(want.name)
    applied = seen.applied if seen else None
    if seen is None or applied is None:
        kept, new = _split(want.table.ids, observed.finished)
        kept_states, homes = _kept(want, kept, None, observed)
        return SweepPlan(want, seen, Jobs(new=new, kept=kept, kept_states=kept_states, elsewhere=homes))
    lots = _lots(want, applied, observed)
    stale, taken, spared = _adopt(lots.stale, applied, observed, keep)
    kept_states, homes = _kept(want, lots.kept, seen, observed)
    before = applied.settings.stop_when
    jobs = Jobs(
        new=lots.new,
        stale=stale,
        kept=array("i", sorted([*lots.kept, *taken])) if taken else lots.kept,
        removed=lots.removed,
        kept_states={**kept_states, "adopted": len(taken)} if taken else kept_states,
        removed_states=states((applied.table.ids[row] for row in lots.removed), seen, before),
        replaced_states=states((applied.table.ids[row] for row in lots.replaced if row not in spared), seen, before),
        elsewhere=homes,
    )
    adopted = {**_carried(want, applied), **{want.table.ids[row]: job for row, job in taken.items()}}
    settings = setting_changes(applied.settings, want.settings)
    return SweepPlan(want, seen, jobs, settings, Upload(), adopted, keep if taken else (), _notes(want, seen, jobs))


class _Lots(NamedTuple):
    new: Sequence[int]
    stale: tuple[Stale, ...]
    kept: Sequence[int]
    removed: Sequence[int]
    #: Rows of the applied table that stale jobs take the place of.
    replaced: Collection[int]


def _lots(want: Desired, applied: Applied, observed: Observed) -> _Lots:
    ids, old_ids = want.table.ids, applied.table.ids
    if ids == old_ids:
        return _Lots((), (), range(len(ids)), (), ())
    known = set(old_ids)
    kept, rest = _split(ids, known, observed.finished)
    wanted = set(ids)
    gone = array("i", (row for row, job in enumerate(old_ids) if job not in wanted))
    matched = match(want.table, rest, applied.table, gone)
    removed = array("i", (row for row in gone if row not in matched.replaced)) if matched.replaced else gone
    stale = _groups(want, applied, matched, observed.within.get(want.name, {}))
    return _Lots(matched.unmatched, stale, kept, removed, matched.replaced)


def _split(ids: Sequence[str], *known: Collection[str]) -> tuple[Sequence[int], Sequence[int]]:
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


def _groups(want: Desired, applied: Applied, matched: Matched, within: Mapping[str, str]) -> tuple[Stale, ...]:
    """Part stale jobs by reason: the recipe's is common to all, but not every job has every parameter."""
    if not matched.rows:
        return ()
    common = recipe_reasons(applied.recipe, want.recipe, applied.code_files, want.code_files, within)
    new, old = want.table.columns, applied.table.columns
    added, removed = [n for n in new if n not in old], [n for n in old if n not in new]
    if not added and not removed:
        return (Stale(common or (UNKNOWN,), matched.rows, matched.before),)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[array[int], array[int]]] = {}
    for row, before in zip(matched.rows, matched.before, strict=True):
        gained = tuple(name for name in added if new[name].index[row] != ABSENT)
        lost = tuple(name for name in removed if old[name].index[before] != ABSENT)
        rows, befores = groups.setdefault((gained, lost), (array("i"), array("i")))
        rows.append(row)
        befores.append(before)
    return tuple(
        Stale((*common, *parameter_reasons(*names)) or (UNKNOWN,), rows, befores)
        for names, (rows, befores) in groups.items()
    )


def _adopt(
    groups: tuple[Stale, ...], applied: Applied, observed: Observed, keep: Collection[str]
) -> tuple[tuple[Stale, ...], dict[int, str], set[int]]:
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
            left.append(Stale(group.reasons, rows, befores))
    return tuple(left), taken, spared


def _carried(want: Desired, applied: Applied) -> dict[str, str]:
    """Results adopted earlier stay adopted for as long as their jobs are wanted."""
    if not applied.adopted:
        return {}
    wanted = set(want.table.ids)
    return {job: result for job, result in applied.adopted.items() if job in wanted}


def _kept(
    want: Desired, rows: Sequence[int], seen: ObservedSweep | None, observed: Observed
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Count the kept jobs by state, and those that the newest revision lacked by the sweep they come from."""
    ids = want.table.ids
    applied = seen.applied if seen else None
    if seen is not None and applied is not None and ids == applied.table.ids:
        return whole(seen, want.settings.stop_when), {}
    known = set(applied.table.ids) if applied else frozenset[str]()
    here = [ids[row] for row in rows if ids[row] in known]
    there = [ids[row] for row in rows if ids[row] not in known]
    counted = states(here, seen, want.settings.stop_when) if seen else Counter[str]()
    counted["succeeded"] += len(there)
    return +counted, _homes(there, want.name, observed)


def _homes(jobs: Sequence[str], name: str, observed: Observed) -> Counter[str]:
    """Count finished jobs by the sweep that they are finished in; "" for an earlier revision of any."""
    left, homes = set(jobs), Counter[str]()
    for other, seen in observed.sweeps.items():
        if left and other != name and seen.applied is not None:
            found = left.intersection(seen.applied.table.ids)
            left -= found
            homes[other] += len(found)
    homes[""] += len(left)
    return +homes


def _notes(want: Desired, seen: ObservedSweep, jobs: Jobs) -> tuple[str, ...]:
    notes = []
    fail_fast = seen.applied is not None and seen.applied.settings.fail_fast
    at = Standing(want.name, len(seen.failed), fail_fast=fail_fast, lacks_data=seen.lacks_data)
    if seen.paused:
        notes.append(f"paused: nothing runs before `monkey resume {want.name}`")
    if seen.over and seen.unfinished and seen.cancelled is None and seen.expires is not None:
        notes.append(f"expired at {time_text(seen.expires)}: {goes_on(want.name)}, and so does a new revision")
    if seen.cancelled is not None:
        why = "" if seen.cancelled == "cancelled" else f" ({seen.cancelled})"  # what it is where no reason was given
        notes.append(f"{'stopped' if seen.goal else 'cancelled'}{why}: a new revision or {opens(at)} opens it again")
    if again := len(reopened(seen, want.settings.stop_when).intersection(want.table.ids)):
        notes.append(f"stop_when changes: {again} stopped {'job goes' if again == 1 else 'jobs go'} on")
    failed = jobs.kept_states.get("failed", 0)
    if failed and seen.applied and want.settings.max_retries > seen.applied.settings.max_retries:
        notes.append(
            f"max_retries is raised: up to {failed} failed {'job is' if failed == 1 else 'jobs are'} tried again"
        )
    elif failed:
        jobs_are = "1 job has" if failed == 1 else f"{failed} jobs have"
        notes.append(f"{jobs_are} failed: {tries_again(at)}")
    return tuple(notes)
