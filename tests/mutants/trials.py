"""Tries mutants: each is put into a copy of the repository, where the tests that run its line are run."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import coverage
import pytest

from tests.contained import contain
from tests.importers import ROOTS, find_importers, name_module
from tests.mutants import contexts
from tests.mutants.mutator import Mutant, list_mutants

#: Where quick tests are that may run the product in their own process.
TESTS = ("tests/unit", "tests/plans", "tests/conformance", "tests/simulation")
#: Seconds that the tests of one mutant may take; the nearest are run first.
BUDGET = 30.0
#: Tests hang that take so many times what they took without a mutant, and so many seconds more.
SLOWER, PATIENCE = 5.0, 60.0
#: The name of `contexts` there, where `tests` is the copy's.
_PLUGIN = "mutant_contexts"
#: What a copy of the repository does without.
_LEFT = shutil.ignore_patterns(".git", ".venv", ".pythons", ".*_cache", ".hypothesis", "__pycache__", "site", "dist")


@dataclass
class Outcome:
    """What became of the mutants."""

    ended: int = 0
    lived: list[Mutant] = field(default_factory=list)

    def __str__(self) -> str:
        count = self.ended + len(self.lived)
        rate = self.ended / count if count else 0.0
        return f"{count} mutants: {self.ended} ended ({rate:.0%}), {len(self.lived)} lived"


def choose_mutants(root: Path, paths: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return so many mutants of modules, files or directories below the root, at random; all where there are fewer.

    Raises ValueError for a path that has no module.
    """
    found: list[Mutant] = []
    for path in paths:
        place = root / path
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        if not files or not all(file.is_file() for file in files):
            raise ValueError(f"expected modules of Python, found none at {path}")
        for file in files:
            found += list_mutants(file.relative_to(root).as_posix(), file.read_bytes())
    return random.Random(seed).sample(found, min(count, len(found)))


def try_mutants(
    root: Path,
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    say: Callable[[str], None],
    patience: float = PATIENCE,
) -> Outcome:
    """Try mutants one by one in a copy of the repository, and return what became of them.

    `tests`: files or directories of tests, below the root; `say` is told of what lives; `patience`: see PATIENCE.
    Raises RuntimeError where no test passes without a mutant.
    """
    outcome = Outcome()
    with _copied(root) as copied:
        reached = _reach_lines(copied, sorted({mutant.path for mutant in mutants}), tests)
        start = copied.time_start(next(iter(reached.seconds)))
        for mutant in mutants:
            chosen = reached.choose(mutant)
            limit = SLOWER * (start + sum(reached.seconds[test] for test in chosen)) + patience
            if chosen and copied.is_ended(mutant, chosen, limit):
                outcome.ended += 1
                continue
            outcome.lived.append(mutant)
            say(f"{mutant}{'' if chosen else ' (no test runs it)'}")
    return outcome


@dataclass
class _Copy:
    """A copy of the repository, and a Python that finds our packages there alone."""

    root: Path
    python: Path

    def run_pytest(self, words: Sequence[str], limit: float | None = None, **environ: str) -> int:
        """Run pytest in the copy, and return its exit code. Raises subprocess.TimeoutExpired after `limit` seconds."""
        env = os.environ | {"PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"} | environ
        # Plugins of other packages take longer to import than most tests to run.
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        command = contain([str(self.python), "-m", "pytest", "-q", "-p", "xdist.plugin", "-m", "not slow", *words])
        with (self.root / ".said").open("wb") as said:
            return subprocess.run(
                command, cwd=self.root, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=limit
            ).returncode

    def time_start(self, test: str) -> float:
        """Return the seconds that a run of one test takes, most of them to start. Raises RuntimeError if it fails."""
        began = time.monotonic()
        if self.run_pytest(["-p", "no:cacheprovider", test]) != pytest.ExitCode.OK:
            raise RuntimeError(f"{test} fails without a mutant: {(self.root / '.said').read_text()[-2000:]}")
        return time.monotonic() - began

    def is_ended(self, mutant: Mutant, tests: Sequence[str], limit: float) -> bool:
        """Say whether one of the tests fails, or they take longer than so many seconds."""
        file = self.root / mutant.path
        text = file.read_bytes()
        named = self.root / ".tests"
        named.write_text("\n".join(tests))
        try:
            self._write(file, mutant.apply(text))
            words = ["-x", "-p", "no:cacheprovider", f"@{named}"]
            return self.run_pytest(words, limit) != pytest.ExitCode.OK
        except subprocess.TimeoutExpired:
            return True
        finally:
            self._write(file, text)

    def _write(self, file: Path, text: bytes) -> None:
        file.write_bytes(text)
        # Python would believe what it compiled of a text of the same second and length.
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


