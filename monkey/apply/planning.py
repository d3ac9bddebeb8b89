"""A plan from start to end: specs read, world observed, difference taken, fleets asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.apply.cost_limits import check_costs, check_expires, find_costs_besides
from monkey.apply.fleet_work import forecast_machines
from monkey.apply.history.spec_places import place_specs_in_history
from monkey.apply.inspect.fleet_audit import list_written_fleets, plan_unwanted_fleets, warn_of_unlisted_fleets
from monkey.apply.inspect.image_runtimes import add_image_notes
from monkey.apply.unreported_jobs import add_claimed_jobs
from monkey.apply.world.absent_datasets import recall_datasets
from monkey.apply.world.desired_state import (
    LoadedSpec,
    check_providers,
    desire_specs,
    desire_without_data,
    list_spec_files,
    read_specs,
)
from monkey.apply.world.gone_specs import GoneSearch, cancel_pruned_sweeps
from monkey.apply.world.observe import add_shortage_warnings, check_secrets, observe_project
from monkey.apply.world.project_name import check_project_name
from monkey.apply.world.project_store import check_spelling, locate_project_store
from monkey.apply.world.unseen_gpus import add_gpu_warnings
from monkey.apply.world.world import World
from monkey.errors import StalePlan
from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.compute_plan import compute_plan
from monkey.plan.cost import compute_worst_cost
from monkey.plan.jobs.job_changes import JobChanges
from monkey.plan.observed import ObservedProject
from monkey.plan.saved_plan import SavedPlan, check_saved_project, parse_saved_plan, verify_saved_plan

if TYPE_CHECKING:
    from monkey.protocol.status.store_snapshot import StoreSnapshot
    from monkey.spec.project.project import Project
    from monkey.spec.sweep.models import Spec


@dataclass(frozen=True)
class PlanningResult:
    """A plan, and what it was made from."""

    plan: Plan
    files: Sequence[Path]
    wanted: Sequence[LoadedSpec]
    #: What was observed; None where nothing was ever applied.
    snapshot: StoreSnapshot | None


async def make_plan(
    world: World, specs: Sequence[str], keep_stale: Sequence[str] = (), *, prune: bool = False, force: str = ""
) -> PlanningResult:
    """Plan for the named spec files (none: all of the project's). Raises MonkeyError of every kind.

    `prune`: cancel the sweeps whose spec is gone. A plan for named specs does not look for them.
    `force`: why sweeps are changed that would be refused; "" where they are not.
    """
    gone = None if specs else GoneSearch(prune=prune)
    return await _plan(world, list_spec_files(world.project, specs), keep_stale, gone, force)


def read_saved(path: Path) -> SavedPlan:
    """Read a saved plan. Raises PlanError where the file is none."""
    return parse_saved_plan(path.read_text(encoding="utf-8", errors="replace"), str(path))


async def remake_plan(world: World, saved: SavedPlan) -> PlanningResult:
    """Plan again what was saved, and hold the one against the other. Raises StalePlan where anything moved.

    Raises PlanError for a plan of another project.
    """
    check_saved_project(saved, world.project.name)
    files = [world.project.root / source for source in saved.specs]
    for file in files:
        if not file.is_file():
            raise StalePlan(f"since this plan was saved, {file} was removed", hint="plan again, look, and apply that")
    search = GoneSearch(prune=saved.prune) if saved.prune or saved.unwanted else None
    planned = await _plan(world, files, saved.keep_stale, search)
    shown = [part for part in planned.plan.fleets if not part.unwanted or part.fleet in saved.unwanted]
    planned = replace(planned, plan=planned.plan.with_fleets(shown))
    verify_saved_plan(saved, planned.plan)
    return planned


async def _plan(
    world: World, files: Sequence[Path], keep_stale: Sequence[str], gone: GoneSearch | None, force: str = ""
) -> PlanningResult:
    wanted = await load_specs(world, files)
    return replace(await plan_loaded_specs(world, wanted, keep_stale, gone, force), files=files)


async def plan_draft(world: World, file: Path, text: str) -> PlanningResult:
    """Plan as `make_plan` does for one spec `file` of the project, if it had this text.

    Nothing is written: the file may have another text, or not exist. Raises MonkeyError of every kind.
    """
    wanted = await load_specs(world, [file], {file: text})
    return replace(await plan_loaded_specs(world, wanted, ()), files=[file])


async def load_specs(world: World, files: Sequence[Path], drafts: Mapping[Path, str] | None = None) -> list[LoadedSpec]:
    """Load the specs of these files, ready to be compared; `drafts`: texts in place of files.

    Raises MonkeyError of every kind.
    """
    specs = read_specs(world.project, files, drafts)
    wanted = desire_specs(world.project, specs, world.bars, await recall_datasets(world, specs))
    check_providers(world.project, wanted)
    return wanted


def plan_without_store(project: Project, specs: Sequence[str]) -> Plan:
    """Plan for a branch that no user trusts: what its specs are, and what they cost at worst. Asks nothing but git.

    Raises MonkeyError for what is wrong with the specs, the code and the costs.
    """
    read = read_specs(project, list_spec_files(project, specs))
    wanted = desire_without_data(project, read)
    check_providers(project, wanted)
    plan = compute_plan([want.desired for want in wanted], ObservedProject(at=time.time(), project=project.name))
    check_expires(project, plan, wanted)
    plan = replace(plan, sweeps=tuple(map(_without_verdict, plan.sweeps, read)))
    plan = plan.with_fleets(_without_machines(project, plan, part) for part in plan.fleets)
    check_costs(plan)
    return plan


def _without_verdict(sweep: SweepPlan, spec: Spec) -> SweepPlan:
    notes = tuple(f"dataset {name}: {path} was not looked at" for name, path in spec.datasets.items())
    return replace(sweep, jobs=JobChanges(unknown=sweep.jobs.new), notes=notes)


def _without_machines(project: Project, plan: Plan, part: FleetPlan) -> FleetPlan:
    provider, until = project.providers[part.fleet], plan.expires(part, plan.at)
    # Not those of two sweeps once: without their data, jobs have no ids.
    jobs = sum(sweep.jobs.unfinished for sweep in plan.sweeps if part.fleet in sweep.desired.settings.providers)
    cost = compute_worst_cost(provider.cloud, until, plan.at) if provider.cloud and until is not None else None
    return replace(part, jobs=jobs, agents=None, type=provider.type, cost=cost)


async def plan_loaded_specs(
    world: World,
    wanted: Sequence[LoadedSpec],
    keep_stale: Sequence[str],
    search: GoneSearch | None = None,
    force: str = "",
) -> PlanningResult:
    """Plan for what is wanted, wherever that comes from; `search`: it is all of the project's, so look for more.

    Raises OneName for the name of a sweep, PlanError where the repository was renamed.
    """
    for want in wanted:
        check_spelling(locate_project_store(world.project), world.keys.sweeps, want.desired.name)
    observed, snapshot = await observe_project(world, wanted)
    git = next((want.desired.git for want in wanted if want.desired.git is not None), {})
    name_warnings = await check_project_name(world, snapshot, {want.desired.name for want in wanted}, git)
    gone = search.find(world.project, wanted, observed) if search else ()
    observed = cancel_pruned_sweeps(observed, gone)
    wanted = place_specs_in_history(world.project, wanted, observed)
    desired = [want.desired for want in wanted]
    plan = compute_plan(desired, observed, keep_stale, force, unattended=world.unattended)
    claimed = await add_claimed_jobs(world, plan, observed, snapshot)
    if claimed.sweeps != observed.sweeps:
        plan = compute_plan(desired, claimed, keep_stale, force, unattended=world.unattended)
    check_secrets(world, plan, wanted)
    check_expires(world.project, plan, wanted)
    plan = await asyncio.to_thread(add_gpu_warnings, add_shortage_warnings(plan, world), world)
    plan = await asyncio.to_thread(add_image_notes, plan, world.project.providers)
    plan = await forecast_machines(plan, world, snapshot)
    # A sweep that the plan refuses continues as it is, and one that it prunes ends.
    known = {sweep.name for sweep in plan.accepted} | {one.name for one in gone if one.pruned}
    fleets = {part.fleet for part in plan.fleets}
    check_costs(plan, find_costs_besides(world.project, snapshot, known, fleets))
    written = await list_written_fleets(world)
    plan = replace(
        plan, warnings=(*await warn_of_unlisted_fleets(world, written), *observed.problems, *name_warnings), gone=gone
    )
    if search:
        plan = await plan_unwanted_fleets(world, plan, snapshot, written)
    return PlanningResult(plan, (), wanted, snapshot)
