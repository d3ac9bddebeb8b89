"""The search for sweeps of the store whose spec is gone from the work tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from monkey.apply.world.desired_state import SPECS, LoadedSpec
from monkey.ci_run import read_ci_run
from monkey.plan.gone_sweeps import GoneSweep, find_gone_sweeps
from monkey.plan.observed import PRUNED, ObservedProject
from monkey.spec.project.project import Project
from monkey.transfer.code.code_snapshot import read_git_info


@dataclass(frozen=True)
class GoneSearch:
    """A search among all sweeps of the project, for a plan of all its specs."""

    #: Are those to be cancelled that are found?
    prune: bool
    #: The sweeps that are looked at; None for all.
    among: frozenset[str] | None = None
    #: The branch that the specs are of; None: as `find_branch` finds it.
    branch: str | None = None

    def find(self, project: Project, wanted: Sequence[LoadedSpec], observed: ObservedProject) -> tuple[GoneSweep, ...]:
        """Return the sweeps whose spec is gone; `wanted`: all of the project's specs. Raises PlanError."""
        names = {want.desired.name for want in wanted}
        names |= set() if self.among is None else observed.sweeps.keys() - self.among
        applied = {name: seen.applied for name, seen in observed.sweeps.items() if seen.applied}
        names |= {name for name, revision in applied.items() if _is_elsewhere(project, revision.source)}
        if not observed.sweeps.keys() - names:
            return ()
        return find_gone_sweeps(observed, names, self.branch or find_branch(project.root), prune=self.prune)


def find_branch(root: Path) -> str | None:
    """Return the branch that the specs are, or will be, of: on a pull request, the one it is to be merged into.

    So a plan on a pull request shows what an apply after the merge does. Raises PlanError.
    """
    run, git = read_ci_run(), read_git_info(root)
    if git is None:
        return None
    return (run.base if run else "") or git["branch"] or (run.branch if run else "") or None


def cancel_pruned_sweeps(observed: ObservedProject, gone: Sequence[GoneSweep]) -> ObservedProject:
    """Return what will be there once the sweeps are cancelled that a plan prunes: no machine is made for them."""
    pruned = {one.name for one in gone if one.pruned}
    sweeps = {
        name: replace(seen, cancelled=PRUNED) if name in pruned else seen for name, seen in observed.sweeps.items()
    }
    return replace(observed, sweeps=sweeps) if pruned else observed


def _is_elsewhere(project: Project, source: str) -> bool:
    """Tell whether a sweep came from a spec that lies outside of the folder of specs, and is still there."""
    return Path(source).parent != Path(SPECS) and (project.root / source).is_file()
