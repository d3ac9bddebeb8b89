"""The plan of checks: sweeps that run finished jobs once more, each in a log of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from monkey.apply.checks.check_choice import JobToCheck, select_recorded_jobs, select_sample
from monkey.apply.checks.check_recipes import make_check_recipe, make_check_settings
from monkey.apply.checks.check_records import read_lock
from monkey.apply.planning import PlanningResult, plan_loaded_specs
from monkey.apply.world.desired_state import LoadedSpec
from monkey.apply.world.world import World
from monkey.concurrency import run_in_lanes
from monkey.errors import MonkeyError, NotFound
from monkey.plan.desired import DesiredSweep
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.protocol.sweeps.revision import NumberedRevision, Revision
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn
from monkey.spec.machines.fleet_name import find_provider_name
from monkey.spec.sweep.sweep_names import make_check_name, parse_check_name
from monkey.transfer.code.code_snapshot import CodeSnapshot

#: Logs and facts that are read at once.
_LANES = 16


@dataclass(frozen=True)
class CheckOrder:
    """What is to be checked, and how."""

    #: Sweeps and jobs; none for all that succeeded.
    whats: Sequence[str]
    #: The share of these jobs that is checked (0 to 1), chosen by the day; None: all of them.
    share: float | None = None
    #: The day, UTC: "2026-11-25".
    day: str = ""
    #: The provider to run on; "" for the sweep's own.
    provider: str = ""
    #: Resolve requirements anew, in place of the recorded packages.
    fresh: bool = False


class PlannedChecks(NamedTuple):
    """The plan of the checks, and of how many jobs they are; None where the sample is empty."""

    planned: PlanningResult | None
    chosen: int
    among: int


class _Batch(NamedTuple):
    """What jobs must share to be checked by one sweep."""

    sweep: str
    number: int
    #: None: the requirements are resolved anew.
    lock: tuple[str, ...] | None


async def plan_checks(world: World, order: CheckOrder) -> PlannedChecks:
    """Plan the checks that are asked for. Raises NotFound, MonkeyError, and what a plan raises."""
    if order.provider:
        world.fleet(order.provider)
    snapshot = await world.reader().read()
    among = select_recorded_jobs(snapshot, order.whats)
    chosen = among if order.share is None else select_sample(among, order.share, order.day)
    if not chosen:
        return PlannedChecks(None, 0, len(among))
    batches, origins = await _sort_into_batches(world, snapshot, chosen, fresh=order.fresh)
    taken = max((one.number for name in snapshot.sweeps if (one := parse_check_name(name))), default=0)
    wanted = [
        await _load_check(world, batch, origins[jobs[0]].revision, jobs, number, order.provider)
        for number, (batch, jobs) in enumerate(batches.items(), taken + 1)
    ]
    planned = await plan_loaded_specs(world, wanted, [])
    return PlannedChecks(planned, len(chosen), len(among))


async def _sort_into_batches(
    world: World, snapshot: StoreSnapshot, chosen: Sequence[JobToCheck], *, fresh: bool
) -> tuple[Mapping[_Batch, list[str]], Mapping[str, NumberedRevision]]:
    """Return the jobs by what they must share, and each job's revision."""
    search, locks = _OriginSearch(world, snapshot), dict[str, tuple[str, ...] | None]()
    origins = {one.job: await search.find(one) for one in chosen}

    async def note_lock(one: JobToCheck) -> None:
        locks[one.job] = None if fresh else await read_lock(world, one.job)

    await run_in_lanes(chosen, note_lock, _LANES)
    batches: dict[_Batch, list[str]] = defaultdict(list)
    for job, origin in origins.items():
        batches[_Batch(origin.revision.sweep, origin.number, locks[job])].append(job)
    return batches, origins


class _OriginSearch:
    """The search for the revisions that have the recipes of recorded jobs."""

    def __init__(self, world: World, snapshot: StoreSnapshot) -> None:
        self._world, self._names = world, [name for name in snapshot.sweeps if parse_check_name(name) is None]
        self._known: dict[str, list[NumberedRevision]] = {}

    async def find(self, of: JobToCheck) -> NumberedRevision:
        """Return the newest revision that has the job, first of its own sweep. Raises NotFound, MonkeyError."""
        own = of.view.state.name
        for name in [own, *(each for each in self._names if each != own)]:
            if name not in self._known:
                world = self._world
                self._known[name] = await list_revisions(world.at, world.keys, world.signers, name)
            for one in reversed(self._known[name]):
                if of.job in one.revision.rows:
                    self._check_secrets(one)
                    return one
        raise NotFound(f"no revision that you trust has job {of.job}, so its recipe is not known")

    def _check_secrets(self, one: NumberedRevision) -> None:
        """Raise MonkeyError for secrets that its signer may not name: our own signature would let them."""
        secrets = one.revision.settings.secrets
        refused = self._world.signers.list_refused_secrets(self._world.project.name, one.signer, secrets)
        if refused:
            who = one.signer.name if one.signer else "nobody"
            raise MonkeyError(
                f"revision {one.number} of sweep {one.revision.sweep!r} names secrets ({' '.join(refused)}) that its "
                f"signer {who} may not name here",
                hint=f"`monkey trust --secret {' '.join(refused)}` allows it",
            )


async def _load_check(
    world: World, batch: _Batch, revision: Revision, jobs: Sequence[str], number: int, provider: str
) -> LoadedSpec:
    """Return the check of jobs of one revision, as a spec that was loaded. Raises MonkeyError."""
    name, code = make_check_name(number, batch.sweep), revision.recipe.code
    if code and not any(item.key == world.keys.code(code) for item in await world.at.list(world.keys.code(code))):
        raise MonkeyError(
            f"the code of revision {batch.number} of sweep {batch.sweep!r} ({code[:12]}) is not in the store any more",
            hint="`monkey verify` names all that is missing",
        )
    providers = [provider] if provider else revision.settings.providers
    for each in providers:
        world.fleet(each)
    rented = any(find_provider_name(each) in world.rented for each in providers)
    recipe = make_check_recipe(revision.recipe, name, batch.lock)
    table = assign_job_ids(_select_rows(revision.table, [revision.rows[job] for job in jobs]), recipe)
    desired = DesiredSweep(
        name=name,
        source=revision.source,
        recipe=recipe,
        settings=make_check_settings(revision.settings, providers, rented=rented),
        table=table,
        code_files=revision.code_files,
        git=revision.git,
        checks=dict(zip(table.ids, jobs, strict=True)),
    )
    return LoadedSpec(desired, CodeSnapshot(world.project.root, code, (), 0), revision.spec_text)


def _select_rows(table: JobTable, rows: Sequence[int]) -> JobTable:
    """Return a table of these rows alone; a parameter that none of them has is left out."""
    columns = {}
    for name, column in table.columns.items():
        index = [column.index[row] for row in rows]
        used = sorted({at for at in index if at != ABSENT})
        places = {at: place for place, at in enumerate(used)} | {ABSENT: ABSENT}
        if used:
            columns[name] = ParameterColumn([column.values[at] for at in used], [places[at] for at in index])
    return JobTable([table.ids[row] for row in rows], columns)
