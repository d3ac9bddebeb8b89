"""Looking, before anything is changed: the store and the fleets as they are, as a plan compares them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from monkey.apply.world.absent_datasets import check_held
from monkey.apply.world.dataset_loader import describe_changes, find_lacking_objects
from monkey.apply.world.desired_state import LoadedSpec
from monkey.apply.world.fleets import count_living_agents
from monkey.apply.world.sweep_status import needs_data_again
from monkey.apply.world.world import World
from monkey.errors import FleetError, Problem, SpecError
from monkey.fleet.fleet_port import Fleet
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.desired import UploadSize
from monkey.plan.observed import ObservedProject, ObservedSweep
from monkey.protocol.adoption_log import AdoptionLog
from monkey.protocol.status.store_snapshot import JobState, StoreSnapshot, SweepView
from monkey.protocol.sweeps.verdicts import Verdict
from monkey.spec.job.stop_when import StopEvidence
from monkey.spec.project.cloud import CLOUD_KEYS as CLOUDS
from monkey.spec.project.cloud import MACHINE_TYPE_KEYS
from monkey.spec.sweep.sweep_names import parse_check_name
from monkey.spec.yaml import document
from monkey.spec.yaml.mistakes import Mistake, NodePath
from monkey.transfer.datasets.dataset import Dataset


async def observe_project(world: World, wants: Sequence[LoadedSpec]) -> tuple[ObservedProject, StoreSnapshot | None]:
    """Look at everything that a plan for what is wanted is compared with; None where there is no store yet."""
    now = time.time()
    if world.store is None:
        return ObservedProject(at=now, project=world.project.name), None
    desired = [want.desired for want in wants]
    snapshot = await world.reader().read()
    wanted = {want.name for want in desired}
    sweeps = {
        name: _sweep(view, snapshot) for name, view in snapshot.sweeps.items() if view.state.revision or name in wanted
    }
    skipped = [
        line for name in sorted(wanted & snapshot.sweeps.keys()) for line in snapshot.sweeps[name].state.skipped.lines
    ]
    code = {want.recipe.code for want in desired if want.recipe.code}
    there = {sha for sha in code if await _exists(world, world.keys.code(sha))}
    named = {name for want in desired for name in want.settings.providers if name in world.fleets}
    agents = {name: count_living_agents(world.fleets[name], snapshot) for name in sorted({*world.fleets, *named})}
    lacks, within = await _datasets(world, wants, sweeps)
    store = world.memo.id(world.at.url)
    adoptions = AdoptionLog(world.at, world.keys)
    await adoptions.refresh()
    ended = {want.name: snapshot.find_ended(want.name, want.table.ids, want.settings) for want in desired}
    observed = ObservedProject(
        sweeps,
        snapshot.succeeded,
        code=there,
        agents=agents,
        store=store,
        datasets=lacks,
        within=within,
        at=now,
        failed={name: found.keys() for name, found in ended.items()},
        met={job for found in ended.values() for job, verdict in found.items() if verdict is Verdict.STOPPED},
        adoptions=adoptions.results,
        codes=adoptions.codes,
        recipes=[
            one for name, view in snapshot.sweeps.items() if not parse_check_name(name) for one in view.state.recipes
        ],
        problems=(*skipped, *adoptions.skipped.lines),
        project=world.project.name,
    )
    return observed, snapshot


async def _datasets(
    world: World, wants: Sequence[LoadedSpec], sweeps: Mapping[str, ObservedSweep]
) -> tuple[Mapping[str, UploadSize], Mapping[str, Mapping[str, str]]]:
    """Return what of each dataset is missing, and what changed within those of each sweep.

    A sweep that is done needs no data, and a look at a store of millions of objects takes its time.
    """
    asked, within = list[Dataset](), {}
    for want in wants:
        seen = sweeps.get(want.desired.name)
        applied = seen.applied if seen else None
        same = applied is not None and applied.recipe.datasets == want.desired.recipe.datasets
        if seen is not None and not same:
            within[want.desired.name] = await describe_changes(world.at, seen, want.datasets)
        done = applied is not None and applied.table.ids == want.desired.table.ids and not (seen and seen.unfinished)
        if not (same and done):
            asked += want.datasets.values()
            for name, absent in want.absent.items():
                await check_held(world.at, name, absent)
    return await find_lacking_objects(world.at, asked), within


def _sweep(view: SweepView, snapshot: StoreSnapshot) -> ObservedSweep:
    state = view.state
    places: dict[JobState, set[str]] = {JobState.SUCCEEDED: set(), JobState.FAILED: set(), JobState.RUNNING: set()}
    stopped: dict[str, StopEvidence] = {}
    for job in view.ids:
        where = view.where(job)
        where = JobState.RUNNING if where is JobState.FROZEN else where
        if where in places:
            places[where].add(job)
        if where is JobState.STOPPED and (met := view.met(job)):
            stopped[job] = met
    left = len(view.ids) - len(places[JobState.SUCCEEDED]) - len(places[JobState.FAILED]) - len(stopped)
    return ObservedSweep(
        head=state.head,
        last_change=state.changed_at,
        seen=state.seen,
        applied=state.revision,
        applied_at=state.revision_at,
        foreign=state.is_foreign,
        paused=state.paused,
        cancelled=state.cancelled,
        cancelled_by=state.cancelled_by,
        cancelled_by_person=state.cancelled is not None and state.cause is None,
        undone=state.undone,
        goal=state.goal,
        succeeded=places[JobState.SUCCEEDED],
        failed=places[JobState.FAILED],
        stopped=stopped,
        running=places[JobState.RUNNING],
        lacks_data=needs_data_again(view, places[JobState.FAILED]),
        expires=state.expires,
        over=view.over,
        unmarked=_unmarked(view, snapshot) if left and view.active else (),
    )


def _unmarked(view: SweepView, snapshot: StoreSnapshot) -> tuple[str, ...]:
    """Return the fleets that have work left, and no marker that makes their agents look for it.

    That is one which no hint of agents says is done with, or the newest entry's own: agents check hints.
    """
    assert view.state.revision is not None
    name, head = view.state.name, view.state.changed_at
    queues = {fleet: snapshot.queue[fleet] for fleet in view.state.revision.settings.providers}
    return tuple(
        fleet
        for fleet, queue in queues.items()
        if not queue.find_open(name) and head not in queue.markers.get(name, ())
    )


async def _exists(world: World, key: str) -> bool:
    return any(item.key == key for item in await world.at.list(key))


def check_secrets(world: World, plan: Plan, wanted: Sequence[LoadedSpec]) -> None:
    """Raise SpecError, with their lines, for secrets that a fleet which has jobs to run does not know."""
    texts = {want.desired.name: want.text for want in wanted}
    problems: dict[Problem, None] = {}  # that monkey.yaml lacks one is said once for all sweeps
    for sweep in plan.accepted:
        settings = sweep.desired.settings
        for name in settings.providers if sweep.jobs.unfinished else ():
            for at, secret in enumerate(settings.secrets):
                if mistake := _unknown_secret(world.fleet(name), secret, ("secrets", at)):
                    file = document.parse_document(texts[sweep.desired.name], sweep.desired.source)
                    problems[file.place(mistake)] = None
            for secret, path in settings.agent_secrets:
                if mistake := _unknown_secret(world.fleet(name), secret, path):
                    problems[world.project.read_document().place(mistake)] = None
    if problems:
        raise SpecError(list(problems))


def _unknown_secret(fleet: Fleet, secret: str, path: NodePath) -> Mistake | None:
    try:
        fleet.check_secrets([secret])
    except FleetError as exc:
        return Mistake(path, f"provider {fleet.name!r}: {exc.message}", exc.hint)
    return None


def add_shortage_warnings(plan: Plan, world: World) -> Plan:
    """Return the plan with warnings of jobs that no machine has room for; for rented ones that is no plan at all.

    Raises FleetError.
    """
    sweeps = tuple(replace(sweep, notes=(*sweep.notes, *_shortage(sweep, world))) for sweep in plan.sweeps)
    return replace(plan, sweeps=sweeps)


def _shortage(sweep: SweepPlan, world: World) -> list[str]:
    """Warn of jobs that no machine has room for, before they are waited for."""
    if not sweep.jobs.unfinished or sweep.refusal is not None:
        return []
    asked = sweep.desired.settings
    short = {name: world.fleet(name).describe_shortage(asked.resources) for name in asked.providers}
    if not all(short.values()):
        return []
    if any(world.fleet(name).type in CLOUDS for name in short):
        told = "; ".join(f"{name}: {what}" for name, what in short.items())
        keys = sorted(
            {MACHINE_TYPE_KEYS[type_] for name in short if (type_ := world.fleet(name).type) in MACHINE_TYPE_KEYS}
        )
        raise FleetError(
            f"sweep {sweep.name!r}: a job asks for more than any machine of its providers has: {told}",
            hint=f"lower resources: in the spec, or rent others: {' or '.join(keys)} in monkey.yaml",
        )
    return [
        f"warning: no machine of {name} has room for these jobs: one asks for {what}. Lower `resources:` in the spec"
        for name, what in short.items()
    ]
