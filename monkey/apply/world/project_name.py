"""The project's name where the store does not know it yet: was the repository, or its directory, renamed?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from monkey.apply.world.world import World
from monkey.ci_run import is_ci
from monkey.errors import PlanError, StoreError
from monkey.plan.commits.place import CommitAncestry
from monkey.protocol.layout import PROJECTS, Keys, is_name
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.protocol.sweeps.sweep_log import list_sweeps, read_sweep
from monkey.spec.project.store_url import resolve_store_url
from monkey.transfer.code.commit_history import CommitHistory
from monkey.transfer.code.git_files import find_work_tree

#: Sweeps of another project that are read.
_MAX_SWEEPS = 3


class _FormerSweep(NamedTuple):
    """A sweep that this repository applied under another project's name."""

    project: str
    name: str


async def check_project_name(
    world: World, snapshot: StoreSnapshot | None, wanted: Collection[str], git: Mapping[str, Any]
) -> list[str]:
    """Have the checkout remember the name of a project that the store knows; return warnings of the name.

    `wanted`: names of sweeps; `git`: as `GitInfo` has it, empty outside of a repository. Raises PlanError where
    monkey.yaml does not name the project, the store does not know it, and this repository's sweeps are another's there.
    """
    name, derived = world.project.name, world.project.derived_name
    if snapshot is None:
        return []
    if any(view.state.revision for view in snapshot.sweeps.values()):
        world.memo.keep_project(world.project)
    elif derived in ("", name):
        former = await _find_former_sweep(world, wanted, git)
        if former is None:
            return []
        if derived:
            raise PlanError(
                f"expected sweeps of project {name!r} in the store, found none, but sweep {former.name!r} of project "
                f"{former.project!r}, which was applied from this repository: was that, or its directory, renamed?",
                hint=f"write `project: {former.project}` into monkey.yaml to continue there, or `project: {name}` for "
                "a new project",
            )
        return [
            f"project {name!r} has no sweep in this store yet. What this repository applied as {former.project!r} "
            f"(sweep {former.name!r}) stays there: its results do not count here, and its jobs continue"
        ]
    if derived in ("", name):
        return []
    return [
        f"this checkout remembers its project as {name!r}; a fresh clone would be {derived!r}: write `project: {name}` "
        "into monkey.yaml"
    ]


async def _find_former_sweep(world: World, wanted: Collection[str], git: Mapping[str, Any]) -> _FormerSweep | None:
    """Return a sweep of another project that this repository applied, one that is `wanted` rather than others."""
    history = CommitHistory(world.project.root, git.get("commit", ""), fetches=is_ci())

    async def look(project: str) -> _FormerSweep | None:
        keys = Keys(project)
        sweeps = await list_sweeps(world.at, keys)
        for name in sorted(sweeps, key=lambda name: name not in wanted)[:_MAX_SWEEPS]:
            revision = (await read_sweep(world.at, keys, world.signers, name)).revision
            if revision is not None and _is_from_here(world, git, revision.git or {}, history, deepen=name in wanted):
                return _FormerSweep(project, name)
        return None

    try:
        there = await world.at.list_directories(PROJECTS)
        found = await asyncio.gather(*(look(name) for name in there if is_name(name) and name != world.project.name))
    except StoreError:  # rights may end at the own project
        return None
    return next(filter(None, found), None)


def _is_from_here(
    world: World, git: Mapping[str, Any], applied: Mapping[str, Any], history: CommitHistory, *, deepen: bool
) -> bool:
    """Was it applied from a commit that this repository has, and from a directory that is this one, or is gone?

    What is in a default store is of this checkout. `git`, `applied`: as `GitInfo` has it, here and there.
    """
    root, directory = world.project.root, applied.get("directory", "")
    if world.project.store == resolve_store_url(None, root):
        return True
    top = find_work_tree(root)
    # Not by pathlib, which raises for names that are too long: anybody may have written this one.
    if top is None or (directory != git.get("directory", "") and os.path.isdir(top / directory)):  # noqa: PTH112
        return False
    commit = applied.get("commit", "")
    if history.compare(commit) is CommitAncestry.MISSING and deepen:
        history.deepen()
    return history.compare(commit) is not CommitAncestry.MISSING
