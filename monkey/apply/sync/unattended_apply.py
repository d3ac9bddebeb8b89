"""An apply that no person watches: it never undoes what people decided, and rents only below a limit that they set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from monkey.apply.agent_environment import renew_idle_agents
from monkey.apply.execute import Say, execute_plan
from monkey.apply.fleet_work import list_unfinished_sweeps
from monkey.apply.history.seen_commits import record_seen_commits
from monkey.apply.inspect.departed_machines import explain_last_departure, find_lasting_failure
from monkey.apply.planning import PlanningResult, make_plan
from monkey.apply.sync.outside_data import DataLimits
from monkey.apply.watch.startup import wait_for_agents
from monkey.apply.world.world import World
from monkey.errors import ConcurrentApply
from monkey.fleet.boot_failures import BootFailure
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.gone_sweeps import GoneSweep
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.protocol.sweeps.sweep_state import SweepState

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
        plans = [_add_removals(await _plan_named(world, rest), planned.plan)] if rest else []
    if rewritten:
        forced = await _plan_named(world, rewritten, f"{limits.rewritten_branch} was rewritten, and is followed")
        more = find_held_sweeps(forced, limits.data)
        held, plans = {**held, **more}, plans if more else [*plans, forced]
    notes = BootNotes(world)
    _, fruitless = await leave_fruitless_fleets(world, planned, notes)
    held |= {name: HeldSweep(why) for name, why in fruitless.items() if name not in held}
    plans = [(await leave_fruitless_fleets(world, each, notes))[0] for each in plans]
    return plans, UnattendedResult(held, tuple(gone for gone in planned.plan.gone if not gone.pruned))


@dataclass
class BootNotes:
    """Why machines gave up, read at most once, and only where that matters: it is up to 20 objects of each fleet."""

    world: World
    _read: Sequence[BootFailure] | None = None

    async def read(self) -> Sequence[BootFailure]:
        """Return the notes. Raises StoreError."""
        if self._read is None:
            self._read = await self.world.boots()
        return self._read


async def leave_fruitless_fleets(
    world: World, planned: PlanningResult, notes: BootNotes | None = None
) -> tuple[PlanningResult, dict[str, str]]:
    """Return the plan without the fleets that would be rented in vain; and why they would, by the sweeps left there.

    `notes`: those of this world, if other plans are judged by them, too. Raises StoreError.
    """
    if planned.snapshot is None or not (again := _list_rented_again(planned.plan, planned.snapshot)):
        return planned, {}
    boots = await (notes or BootNotes(world)).read()
    left = _find_fruitless_fleets(again, planned.snapshot, boots)
    plan = planned.plan.with_fleets(part for part in planned.plan.fleets if part.fleet not in left)
    return replace(planned, plan=plan), {name: why for of in left.values() for name, why in of.items()}


def _list_rented_again(plan: Plan, snapshot: StoreSnapshot) -> dict[str, list[SweepState]]:
    """Return the fleets whose machines would be rented again, though no sweep of theirs changes.

    Each with what is left. They are tried again once they, or a sweep, change.
    """
    revised = {sweep.name: sweep.desired.settings.providers for sweep in plan.accepted if sweep.revises}
    found: dict[str, list[SweepState]] = {}
    for part in plan.rented:
        if part.machines or any(part.fleet in providers for providers in revised.values()):
            continue
        states = [view.state for view in list_unfinished_sweeps(snapshot, part.fleet)]
        if left := [state for state in states if state.name not in revised]:
            found[part.fleet] = left
    return found


def _find_fruitless_fleets(
    again: Mapping[str, Sequence[SweepState]], snapshot: StoreSnapshot, boots: Sequence[BootFailure]
) -> dict[str, dict[str, str]]:
    """Return those of the fleets whose machines ran none of what is left; each with why, by sweeps.

    Such a machine costs money until it is idle for long, or gives up, and so would each that follows it. If one could
    begin, they are tried for a sweep that none has refused.
    """
    found: dict[str, dict[str, str]] = {}
    for fleet, states in again.items():
        gave_up = find_lasting_failure(boots, snapshot, fleet)
        whys = {
            state.name: f"gave up: {gave_up.why}" if gave_up else _explain_refusal(snapshot, fleet, state)
            for state in states
        }
        if all(whys.values()):
            what = f"provider {fleet!r} is not asked for machines again, as its last one"
            found[fleet] = {name: f"{what} {why}; `monkey apply` asks all the same" for name, why in whys.items()}
    return found


def _explain_refusal(snapshot: StoreSnapshot, fleet: str, state: SweepState) -> str:
    why = explain_last_departure(snapshot.agents, fleet, state)
    return f"could not run this: {why}" if why else ""


def _add_removals(planned: PlanningResult, whole: Plan) -> PlanningResult:
    """Return a plan of some specs with what goes by the plan of all: sweeps without a spec, and unwanted fleets."""
    fleets = (*planned.plan.fleets, *whole.unwanted)
    return replace(planned, plan=replace(planned.plan, fleets=fleets, gone=whole.gone))


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
