"""Previews of pull requests: planned within the project's limits, and ended with their pull request."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from monkey.apply.orders import OrderOutcome, cancel_sweep, resume_sweep
from monkey.apply.planning import PlanningResult, load_specs, plan_loaded_specs
from monkey.apply.world.desired_state import LoadedSpec, list_spec_files
from monkey.apply.world.world import World
from monkey.ci_run import is_ci, read_ci_run
from monkey.errors import MonkeyError, PlanError
from monkey.plan.change import FleetPlan, Plan
from monkey.plan.cost import compute_worst_cost, format_dollars, sum_costs
from monkey.plan.observed import ObservedSweep
from monkey.plan.preview.capped_sweep import limit_sweep
from monkey.plan.preview.preview_ends import LEFT_OUT, explain_closed_pull
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.spec.project.preview_limits import PreviewLimits
from monkey.spec.project.project import PROJECT_FILE, Project
from monkey.spec.sweep.sweep_names import parse_preview_name


def check_preview(project: Project, pull: int) -> None:
    """Raise MonkeyError where nothing may be previewed here: no limits are set, or by the branch that they bind.

    The author of monkey.yaml sets the limits: in CI, it must be one that the pull request did not bring.
    """
    if is_ci():
        file, own = project.file, (project.root / PROJECT_FILE).resolve()
        if file is None or file.resolve() == own:
            raise MonkeyError(
                "expected the base's monkey.yaml for a preview in CI, found that of the pull request, which would set "
                "its own limits",
                hint=f"`git show origin/main:{PROJECT_FILE} > /tmp/base.yaml`, and add --project-file /tmp/base.yaml",
            )
        run = read_ci_run()
        if run is not None and run.pull not in (None, pull):
            raise MonkeyError(
                f"expected --preview {run.pull}, as this run of CI is about that pull request, found --preview {pull}",
                hint="each pull request previews itself",
            )
    _read_limits(project)


def _read_limits(project: Project, *, is_fork: bool = False) -> PreviewLimits:
    if project.previews is None:
        raise MonkeyError(
            f"{project.file or PROJECT_FILE}: expected `previews:`, which sets the limits of previews, found none",
            hint="add a line to monkey.yaml of the base: previews: {jobs: 8, max_concurrent_jobs: 2, expires: 4h}",
        )
    run = read_ci_run()
    # Of another repository, where no one who may write here has looked at what would read the secrets.
    is_fork = is_fork or (run is not None and run.fork)
    return replace(project.previews, secrets=()) if is_fork else project.previews


async def plan_preview(
    world: World, pull: int, specs: Sequence[str], *, is_fork: bool = False, branch: str = ""
) -> PlanningResult:
    """Plan a pull request's previews of the named spec files (none: all of the project's).

    A spec whose jobs all are of some sweep has no preview. One that may not be previewed is left out, with a warning,
    unless it is named, or the only one. `is_fork`: the branch is of another repository; `branch`: its name.
    CI knows both.
    Raises MonkeyError of every kind.
    """
    check_preview(world.project, pull)
    limits, files = _read_limits(world.project, is_fork=is_fork), list_spec_files(world.project, specs)
    wanted = [_note_pull(want, pull, branch) for want in await load_specs(world, files)]
    snapshot = None if world.store is None else await world.reader().read()
    active = _list_active(snapshot, {pull}.__contains__)
    limited, told = _limit_sweeps(wanted, pull, limits, _list_jobs(snapshot), strict=bool(specs))
    names = {want.desired.name for want in limited}
    room = max(0, limits.sweeps - (len({*active} - names) if specs else 0))
    if left := [want.desired.name for want in limited[room:]]:
        told.append(f"{', '.join(left)}: left out, as a pull request previews at most {limits.sweeps} sweeps at once")
    names -= {*left}
    planned = await plan_loaded_specs(world, limited[:room], ())
    check_preview_cost(world.project, limits, planned.plan)
    outdated = () if specs else tuple(name for name in active if name not in names)
    closed = [one.name for one in planned.plan.sweeps if not one.revises and _is_closed(one.observed, pull)]
    told += [f"{name}: {LEFT_OUT}, so it is cancelled" for name in outdated]
    told += [f"{name}: pull request {pull} is open again, so it continues" for name in closed]
    plan = replace(planned.plan, warnings=(*planned.plan.warnings, *told), ended=outdated, continued=tuple(closed))
    return replace(planned, plan=plan, files=files)


def _note_pull(want: LoadedSpec, pull: int, branch: str) -> LoadedSpec:
    """Return a spec that says which pull request it is of, in the revision that it becomes."""
    if want.desired.git is None:
        return want
    git = {**want.desired.git, "pull": pull} | ({"branch": branch} if branch else {})
    return replace(want, desired=replace(want.desired, git=git))


def _limit_sweeps(
    wanted: Sequence[LoadedSpec],
    pull: int,
    limits: PreviewLimits,
    there: Collection[str],
    *,
    strict: bool,
) -> tuple[list[LoadedSpec], list[str]]:
    """Return the previews of these sweeps, and words for those that may not be previewed."""
    now, limited, refused = time.time(), list[LoadedSpec](), list[PlanError]()
    for want in wanted:
        try:
            desired = limit_sweep(want.desired, pull, limits, there, now)
        except PlanError as error:
            refused.append(error)
        else:
            limited += [replace(want, desired=desired)] if desired is not None else []
    if refused and (strict or not limited):
        raise refused[0]
    return limited, [f"left out: {error.message}" for error in refused]


def _list_jobs(snapshot: StoreSnapshot | None) -> frozenset[str]:
    """Return the jobs of all sweeps that are no previews.

    A preview runs none of them: its settings, such as a short timeout, must not end a job that a sweep waits for.
    Previews do not count: each push is to run the same jobs of a matrix, and not others each time.
    """
    views = snapshot.sweeps.items() if snapshot is not None else ()
    return frozenset(job for name, view in views if parse_preview_name(name) is None for job in view.ids)


def _list_active(snapshot: StoreSnapshot | None, chosen: Callable[[int], bool]) -> list[str]:
    """Return the previews of the chosen pull requests that have jobs left, and have not ended."""
    found = []
    for name, view in snapshot.sweeps.items() if snapshot is not None else ():
        pull, state = parse_preview_name(name), view.state
        ended = state.revision is None or state.cancelled is not None or view.over or not view.unfinished
        if pull is not None and chosen(pull) and not ended:
            found.append(name)
    return sorted(found)


def _is_closed(seen: ObservedSweep | None, pull: int) -> bool:
    return seen is not None and seen.cancelled == explain_closed_pull(pull) and not seen.over and seen.unfinished > 0


def check_preview_cost(project: Project, limits: PreviewLimits, plan: Plan) -> None:
    """Raise PlanError where rented machines may cost more for these previews than the project allows.

    Each job may need a machine of its own until the last preview ends. Where machines would stay for longer, all of
    their fleet count.
    """
    if limits.max_cost is None:
        return
    costs = []
    for part in plan.fleets:
        cloud = project.providers[part.fleet].cloud
        jobs, until = _count_preview_work(plan, part)
        if cloud is None or not jobs:
            continue
        longer = part.cost is not None and part.cost.longer
        machines = cloud.max_instances if longer else min(cloud.max_instances, jobs)
        costs.append(compute_worst_cost(replace(cloud, max_instances=machines), until, plan.at))
    total = sum_costs(costs)
    if total is None or total > limits.max_cost:
        found = "a price that is unknown" if total is None else format_dollars(total)
        raise PlanError(
            f"expected previews that cost at most {format_dollars(limits.max_cost)} (max_cost of previews), "
            f"found {found}: {'; '.join(cost.words() for cost in costs)}",
            hint="let previews run fewer jobs, or end earlier, or cost more: `previews:` in monkey.yaml of the base",
        )


def _count_preview_work(plan: Plan, part: FleetPlan) -> tuple[int, float]:
    """Return how many jobs a fleet may run for the plan's sweeps, and when the last of these expires."""
    mine = [sweep for sweep in plan.sweeps if part.fleet in sweep.desired.settings.providers and sweep.jobs.unfinished]
    ends = [end for sweep in mine if (end := sweep.expires(plan.at)) is not None]
    return sum(sweep.jobs.unfinished for sweep in mine), max(ends, default=plan.at)


