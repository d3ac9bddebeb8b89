"""Rollbacks: a new revision with the content of an earlier one, which holds until a commit changes the spec."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.apply.planning import PlanningResult, plan_loaded_specs
from monkey.apply.world.desired_state import LoadedSpec, check_providers
from monkey.apply.world.lookup import find_revision
from monkey.apply.world.world import World
from monkey.errors import MonkeyError
from monkey.plan.desired import DesiredSweep
from monkey.plan.explain import find_setting_changes
from monkey.protocol.sweeps.revision import NumberedRevision, Revision
from monkey.protocol.sweeps.sweep_log import list_revisions, read_sweep
from monkey.protocol.sweeps.sweep_state import make_missing_sweep
from monkey.transfer.code.code_snapshot import CodeSnapshot


async def plan_rollback(world: World, name: str, number: int | None, reason: str) -> tuple[PlanningResult, int]:
    """Plan a revision with the content of revision `number`, and return that number, too.

    None: the newest one that differs from what is applied. `reason`: why, for people. Raises NotFound for a sweep or a
    revision that is none, MonkeyError where its code is not in the store, and what a plan raises.
    """
    state = await read_sweep(world.at, world.keys, world.signers, name)
    if state.revision is None:
        raise make_missing_sweep(state)
    revisions = await list_revisions(world.at, world.keys, world.signers, name)
    chosen = _choose(revisions, number, name)
    code = chosen.revision.recipe.code
    if code and not any(item.key == world.keys.code(code) for item in await world.at.list(world.keys.code(code))):
        of = chosen.revision.git or {}
        raise MonkeyError(
            f"the code of revision {chosen.number} ({code[:12]}) is not in the store any more",
            hint=f"check out its commit ({str(of.get('commit', 'unknown'))[:10]}), and `monkey apply --force REASON`",
        )
    git = state.seen.git if state.seen is not None else state.revision.git
    loaded = _load(world, chosen, dict(git) if git else None)
    check_providers(world.project, [loaded])
    return await plan_loaded_specs(world, [loaded], [], force=reason), chosen.number


def _choose(revisions: Sequence[NumberedRevision], number: int | None, name: str) -> NumberedRevision:
    newest = revisions[-1].revision
    if number is None:
        others = [one for one in revisions if not _is_alike(one.revision, newest)]
        if not others:
            raise MonkeyError(f"sweep {name!r} has no earlier revision that differs", hint=f"`monkey history {name}`")
        return others[-1]
    return find_revision(revisions, number, name)


def _is_alike(one: Revision, other: Revision) -> bool:
    return one.table.ids == other.table.ids and not find_setting_changes(one.settings, other.settings)


def _load(world: World, chosen: NumberedRevision, git: dict[str, object] | None) -> LoadedSpec:
    """Return the revision as a spec that was loaded. Its git is the newest commit that the sweep stands for.

    So a commit that comes later is newer than the rollback, too.
    """
    revision = chosen.revision
    desired = DesiredSweep(
        name=revision.sweep,
        source=revision.source,
        recipe=revision.recipe,
        settings=revision.settings,
        table=revision.table,
        code_files=revision.code_files,
        git=git,
        restores=chosen.number,
    )
    return LoadedSpec(desired, CodeSnapshot(world.project.root, revision.recipe.code, (), 0), revision.spec_text)
