"""What is refused in CI alone: work that would end with the runner, and data that lies beside the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.apply.world.project_store import locate_project_store
from monkey.ci_run import is_ci
from monkey.errors import MonkeyError
from monkey.plan.work import find_remaining_work
from monkey.spec.project_paths import resolve_in_project
from monkey.spec.yaml.mistakes import Mistake
from monkey.transfer.code.git_files import find_work_tree
from monkey.transfer.datasets.dvc_files import find_dvc_root

if TYPE_CHECKING:
    from monkey.plan.change import Plan
    from monkey.spec.project.project import Project
    from monkey.spec.sweep.models import Spec

_GONE = (
    "this runner will be gone; use ssh, aws, gcp, or `apply` without --detach. "
    "On a machine that stays, `monkey sync` applies what is pushed"
)


def is_runner_disk(store: str) -> bool:
    """Tell whether a located store is on the machine that asks, or in its memory."""
    return "://" not in store or store.startswith("memory://")


def check_work_stays(project: Project, plan: Plan) -> None:
    """Raise MonkeyError in CI where detached work would be lost with the runner: its jobs, or their results."""
    if not is_ci():
        return
    store = locate_project_store(project)
    if is_runner_disk(store):
        raise MonkeyError(f"expected a store that stays, found {store} on this runner's own disk", hint=_GONE)
    for sweep in plan.sweeps:
        here = [name for name in sweep.desired.settings.providers if project.providers[name].type == "local"]
        if here and find_remaining_work(sweep).count:
            what = f"expected machines that stay for {sweep.name}, found provider {here[0]!r}, which is this runner"
            raise MonkeyError(what, hint=_GONE)


def check_datasets_inside(project: Project, specs: Sequence[Spec], *, always: bool = False) -> None:
    """Raise SpecError in CI, with the lines, for datasets outside of the repository: a runner's own files.

    The author of a pull request could have them sent to the store. Absent data does no harm: its hash is the store's.
    `always`: outside of CI, too.
    """
    if not is_ci() and not always:
        return
    top = find_work_tree(project.root) or project.root
    for spec in specs:
        if mistakes := list(_find_outside(spec, project.root, top)):
            raise spec.document.error(mistakes)


def _find_outside(spec: Spec, root: Path, top: Path) -> Iterator[Mistake]:
    hint = "track it by DVC, or `monkey push` it from the machine that has it"
    for name, written in spec.datasets.items():
        path = root / written
        if not os.path.lexists(path) and find_dvc_root(path) is None:
            continue
        for at in (path, *_list_links(path)):
            try:
                resolve_in_project(at, top)
            except ValueError as exc:
                found = f"{os.path.relpath(at, root)} is none: {exc}"
                what = f"dataset {name!r}: CI and previews send files of the repository alone, and {found}"
                yield Mistake(("datasets", name, "path"), what, hint)
                break


def _list_links(path: Path) -> Iterator[Path]:
    """Yield the links in a directory: data has the bytes that they lead to."""
    waiting = [path] if path.is_dir() else []
    while waiting:  # no recursion: a branch may have directories thousands deep
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
