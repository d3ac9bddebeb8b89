"""What deletes, replaces or writes by name is in a table of docs/dev.md, with what guards it from links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where the table's paths begin.
PACKAGES = ("monkey", "agent/monkey_agent", "stacks/monkey_stacks", "dashboards")
#: What is another's to guard, as a whole.
STORES = ("monkey/store/directory/", "monkey/store/sftp/")
#: What removes, renames, writes or scans, by whatever module or path it is called.
CALLS = frozenset(
    (
        *("chmod", "clear_tree", "create_atomically", "hardlink_to", "link", "move_directory", "move_entry"),
        *("remove_below", "remove_empty_directory", "remove_file", "remove_tree", "rename", "renames", "rmdir"),
        *("rmtree", "scandir", "symlink", "symlink_to", "touch", "truncate", "unlink", "write_atomically"),
        *("write_bytes", "write_named_file", "write_text"),
    )
)
#: What `os.open` is given to write.
FLAGS = frozenset(("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"))
#: What has the name of such a call and is none: a link of a dashboard.
OTHERS = frozenset(("dashboards/make/parts.py",))


def expand_braces(text: str) -> Iterator[str]:
    """Yield the paths that a path with braces stands for, as a shell has it."""
    if found := re.search(r"\{([^}]*)\}", text):
        for each in found[1].split(","):
            yield text[: found.start()] + each + text[found.end() :]
    else:
        yield text


def read_table() -> list[str]:
    """Return the paths of the table's first column."""
    text = (ROOT / "docs/dev.md").read_text().partition("## What deletes, replaces or writes by name")[2]
    rows = re.findall(r"^\| (`.*?`) \|", text.partition("\n## ")[0], re.MULTILINE)
    return [path for row in rows for each in re.findall("`([^`]+)`", row) for path in expand_braces(each)]


def locate_file(path: str) -> str | None:
    """Return the file that a path of the table names."""
    found = [f"{top}/{path}" for top in PACKAGES if (ROOT / top / path).is_file()]
    found += [path] if (ROOT / path).is_file() else []
    return found[0] if len(found) == 1 else None


@cache
def list_files() -> frozenset[str | None]:
    """Return the files that the table names."""
    return frozenset(map(locate_file, read_table()))


def find_writers(text: str) -> Iterator[str]:
    """Yield what a module calls that removes, renames, writes or scans, with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in FLAGS:
            yield f"{node.lineno}: {node.attr}"
        if isinstance(node, ast.Call):
            name = _name_call(node)
            replaces = name == "replace" and isinstance(node.func, ast.Attribute) and _is_path_replace(node)
            if name in CALLS or replaces or (name == "open" and _opens_to_write(node)):
                yield f"{node.lineno}: {name}"


def _name_call(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_path_replace(node: ast.Call) -> bool:
    """Say whether it is one of `os` or of a path: that of texts has two arguments, that of records has names."""
    of = getattr(node.func, "value", None)
    return (isinstance(of, ast.Name) and of.id == "os") or (len(node.args) == 1 and not node.keywords)


def _opens_to_write(node: ast.Call) -> bool:
    given = [*node.args, *(each.value for each in node.keywords if each.arg == "mode")]
    modes = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(re.fullmatch("[rbt]*[wax+][rwaxbt+]*", mode) for mode in modes)


SOURCES = [
    path.relative_to(ROOT).as_posix()
    for top in ("monkey", "agent", "stacks", "dashboards")
    for path in sorted((ROOT / top).glob("**/*.py"))
]


def test_each_path_of_the_table_is_one_file() -> None:
    paths = [path for path in read_table() if not path.endswith("…")]
    assert len(paths) > 80
    assert [path for path in paths if locate_file(path) is None] == []
    assert len(set(map(locate_file, paths))) == len(paths)


@pytest.mark.parametrize("source", SOURCES)
def test_each_file_that_deletes_replaces_or_writes_is_in_the_table(source: str) -> None:
    found = list(find_writers((ROOT / source).read_text()))
    if source in list_files():
        assert found, f"{source} writes nothing by now: take it off the table of docs/dev.md"
    elif not source.startswith("monkey/store/") and source not in OTHERS:
        assert not found, f"say in the table of docs/dev.md what guards {source} from links: {found}"


def test_the_stores_have_their_rows() -> None:
    assert {f"monkey/{path.removesuffix('…')}" for path in read_table() if path.endswith("…")} == set(STORES)


@pytest.mark.parametrize(
    "text",
    [
        "path.rename(to)",
        "path.replace(to)",
        "os.replace(a, b)",
        "os.scandir(path)",
        "open(path, 'w')",
        "path.open('ab')",
        "os.open(path, os.O_RDONLY | os.O_CREAT)",
        "open(path, mode='r+')",
        "remove_tree(path)",
        "work(lambda: write_atomically(path, data))",
    ],
)
def test_each_way_to_write_is_seen(text: str) -> None:
    assert list(find_writers(text))


@pytest.mark.parametrize(
    "text", ["text.replace('a', 'b')", "replace(one, a=2)", "open(path, 'rb')", "at.replace(tzinfo=UTC)"]
)
def test_what_writes_nothing_is_none(text: str) -> None:
    assert not list(find_writers(text))