@dataclass
class _Reached:
    """Which tests run which line, and what each takes."""

    #: Path of a module → its line → tests.
    lines: dict[str, dict[int, set[str]]]
    #: Path of a module → test files that import it themselves, or mirror its package where none does.
    nearest: dict[str, list[str]]
    #: Test that passes without a mutant → seconds.
    seconds: dict[str, float]

    def choose(self, mutant: Mutant) -> list[str]:
        """Return the tests to run, the nearest first."""
        files = self.nearest[mutant.path]
        chosen = [test for test in self.lines[mutant.path].get(mutant.line, ()) if test in self.seconds]
        if not chosen:
            # It runs in another process, or when the module is imported.
            chosen = [test for test in self.seconds if test.partition("::")[0] in files]
        words = set(Path(mutant.path).with_suffix("").parts)
        kept, spent = [], 0.0
        for test in sorted(chosen, key=lambda test: (-_count_shared(test, words), self.seconds[test], test)):
            spent += self.seconds[test]
            if kept and spent > BUDGET:
                break
            kept.append(test)
        return kept


def _count_shared(test: str, words: set[str]) -> int:
    """Say how many folders and names a test shares with a module: tests mirror the packages."""
    file = test.partition("::")[0].replace("/test_", "/")
    return len(words.intersection(Path(file).with_suffix("").parts))


def _reach_lines(copied: _Copy, paths: list[str], tests: Sequence[str]) -> _Reached:
    """Run the tests that may reach the modules once, without a mutant, and note what they run."""
    files = find_importers(copied.root, paths, list(tests))
    nearest = {}
    for path in paths:
        # What no test imports may be a script, which runs in a process that tests start.
        importers = find_importers(copied.root, [path], list(tests), direct=True)
        nearest[path] = importers or _find_mirrors(copied.root, path, tests)
    files = sorted({*files, *(file for found in nearest.values() for file in found)})
    if not files:
        raise RuntimeError(f"no test below {', '.join(tests)} imports what is to be mutated, or mirrors its package")
    data, report = copied.root / ".coverage", copied.root / ".report.xml"
    words = ["-p", _PLUGIN, "-n", str(os.cpu_count() or 1), "-o", "junit_family=xunit1"]
    source = os.pathsep.join(str((copied.root / path).parent) for path in paths)
    copied.run_pytest([*words, f"--junitxml={report}", *files], **{contexts.DATA: str(data), contexts.SOURCE: source})
    seconds = dict(_read_passed(report)) if report.exists() else {}
    if not seconds:
        raise RuntimeError(f"no test passes without a mutant: {(copied.root / '.said').read_text()[-2000:]}")
    measured = coverage.Coverage(str(data), config_file=False, messages=False)
    measured.combine()
    lines = {
        path: {
            line: set(names) for line, names in measured.get_data().contexts_by_lineno(str(copied.root / path)).items()
        }
        for path in paths
    }
    return _Reached(lines, nearest, seconds)


def _find_mirrors(root: Path, path: str, tests: Sequence[str]) -> list[str]:
    """Return the test files below `tests` in the folders named as a module's packages are, but for `monkey`."""
    packages = tuple(name_module(path).removeprefix("monkey.").split(".")[:-1])
    found = []
    for start in tests:
        files = [root / start] if start.endswith(".py") else sorted((root / start).rglob("test_*.py"))
        for file in files:
            folders = file.relative_to(root).parent.parts
            if folders[-len(packages) :] == packages:
                found.append(file.relative_to(root).as_posix())
    return found


def _read_passed(report: Path) -> Iterator[tuple[str, float]]:
    """Yield each test of a report that passed, with the seconds that it took."""
    for case in ElementTree.parse(report).iter("testcase"):
        if all(wrong.tag not in ("failure", "error", "skipped") for wrong in case):
            yield f"{case.get('file')}::{case.get('name')}", float(case.get("time") or 0)


@contextmanager
def _copied(root: Path) -> Iterator[_Copy]:
    """Copy the repository to where nothing is lost, with an environment that has what ours has."""
    with tempfile.TemporaryDirectory(prefix="monkey-mutants-") as scratch:
        there = Path(scratch).resolve() / "tree"
        shutil.copytree(root, there, symlinks=True, ignore=_LEFT)
        place = there.parent / "environment"
        venv.create(place, symlinks=True)
        [packages] = place.glob("lib/python*/site-packages")
        # A directory that is named so is looked into, but what it says of others, as of our tree, is not read.
        found = [*(there / above for above in ROOTS), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        (packages / "mutants.pth").write_text("\n".join(map(str, found)))
        shutil.copy(contexts.__file__, packages / f"{_PLUGIN}.py")
        here = Path(sys.executable).parent
        for program in here.iterdir():
            _copy_program(program, here, place / "bin")
        yield _Copy(there, place / "bin/python")


def _copy_program(program: Path, here: Path, there: Path) -> None:
    """Copy a program of our environment that is Python, so that the other environment runs it."""
    if program.is_symlink() or not program.is_file():
        return
    text = program.read_bytes()
    first = b"#!" + os.fsencode(here)
    if text.startswith(first):
        shutil.copy(program, there / program.name)
        (there / program.name).write_bytes(b"#!" + os.fsencode(there) + text.removeprefix(first))
