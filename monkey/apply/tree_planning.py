"""Plans that look at other trees of the repository: what changed since a commit, and what a merge would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monkey.apply.planning import PlanningResult, plan_loaded_specs
from monkey.apply.world.absent_datasets import Recalled, recall_datasets
from monkey.apply.world.desired_state import LoadedSpec, check_providers, desire_specs, list_spec_files, read_specs
from monkey.apply.world.gone_specs import GoneSearch
from monkey.apply.world.world import World
from monkey.ci_run import read_ci_run
from monkey.errors import MonkeyError
from monkey.spec.project.project import load_project
from monkey.transfer.code.git_trees import find_branch_name, open_merge_base, open_merge_result

if TYPE_CHECKING:
    from monkey.spec.project.project import Project

#: A warning: another commit may be the one at which they really parted.
_SHALLOW = (
    "this clone is shallow: with the commits that it lacks, the merge into {} may be another (`git fetch --unshallow`)"
)


async def plan_changes_since(
    world: World, ref: str, keep_stale: Sequence[str] = (), *, prune: bool = False
) -> PlanningResult:
    """Plan for the specs that want something else here than where HEAD parted from `ref`.

    The sweeps of specs that were there, and are not here, are those that are gone. Raises MonkeyError of every kind.
    """
    files = list_spec_files(world.project)
    specs = read_specs(world.project, files)
    recalled = await recall_datasets(world, specs)
    wanted = desire_specs(world.project, specs, world.bars, recalled)
    check_providers(world.project, wanted)
    with open_merge_base(world.project.root, ref) as tree:
        then = _read_earlier(world, tree.root, recalled)
    now = {want.desired.name: _summarize(want, world.project) for want in wanted}
    chosen = [at for at, name in enumerate(now) if then.values.get(name) != now[name]]
    names = frozenset(then.names - now.keys())
    gone = GoneSearch(prune=prune, among=names, branch=_find_target(world.project.root, ref))
    planned = await plan_loaded_specs(world, [wanted[at] for at in chosen], keep_stale, gone)
    return replace(planned, files=[files[at] for at in chosen])


async def plan_merge_result(
    world: World, ref: str, keep_stale: Sequence[str] = (), *, prune: bool = False
) -> PlanningResult:
    """Plan for all specs as they are once HEAD is merged into `ref`, by the monkey.yaml of now.

    Raises MonkeyError of every kind, PlanError where that cannot be merged.
    """
    root = world.project.root
    with open_merge_result(root, ref) as tree:
        project = replace(world.project, root=tree.root)
        specs = read_specs(project, list_spec_files(project))
        wanted = desire_specs(project, specs, world.bars, await recall_datasets(world, specs), besides=root)
        check_providers(project, wanted)
        gone = GoneSearch(prune=prune, branch=_find_target(root, ref))
        planned = await plan_loaded_specs(world, wanted, keep_stale, gone)
    told = (_SHALLOW.format(ref),) if tree.shallow else ()
    return replace(planned, plan=replace(planned.plan, warnings=(*planned.plan.warnings, *told)))


def _find_target(root: Path, ref: str) -> str | None:
    """Return the branch that HEAD is to be merged into; None where `ref` is none, and CI names none."""
    run = read_ci_run()
    return (run.base if run else "") or find_branch_name(root, ref) or None


@dataclass
class _Earlier:
    """What an earlier tree wanted."""

    #: Name of each sweep to what it wanted, where that can be said.
    values: dict[str, Any] = field(default_factory=dict)
    #: The names of all its sweeps.
    names: set[str] = field(default_factory=set)


def _read_earlier(world: World, root: Path, recalled: Recalled | None) -> _Earlier:
    """Return what the tree at `root` wanted. A spec that is wrong there is another one than here, and no error."""
    found = _Earlier()
    try:
        project = replace(load_project(root, None, world.project.store), name=world.project.name)
        files = list_spec_files(project)
    except MonkeyError:
        return found
    for file in files:
        try:
            specs = read_specs(project, [file])
            found.names.update(spec.name for spec in specs)
            wanted = desire_specs(project, specs, world.bars, recalled, besides=world.project.root)
        except MonkeyError:
            continue
        found.values |= {want.desired.name: _summarize(want, project) for want in wanted}
    return found


def _summarize(want: LoadedSpec, project: Project) -> Mapping[str, Any]:
    """Return what makes two specs want the same, with the providers on which their jobs run."""
    desired = want.desired
    return {
        "recipe": desired.recipe,
        "settings": desired.settings,
        "jobs": list(desired.table.ids),
        "providers": [project.providers.get(name) for name in desired.settings.providers],
        "equivalences": [replace(one, line=0) for one in desired.equivalences],
    }
