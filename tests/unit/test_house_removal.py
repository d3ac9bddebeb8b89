"""One module removes files and trees: what others would do with a link, a mount or a deep tree need not be asked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for root in ("monkey", "agent", "stacks") for path in ROOT.glob(f"{root}/**/*.py"))
#: The module that removes.
REMOVER = "monkey/removal.py"
#: What removes, by whatever module or path it is called; and what does as a function of `os` alone (lists have one).
WORDS, OF_OS = {"unlink", "rmdir", "rmtree", "removedirs"}, {"remove"}
#: Files that remove something themselves, with the reason. Empty is best.
EXCEPTIONS = {
    "monkey/processes/memory_groups.py": "part of the supervisor, which imports next to nothing; a control "
    "group goes with the kernel's files in it",
    "stacks/monkey_stacks/boot/remote/install.py": "sent as user data, which has room for 16 KiB; it runs before any "
    "job, and removes the directory that it made a moment before",
}


def removals(text: str) -> Iterator[str]:
    """Yield what a module names that removes something, with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            of_os = isinstance(node.value, ast.Name) and node.value.id in ("os", "posix")
            if node.attr in WORDS or (of_os and node.attr in OF_OS):
                yield f"{node.lineno}: {node.attr}"
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in WORDS or (node.module in ("os", "posix") and alias.name in OF_OS):
                    yield f"{node.lineno}: {alias.name}"
        elif isinstance(node, ast.Constant) and node.value in WORDS:
            yield f"{node.lineno}: {node.value}"  # as getattr would have it


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_one_module_removes(path: Path) -> None:
    name, found = path.relative_to(ROOT).as_posix(), list(removals(path.read_text()))
    if name == REMOVER or name in EXCEPTIONS:
        assert found, "it removes nothing by now: take it off the list"
    else:
        assert not found, f"remove it by monkey.removal: {found}"


@pytest.mark.parametrize(
    "text",
    [
        "import os; os.unlink(p)",
        "import os; os.remove(p)",
        "import os; os.removedirs(p)",
        "from os import remove",
        "from os import rmdir as away",
        "import shutil; shutil.rmtree(p)",
        "from shutil import rmtree",
        "Path(p).unlink(missing_ok=True)",
        "path.rmdir()",
        "work(os.unlink, p)",
        "getattr(os, 'unlink')(p)",
    ],
)
def test_each_way_to_remove_is_seen(text: str) -> None:
    assert list(removals(text))


@pytest.mark.parametrize("text", ["names.remove(name)", "store.remove(key)", "import os; os.rename(a, b)"])
def test_what_removes_no_file_is_none(text: str) -> None:
    assert not list(removals(text))
