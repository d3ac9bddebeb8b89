"""The project that a sync applies: the one in its work tree, with a store that outlives that tree."""

from __future__ import annotations

from pathlib import Path

from monkey.apply.sync.sync_order import SyncOrder
from monkey.apply.world.desired_state import SPECS, YAML
from monkey.errors import MonkeyError, PlanError
from monkey.spec.project.project import Project, load_project
from monkey.spec.project_paths import is_project_directory


def load_sync_project(order: SyncOrder, tree: Path) -> Project:
    """Return the project of the work tree. Raises SpecError, and MonkeyError where its store may not be used.

    A store within the repository is that of the user's own checkout, from which the sync was started: `monkey status`
    there shows it. Without one it is refused, since a work tree may be made again at any time.
    """
    root = tree / order.path
    check_project_directory(root, tree, order.path)
    project = load_project(root, order.project_file, order.store)
    if project.root != root:
        raise MonkeyError(
            f"expected a project in {order.path!r} of the repository, found no monkey.yaml there",
            hint="name its directory by --path",
        )
    _check_specs(root, order.path)
    if not Path(project.store).is_absolute() or not Path(project.store).is_relative_to(order.directory):
        return project
    if order.checkout is not None and Path(project.store).is_relative_to(tree):
        there = order.checkout / Path(project.store).relative_to(tree)
        return load_project(root, order.project_file, str(there))
    raise MonkeyError(
        f"the project's store is {project.store}, in the work tree of this sync, which may be made again at any time",
        hint="name a store elsewhere: by `store:` in monkey.yaml, or by MONKEY_STORE",
    )


def _check_specs(root: Path, path: str) -> None:
    """Raise PlanError where there is no spec: then it may be that the project lies elsewhere in the repository."""
    if any(file.suffix in YAML for file in (root / SPECS).glob("*")):
        return
    others = sorted({file.parent.parent.name for file in root.glob(f"*/{SPECS}/*") if file.suffix in YAML})
    example = f", such as --path {others[0]}" if others and not path else ""
    raise PlanError(
        f"expected a spec in {Path(path, SPECS)} of the repository, found none",
        hint=f"name the project's directory by --path{example}; or write a spec there",
    )


def check_project_directory(root: Path, tree: Path, path: str) -> None:
    """Raise MonkeyError where the project's directory is not in the work tree, or leads out of it."""
    if not is_project_directory(root, tree):
        raise MonkeyError(f"expected the project's directory, found no {path!r} in the repository")
    if (root / ".monkey").is_symlink():  # what is remembered of stores would be written to where it leads
        raise MonkeyError("expected no link `.monkey` in the repository, found one", hint="remove it from git")
