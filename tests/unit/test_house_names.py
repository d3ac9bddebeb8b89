"""Names and folders: a reader who looks for a thing finds one place, and imports go one way."""

from __future__ import annotations

import ast
import graphlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where our packages lie, by the directory that Python looks into.
PACKAGES = {"monkey": ROOT, "monkey_agent": ROOT / "agent", "monkey_stacks": ROOT / "stacks"}
#: Modules that a folder may hold beside its `__init__.py`; `cli/commands` has one for each verb.
FOLDER = 12
VERBS = "monkey.cli.commands"
#: Imports of our own inside functions: each is there because start-up time needs it, or is a lazy choice of backend.
INNER_IMPORTS = 80
#: Folders whose files play the same parts: the backends of a port.
BACKENDS = (
    ("monkey.store.bucket", "monkey.store.directory", "monkey.store.sftp"),
    ("monkey_stacks.aws", "monkey_stacks.gcp", "monkey_stacks.ssh"),
)
#: Words that are a whole name where others call it: a program's entry, and the face that training scripts see.
WHOLE = {"main", "log", "params"}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for package, root in PACKAGES.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules of ours that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules())
    if isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            inside = f"{node.module}.{alias.name}"
            if inside in modules():
                yield inside
            elif node.module in modules():
                yield node.module


def top_level(path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names that a module defines for itself, without those that it imports."""
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def test_no_import_goes_in_a_circle() -> None:
    """Imports inside functions and those for types alone are counted too."""
    graph = {
        name: {other for node in ast.walk(tree(path)) for other in imported(node)} - {name}
        for name, path in modules().items()
    }
    # The package's face names its homes for type checkers; whatever asks for __version__ imports it.
    graph["monkey"] = set()
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as exc:
        pytest.fail(" → ".join(exc.args[1]))


def test_a_folder_is_seen_at_one_glance() -> None:
    held = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    crowded = {folder.relative_to(ROOT).as_posix(): count for folder, count in held.items() if count > FOLDER}
    crowded.pop(VERBS.replace(".", "/"))
    assert not crowded


def test_a_folder_says_in_one_line_what_it_holds() -> None:
    for name, path in modules().items():
        if path.name == "__init__.py" and name != "monkey":
            said = ast.get_docstring(tree(path)) or ""
            assert said and "\n" not in said, f"{name}/__init__.py wants one line that says what the folder holds"


def role(name: str) -> str:
    """Return a module's name, in which all backends of one port have the same folder."""
    for number, folders in enumerate(BACKENDS):
        for folder in folders:
            if name.startswith(f"{folder}."):
                return f"{number}{name.removeprefix(folder)}"
    return name


def test_no_file_name_stands_twice() -> None:
    places = defaultdict(set)
    for name, path in modules().items():
        if path.name not in ("__init__.py", "errors.py"):
            places[path.name].add(role(name))
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_no_public_name_stands_in_more_than_two_modules() -> None:
    places = defaultdict(set)
    for module, path in modules().items():
        for name, _ in top_level(path):
            if not name.startswith("_") and name not in {"TYPE_CHECKING", "main"}:
                places[name].add(role(module))
    assert not {name: found for name, found in places.items() if len(found) > 2}


def test_a_function_that_others_import_is_a_verb_and_its_object() -> None:
    short = {
        f"{module}.{name}"
        for module, path in modules().items()
        for name, node in top_level(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not name.startswith("_") and "_" not in name
    }
    assert not {name for name in short if name.rpartition(".")[2] not in WHOLE}


def test_imports_inside_functions_are_few() -> None:
    inner = [
        f"{module}:{node.lineno}"
        for module, path in modules().items()
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and list(imported(node))
    ]
    assert len(set(inner)) < INNER_IMPORTS, len(set(inner))
