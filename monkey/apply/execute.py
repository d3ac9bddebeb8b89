"""The execution of a plan, all in this module. After a crash at any point, the next apply repairs what is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from monkey.apply.fleet_work import make_planned_work, recount_work
from monkey.apply.history.authorship import stamp_entry
from monkey.apply.inspect.fleet_audit import remove_unwanted_fleet
from monkey.apply.inspect.revision_points import announce_revision
from monkey.apply.pruning import cancel_gone_sweeps
from monkey.apply.trust.endpoints import check_endpoints, list_report_endpoints
from monkey.apply.world.dataset_loader import send_datasets
from monkey.apply.world.desired_state import LoadedSpec
from monkey.apply.world.project_store import check_spelling
from monkey.apply.world.world import World
from monkey.errors import ConcurrentApply, FleetError
from monkey.fleet.local_fleet import LocalFleet
from monkey.plan.adoption.adopted_jobs import ADOPTED_BEFORE
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.explain import KEEP_NOTHING, find_setting_changes
from monkey.plan.sizes import format_size
from monkey.protocol.adoption_log import AdoptionEntry, record_adoptions
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_revision, read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.transfer.code.code_snapshot import upload_code

#: What tells InfluxDB later.
_BACKFILL = "its dashboards count jobs of earlier ones, too, until `monkey backfill"
#: Types of providers whose agents begin at once.
_QUICK = ("local", "slurm", "kubernetes")
#: Called after each step with its sweep or fleet and a few words: ("digits", "revision 3").
Say = Callable[[str, str], None]


async def execute_plan(
    world: World, plan: Plan, wanted: Sequence[LoadedSpec], say: Say, *, stopping: Callable[[], bool] = bool
) -> None:
    """Apply the plan: upload datasets, converge machines, then revise sweeps; report each step to `say`.

    Datasets come first, as they may take hours. Sweeps whose spec is gone end before machines are made for the others.
    Fleets that none asks for any more are removed last.
    Machines come before sweeps. An agent may claim a job as soon as a
    revision has it, and its machine must have the job's secrets by then. Each sweep then gets its code, its revision
    and its queue markers, in this order. Where another apply did the same meanwhile, this one continues as if it had
    done it itself. Sweeps that the plan refuses stay as they are. Once `stopping` returns True, the sweeps that are
    left are left alone.

    Raises EndpointRefused, DatasetError where a dataset changes meanwhile, ConcurrentApply where another apply revised
    the sweep differently, SigningError, FleetError, StoreError. Raises OneName for the name of a sweep.
    """
    await asyncio.to_thread(world.signers.open_key)  # what cannot be signed is not begun
    check_endpoints(world.project, list_report_endpoints(world.project))
    for part in plan.fleets:
        fleet = world.fleet(part.fleet)
        # Before anything is stored: the agent that finds no place would come after that.
        if part.changes and part.after and isinstance(fleet, LocalFleet):
            await fleet.check_offer()
    by_name = {want.desired.name: want for want in wanted}
    for sweep in plan.sweeps:
        if sweep.datasets:
            await _datasets(world, by_name[sweep.name], say)
    await cancel_gone_sweeps(world, plan, say)
    now = time.time()  # durations of `expires` begin here, for machines and revisions alike
    await _machines(world, plan, now, say)
    digest = compute_plan_digest(plan)
    for sweep in plan.sweeps:
        if sweep.changes and not stopping():
            check_spelling(world.at.url, world.keys.sweeps, sweep.name)
            revision = _revision(sweep, by_name[sweep.name], now, digest)
            await _sweep(world, sweep, by_name[sweep.name], revision, say)
    for part in plan.fleets:  # last: by now no sweep asks for them
        if part.unwanted and not stopping():
            await remove_unwanted_fleet(world, part.fleet, say)


async def _machines(world: World, plan: Plan, now: float, say: Say) -> None:
    """Converge the fleets; one that fails does not stop the others.

    Raises the first failed fleet's FleetError where no other fleet has jobs.
    """
    failed: dict[str, FleetError] = {}
    # Those here and pilots begin at once, and leave soon where there is no work yet, which others may delay for long.
    for part in sorted(plan.fleets, key=lambda part: world.fleet(part.fleet).type in _QUICK):
        if part.changes and part.after is not None and not part.unwanted:
            fleet, again = world.fleet(part.fleet), partial(recount_work, world, plan, part, now)
            try:
                await fleet.converge(make_planned_work(plan, part, now), partial(say, part.fleet), again, world.bars)
            except FleetError as exc:
                failed[part.fleet] = exc
    if failed and not any(part.jobs and part.fleet not in failed for part in plan.fleets):
        raise next(iter(failed.values()))
    for name, error in failed.items():
        say(name, f"warning: {error.message.removeprefix(f'provider {name!r}: ')}")


async def _datasets(world: World, want: LoadedSpec, say: Say) -> None:
    """Upload what the store lacks of the datasets now: another apply may have sent a part since the plan was made."""
    for name, sent in (await send_datasets(world.at, want.datasets, world.bars)).items():
        if sent.objects:
            objects = "1 object" if sent.objects == 1 else f"{sent.objects:,} objects"
            say(want.desired.name, f"dataset {name}: {format_size(sent.bytes)} in {objects} uploaded")


async def _sweep(world: World, plan: SweepPlan, want: LoadedSpec, revision: Revision, say: Say) -> None:
    entry, fleets = plan.head, plan.unmarked
    if plan.revises:
        sent = await upload_code(world.at, want.code) if want.desired.recipe.code else 0
        if sent:
            say(plan.name, f"{format_size(want.code.size)} of code uploaded ({format_size(sent)} compressed)")
        entry = await _append(world, plan, revision, say)
        await _record(world, plan, revision)
        fleets = tuple(want.desired.settings.providers)
    await mark_queue(world.at, world.keys, fleets, plan.name, entry)
    if plan.revises and (failed := await announce_revision(world, entry, revision)):
        say(plan.name, f"warning: InfluxDB was not told of revision {entry} ({failed}): {_BACKFILL} {plan.name}`")


async def _record(world: World, plan: SweepPlan, revision: Revision) -> None:
    """Record in the project's log what the sweep adopts: other sweeps adopt it, too, and this one under another name.

    The revision comes first: an apply that loses to another records nothing. Until this is done, the newest revision
    itself says what it adopts.
    """
    lots = [(lot.results, lot.why, lot.codes) for lot in plan.adoptions]
    # A job that stands for itself has given up what it adopted.
    rest, dropped = dict(plan.adopted), {job: job for job in plan.dropped}
    for results, _, _ in lots:
        rest = {job: result for job, result in rest.items() if job not in results}
    entries = [
        AdoptionEntry(results, why, plan.name, revision.author, revision.at, codes)
        for results, why, codes in [
            *lots,
            (rest, ADOPTED_BEFORE, None),
            (dropped, f"--keep-stale {KEEP_NOTHING}", None),
        ]
    ]
    if plan.adopted or dropped:
        await record_adoptions(world.at, world.keys, entries)


async def _append(world: World, plan: SweepPlan, revision: Revision, say: Say) -> int:
    """Append the revision, unless another apply appended the same; return the number of its entry.

    Raises ConcurrentApply where another apply appended something else, and StoreError.
    """
    try:
        entry = await append_revision(world.at, world.keys, world.signers, revision, plan.head)
    except ConcurrentApply:
        there = await read_sweep(world.at, world.keys, world.signers, plan.name)
        if there.head > plan.head and there.changed_at == plan.changed_at:  # all that came between changes nothing
            later = replace(plan.observed, head=there.head) if plan.observed else None
            return await _append(world, replace(plan, observed=later), revision, say)
        if there.revision is None or not _is_so(there, there.revision, plan, revision):
            raise
        say(plan.name, f"{there.revision.author} applied the same just now: it is revision {there.revision_at}")
        return there.revision_at
    say(plan.name, f"revision {entry} appended")
    return entry


def _is_so(there: SweepState, newest: Revision, plan: SweepPlan, ours: Revision) -> bool:
    """Return whether the sweep is as this plan would have made it, whichever apply made it so."""
    steered = there.cancelled is not None or there.paused != (plan.observed is not None and plan.observed.paused)
    same = newest.table.ids == ours.table.ids and newest.adopted == ours.adopted
    return same and not steered and not find_setting_changes(newest.settings, ours.settings)


def _revision(plan: SweepPlan, want: LoadedSpec, now: float, digest: str) -> Revision:
    desired = want.desired
    return Revision(
        sweep=desired.name,
        recipe=desired.recipe,
        settings=desired.settings,
        table=desired.table,
        spec_text=want.text,
        source=desired.source,
        code_files=dict(desired.code_files),
        git=_plain(desired.git),
        applied=now if desired.settings.expires else 0.0,
        force=plan.forced,
        restores=desired.restores,
        adopted=dict(plan.adopted),
        plan=digest,
        checks=dict(desired.checks),
        strict=True,
        **stamp_entry(),
    )


def _plain(git: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if git is None else dict(git)
