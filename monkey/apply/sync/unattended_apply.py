"""An apply that no person watches: it never undoes what people decided, and rents only below a limit that they set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.execute import Say, execute_plan
from monkey.apply.history.seen_commits import record_seen_commits
from monkey.apply.planning import PlanningResult, make_plan
from monkey.apply.sync.outside_data import DataLimits
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.world.world import World
from monkey.errors import ConcurrentApply
from monkey.plan.change import SweepPlan
from monkey.plan.gone_sweeps import GoneSweep

#: Times that a commit is planned again in one round, since another apply came first.
_TRIES = 5


@dataclass(frozen=True)
class UnattendedLimits:
    """What an apply that no person watches may do."""

    #: The branch whose sweeps may go back to an older commit, or another one.
    rewritten_branch: str | None = None
    #: Where data may lie, if not anywhere.
    data: DataLimits | None = None
    #: May it cancel the sweeps whose spec is gone?
    prune: bool = False


@dataclass(frozen=True)
class HeldSweep:
    """A sweep that is left as it is, and why."""

    why: str
    #: Whether a person decided so: then nothing is wrong.
    decided: bool = False


@dataclass(frozen=True)
class UnattendedResult:
    """What came of an unattended apply."""

    #: The sweeps that were left alone, by name.
    held: Mapping[str, HeldSweep] = field(default_factory=dict)
    #: The sweeps whose spec is gone, and that were not cancelled.
    gone: tuple[GoneSweep, ...] = ()
    #: Whether it came to its end, and was not asked to stop.
    whole: bool = True


async def apply_unattended(
    world: World, say: Say, stopping: Callable[[], bool] = bool, limits: UnattendedLimits = UnattendedLimits()
) -> UnattendedResult:
    """Apply all specs of the project, but for sweeps that must be left alone; those hold up no other.

    `world` is opened as unattended. Where another apply comes first, it plans again: the sweeps' logs decide. Raises
    MonkeyError of every kind.
    """
    for left in reversed(range(_TRIES)):
        plans, result = await _plan_allowed(world, limits)
        try:
            for planned in plans:
                if not stopping():
                    await _execute(world, planned, say, stopping)
        except ConcurrentApply:
            if not left:
                raise
            continue
        return replace(result, whole=not stopping())
    raise AssertionError("the last try returns or raises")


async def _plan_allowed(world: World, limits: UnattendedLimits) -> tuple[list[PlanningResult], UnattendedResult]:
    """Return plans of the sweeps that may be applied, and what is to be said of the others."""
    planned = await make_plan(world, (), prune=limits.prune)
    rewritten = [sweep for sweep in planned.plan.sweeps if _is_rewritten(sweep, limits.rewritten_branch)]
    held = find_held_sweeps(planned, limits.data)
    held = {name: why for name, why in held.items() if name not in {sweep.name for sweep in rewritten}}
    plans = [planned]
    if any(sweep.name in held for sweep in planned.plan.accepted):
        # Planned again without them, as no machine is to be rented for their jobs.
        rest = [sweep for sweep in planned.plan.accepted if sweep.name not in held]
        plans = [await _plan_named(world, rest)] if rest else []
        if planned.plan.gone and plans:
            plans = [replace(plans[0], plan=replace(plans[0].plan, gone=planned.plan.gone))]
    if rewritten:
        forced = await _plan_named(world, rewritten, f"{limits.rewritten_branch} was rewritten, and is followed")
        more = find_held_sweeps(forced, limits.data)
        held, plans = {**held, **more}, plans if more else [*plans, forced]
    return plans, UnattendedResult(held, tuple(gone for gone in planned.plan.gone if not gone.pruned))


async def _plan_named(world: World, sweeps: Sequence[SweepPlan], force: str = "") -> PlanningResult:
    return await make_plan(world, [str(world.project.root / sweep.desired.source) for sweep in sweeps], force=force)


def _is_rewritten(sweep: SweepPlan, branch: str | None) -> bool:
    """Is the sweep refused for its commit alone, and was it applied from this branch, whose history is another now?"""
    if branch is None or sweep.refusal is None or sweep.desired.misplaced is None or sweep.observed is None:
        return False
    return sweep.observed.cancelled is None and (sweep.observed.known_git or {}).get("branch") == branch


async def _execute(world: World, planned: PlanningResult, say: Say, stopping: Callable[[], bool]) -> None:
    plan = planned.plan
    if plan.changes:
        await world.begin()
        await renew_idle_agents(world, plan, say)
        await execute_plan(world, plan, planned.wanted, say, stopping=stopping)
        await wait_for_agents(world.reader(), [world.fleet(part.fleet) for part in plan.fleets if part.jobs])
    if world.store is not None:
        await record_seen_commits(world, planned)


def find_held_sweeps(planned: PlanningResult, data: DataLimits | None = None) -> dict[str, HeldSweep]:
    """Return the sweeps that an unattended apply leaves alone.

    Their plan refuses them. Or they would rent machines without a limit, or take data from where they may not.
    """
    unlimited = {part.fleet for part in planned.plan.rented if part.cost is not None and part.cost.limit is None}
    wanted = {want.desired.name: want for want in planned.wanted}
    found: dict[str, HeldSweep] = {}
    for sweep in planned.plan.sweeps:
        if sweep.refusal is not None:
            # What is refused for no commit is what a person decided: a cancellation, or a rollback.
            why = sweep.refusal.line.removeprefix("refused: ")
            found[sweep.name] = HeldSweep(why, decided=sweep.desired.misplaced is None)
            continue
        wrong = data.find_outside(wanted[sweep.name]) if data is not None and sweep.changes else None
        if wrong is None and (rents := sorted(unlimited.intersection(sweep.desired.settings.providers))):
            wrong = f"would rent machines of provider {rents[0]!r}, which has no `max_cost:` in monkey.yaml"
        if wrong is not None:
            found[sweep.name] = HeldSweep(wrong)
    return found
