"""Which tests import a module, themselves or by what they import."""

from __future__ import annotations

import ast
from pathlib import Path

#: Directories that Python looks into for modules, below the root of the repository.
ROOTS = (".", "agent", "stacks")


def name_module(path: str) -> str:
    """Return the name by which a file (its path below the root) is imported."""
    for root in ROOTS[1:]:
        path = path.removeprefix(f"{root}/")
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def find_importers(root: Path, paths: list[str], tests: list[str], *, direct: bool = False) -> list[str]:
    """Return the test files below `tests` that import one of the modules at `paths`; all paths are below the root.

    `direct`: only those that name it themselves.
    """
    wanted = {name_module(path) for path in paths}
    seen: dict[str, set[str]] = {}
    found = []
    for start in tests:
        files = [root / start] if start.endswith(".py") else sorted((root / start).rglob("test_*.py"))
        for file in files:
            reached = list_imports(file) if direct else _reach(root, file, seen)
            if wanted & reached:
                found.append(file.relative_to(root).as_posix())
    return found


def list_imports(file: Path) -> set[str]:
    """Return the names of the modules that a file imports, wherever in it; some may be of what is in a module."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _reach(root: Path, file: Path, seen: dict[str, set[str]]) -> set[str]:
    """Return all that a file imports, and what that imports; `seen` has what was read before."""
    reached: set[str] = set()
    waiting = list_imports(file)
    # Fixtures are not imported.
    for folder in file.relative_to(root).parents:
        if (root / folder / "conftest.py").exists():
            waiting |= list_imports(root / folder / "conftest.py")
    while waiting:
        name = waiting.pop()
        if name not in seen:
            place = _locate(root, name)
            seen[name] = list_imports(place) if place else set()
        reached.add(name)
        waiting |= seen[name] - reached
    return reached


def _locate(root: Path, name: str) -> Path | None:
    for above in ROOTS:
        place = root / above / name.replace(".", "/")
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None
