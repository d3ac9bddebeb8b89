"""Mutants that no test notices are named, and the tree that they are of stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.mutator import list_mutants
from tests.mutants.trials import choose_mutants, try_mutants

PACKAGE = """
LARGE = 10

def is_large(n):
    return n > LARGE

def count_down(n):
    while n > 0:
        n -= 1
"""
ALONE = """
def find_answer():
    return 42
"""
TESTS = """
from small.sizes import count_down, is_large

def test_is_large():
    assert is_large(12) and not is_large(10)

def test_count_down():
    count_down(3)

def test_broken():
    assert is_large(0)
"""
SCRIPT = """
import sys

print(int(sys.argv[1]) + 1)
"""
SCRIPT_TESTS = """
import subprocess
import sys

def test_next():
    assert subprocess.check_output([sys.executable, "small/scripts/next.py", "4"]) == b"5\\n"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    for folder in ("small", "tests"):
        (tmp_path / folder).mkdir()
    for name, text in {"__init__": "", "sizes": PACKAGE, "alone": ALONE}.items():
        (tmp_path / f"small/{name}.py").write_text(text)
    (tmp_path / "tests/test_sizes.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    return tmp_path


@pytest.mark.slow
def test_what_lives_is_named_and_what_hangs_is_ended(small: Path) -> None:
    said: list[str] = []
    chosen = choose_mutants(small, ["small"], 100, 1)
    outcome = try_mutants(small, chosen, ["tests"], said.append, patience=30)
    assert {mutant.after for mutant in chosen} >= {"n <= LARGE", "n >= LARGE", "11", "return None", "pass", "n <= 0"}
    assert "small/sizes.py:5: n > LARGE -> n >= LARGE" not in said
    assert "small/sizes.py:2: 10 -> 11" in said  # the line runs when the module is imported, in no test
    assert "small/alone.py:3: 42 -> 43 (no test runs it)" in said
    assert not any(line.endswith("-> pass") for line in said)  # it counts down for ever
    assert str(outcome).startswith(f"{len(chosen)} mutants: {len(chosen) - len(said)} ended")
    assert (small / "small/sizes.py").read_text() == PACKAGE
    assert not [path for path in small.rglob("*") if path.name.startswith((".", "__pycache__"))]


@pytest.mark.slow
def test_script_that_no_test_imports_is_tried_by_the_tests_of_its_package(small: Path) -> None:
    for folder in ("small/scripts", "tests/small/scripts", "tests/small/others"):
        (small / folder).mkdir(parents=True)
    (small / "small/scripts/next.py").write_text(SCRIPT)
    (small / "tests/small/scripts/test_next.py").write_text(SCRIPT_TESTS)
    (small / "tests/small/others/test_others.py").write_text("def test_others():\n    pass\n")
    said: list[str] = []
    chosen = choose_mutants(small, ["small/scripts"], 100, 1)
    outcome = try_mutants(small, chosen, ["tests"], said.append, patience=30)
    assert {mutant.after for mutant in chosen} >= {"int(sys.argv[1]) - 1", "pass"}
    assert not said and outcome.ended == len(chosen)


def test_a_seed_chooses_the_same_again(small: Path) -> None:
    first = choose_mutants(small, ["small/sizes.py"], 3, 1)
    assert len(first) == 3
    assert choose_mutants(small, ["small/sizes.py"], 3, 1) == first
    assert choose_mutants(small, ["small/sizes.py"], 3, 2) != first
    with pytest.raises(ValueError, match="found none at small/none"):
        choose_mutants(small, ["small/none"], 3, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", {"a >= b", "a <= b"}),
        ("a is None", {"a is not None"}),
        ("a and b", {"a or b", "a", "b"}),
        ("a or b or c", {"a and b and c", "b or c", "a or c", "a or b"}),
        ("not a", {"a"}),
        ("a + b", {"a - b"}),
        ("f()", {"pass"}),
        ("raise error", {"pass"}),
        ("a += b", {"pass"}),
        ("a = True", {"a = False"}),
        ("a = 'ä'; b = 2", {"a = 'ä_'; b = 2", "a = 'ä'; b = 3"}),
        ("a = 'some words'", set()),
        ("a: int = 7", {"a: int = 8"}),
        ("'''A docstring.'''", set()),
        ("a = f'{b < c} one'", set()),
        ("def f() -> 'A':\n    return 1", {"def f() -> 'A':\n    return None", "def f() -> 'A':\n    return 2"}),
    ],
)
def test_each_place_changes_in_one_way_at_a_time(text: str, expected: set[str]) -> None:
    mutants = list_mutants("a.py", text.encode())
    assert {mutant.apply(text.encode()).decode() for mutant in mutants} == expected