async def converge_previews(world: World, plan: Plan) -> list[OrderOutcome]:
    """Cancel the previews that the plan ends, and resume those that continue. Raises StoreError, SigningError."""
    done = [await cancel_sweep(world, name, LEFT_OUT) for name in plan.ended]
    # What they may cost was checked against the limit, which is the consent.
    return done + [await resume_sweep(world, name, lambda costs: None) for name in plan.continued]


async def list_previewed_pulls(world: World) -> set[int]:
    """Return the pull requests that have previews with jobs left. Raises StoreError."""
    names = _list_active(await world.reader().read(), lambda pull: True) if world.store is not None else []
    return {pull for name in names if (pull := parse_preview_name(name)) is not None}


async def end_previews(world: World, open_pulls: Collection[int]) -> list[OrderOutcome]:
    """Cancel all previews of pull requests that are not open, and return those that had jobs left.

    Raises StoreError, SigningError.
    """
    return await _end_previews(world, lambda pull: pull not in open_pulls)


async def end_preview(world: World, pull: int, reason: str = "") -> list[OrderOutcome]:
    """Cancel the previews of a pull request that was closed; return and raise as `end_previews` does.

    `reason`: a person's, who does not want them to be opened again by the next push.
    """
    return await _end_previews(world, lambda other: other == pull, reason)


async def _end_previews(world: World, chosen: Callable[[int], bool], reason: str = "") -> list[OrderOutcome]:
    names = _list_active(await world.reader().read(), chosen) if world.store is not None else []
    done = []
    for name in names:
        pull = parse_preview_name(name)
        assert pull is not None
        done.append(await cancel_sweep(world, name, reason or explain_closed_pull(pull)))
    return [outcome for outcome in done if outcome.changed]
