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
FOLDER = 20
COMMANDS = "monkey.cli.commands"
#: Imports of our own inside functions: each is there because start-up time needs it, or is a lazy choice of backend.
INNER_IMPORTS = 81
#: Folders whose files play the same parts: the backends of a port.
BACKENDS = (
    ("monkey.store.bucket", "monkey.store.directory", "monkey.store.sftp"),
    ("monkey_stacks.aws", "monkey_stacks.gcp", "monkey_stacks.kubernetes", "monkey_stacks.slurm", "monkey_stacks.ssh"),
)
#: Names that say it all where others call it: a program's entry, and the face that training scripts see.
WHOLE = {"main", "log", "params", "output_dir", "checkpoint_dir"}
#: How the names of our functions begin: verbs; and is, has, may and needs, for what is true or not.
_WORDS = """
    activate add adopt agree announce answer append apply ask assign audit authorize backfill bound build call
    cancel check clear collect compare compile complete compose compute connect converge convert copy count
    create cut decode deduplicate deliver describe desire detect digest drain draw drop dump encode end escape
    execute exit expand explain export extend extract factor filter find flatten flush fold forecast forget
    format gather generate group has hash hint hold identify ignore inspect install is join judge keep kill lay
    leave limit link list load locate look make mark mask match may measure merge move name needs nest normalize
    note number observe open pack parse pause place plan prefetch prepare preview print probe publish push
    put quote rank read recall receive record recount reduce refresh refuse remake remove renew replace report
    rescue resize resolve restore resume retire retry revoke round run save say scan schedule seal select send
    serialize serve set ship shorten show sign sort spell split stamp stand start stop strip submit suggest sum
    summarize survey tabulate take tally trace translate trim try unpack upload verify wait wake walk warn watch write
"""
VERBS = set(_WORDS.split())
NO_OBJECT = {"of", "for"}


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
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as exc:
        pytest.fail(" → ".join(exc.args[1]))


def test_a_folder_is_seen_at_one_glance() -> None:
    held = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    crowded = {folder.relative_to(ROOT).as_posix(): count for folder, count in held.items() if count > FOLDER}
    crowded.pop(COMMANDS.replace(".", "/"))
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


def list_public(module: str, path: Path) -> list[str]:
    """Return a module's functions that others may import; a command is called by what a user types."""
    functions = [name for name, node in top_level(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    commands = {name for name in functions if name.endswith("_command") and module.startswith("monkey.cli.")}
    return [name for name in functions if not name.startswith("_") and name not in WHOLE | commands]


def test_a_function_that_others_import_is_a_verb_and_its_object() -> None:
    """The verb is one of VERBS.

    A new verb is added there deliberately: where none of them says it, and never to let a noun pass (`cache_home`).
    Some of them are nouns as well: a name that ends in "of" or "for" has no object (`list_of`, `plan_for`).
    """
    names = {(module, name) for module, path in modules().items() for name in list_public(module, path)}
    words = {f"{module}.{name}": name.split("_") for module, name in names}
    assert not {name for name, (verb, *rest) in words.items() if verb not in VERBS or not rest or rest[-1] in NO_OBJECT}
    assert not VERBS - {verb for verb, *_ in words.values()}, "a verb that is no longer in use"


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
