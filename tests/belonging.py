"""Which tests belong to a file, or to what a change touches: by imports, and by names where nothing is imported.

It is for work at the desk, where all tests take too long. CI runs all of them.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Set
from pathlib import Path, PurePosixPath

from tests.importers import list_imports, name_module

#: Folders with modules.
_PACKAGES = ("monkey", "agent/monkey_agent", "stacks/monkey_stacks", "tests", "benchmarks")
#: They look at every file.
_HOUSE = {"tests/unit/test_house.py", "tests/unit/test_house_names.py"}
#: A module's file → the files that import it.
Importers = Mapping[str, Set[str]]


def find_tests(files: Iterable[str], root: Path) -> list[str]:
    """Return the files with tests of `files`; all are relative to `root`.

    Those are the tests that import a file, or a helper of tests that does, and `test_x.py` of `x.py`. Of what is no
    module, those that name it.
    """
    importers = read_importers(root)
    found = set(_HOUSE)
    for file in files:
        path = PurePosixPath(file)
        if file in importers:
            mirrors = {test for test in _list_all_tests(importers) if PurePosixPath(test).name == f"test_{path.name}"}
            found |= mirrors | _list_tests_of({file}, importers)
        else:
            found |= _list_mentions(path.name, root)
    return sorted(found)


def find_tests_since(revision: str, root: Path) -> list[str]:
    """Return the files with tests of all packages that have changed since `revision`, or import what has.

    A test that drives the command line imports little: one that has a package's name in its own is a test of it.
    """
    changed = _list_changed(revision, root)
    importers = read_importers(root)
    touched = set(changed).union(*(importers.get(file, ()) for file in changed))
    modules = {PurePosixPath(file) for file in touched if file.endswith(".py") and not file.startswith("tests/")}
    packages = {module.parent for module in modules}
    inside = {file for file in importers if PurePosixPath(file).parent in packages}
    names = {package.name for package in packages}
    named = {test for test in _list_all_tests(importers) if names & set(re.split(r"[/_.]", test))}
    return sorted(named | _list_tests_of(inside, importers) | set(find_tests(changed, root)))


def read_importers(root: Path) -> dict[str, set[str]]:
    """Return all modules' files, each with those that import it."""
    files = [path.relative_to(root).as_posix() for package in _PACKAGES for path in (root / package).rglob("*.py")]
    names = {name_module(file): file for file in files}
    importers: dict[str, set[str]] = {file: set() for file in names.values()}
    for file in importers:
        for module in list_imports(root / file):
            if module in names:
                importers[names[module]].add(file)
    return importers


def _list_tests_of(files: Set[str], importers: Importers) -> set[str]:
    """Return the tests among the files, and those that import one of them, or a helper of tests that does."""
    seen: set[str] = set()
    ahead = set(files)
    while ahead:
        file = ahead.pop()
        seen.add(file)
        ahead |= {each for each in importers.get(file, ()) if each.startswith("tests/")} - seen
    return seen & _list_all_tests(importers)


def _list_all_tests(importers: Importers) -> set[str]:
    return {file for file in importers if file.startswith("tests/") and PurePosixPath(file).name.startswith("test_")}


def _list_mentions(name: str, root: Path) -> set[str]:
    paths = sorted((root / "tests").rglob("test_*.py"))
    return {path.relative_to(root).as_posix() for path in paths if name in path.read_text()}


def _list_changed(revision: str, root: Path) -> list[str]:
    """Return the files that differ from `revision`, committed or not, with those that are gone."""
    commands = (["diff", "--name-only", revision, "--"], ["ls-files", "--others", "--exclude-standard"])
    found = [subprocess.run(["git", *words], cwd=root, check=True, text=True, stdout=-1).stdout for words in commands]
    return "".join(found).splitlines()
