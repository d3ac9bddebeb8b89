"""Globs over '/'-separated paths."""

from __future__ import annotations

import pytest

from monkey.transfer.globs import GlobPatterns


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py", "a b.py"], ["d/a.py", "a.pyc", "apy"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.pyc", "d/a"]),
        ("src/**", ["src/a", "src/d/e/f"], ["src2/a", "d/src/a"]),
        ("src", ["src", "src/a", "src/d/e"], ["src2", "a/src"]),
        ("src/", ["src/a"], ["src2"]),
        ("./src/*.py", ["src/a.py"], ["src/d/a.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "a/b/c"], ["ab", "a/xb", "b"]),
        ("**", ["a", "a/b", ".hidden/x"], []),
        (".", ["a", "a/b"], []),
        ("a?c", ["abc", "a.c"], ["a/c", "ac"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x", "-x"]),
        ("[!a-c]x", ["dx"], ["ax", "/x", "bx"]),
        ("[]]", ["]"], ["a"]),
        ("[a", ["[a"], ["a"]),
        ("a[^b]", ["a^", "ab"], ["ac"]),
        ("a.(b)+$", ["a.(b)+$"], ["axb"]),
        ("**/*~", ["a~", "d/x~"], ["a"]),
        ("line\n*", ["line\nb\nc"], ["line"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
    ],
)
def test_a_pattern_names(pattern: str, yes: list[str], no: list[str]) -> None:
    globs = GlobPatterns([pattern])
    assert [path for path in yes if not globs.match(path)] == []
    assert [path for path in no if globs.match(path)] == []


@pytest.mark.parametrize("pattern", ["", "/", "/etc/*", "../x", "a/../b", "a/..", "[z-a]"])
def test_what_leads_out_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected a pattern"):
        GlobPatterns([pattern])


def test_patterns_that_name_nothing_are_told() -> None:
    assert GlobPatterns(["*.py", "*.txt", "d"]).idle(["a.py", "d/x"]) == ["*.txt"]


def test_a_pattern_cannot_take_for_ever() -> None:
    assert not GlobPatterns(["**/" * 20 + "x"]).match("a/" * 60 + "y")
    assert not GlobPatterns(["*a" * 20]).match("a" * 60 + "b")


@pytest.mark.parametrize(
    ("pattern", "directory", "reaches"),
    [
        ("run", "run", True),
        ("run", "run/ckpt/a", True),
        ("run/*/model.pt", "run", True),
        ("run/*/model.pt", "run/a", True),
        ("run/*/model.pt", "other", False),
        ("*.npz", "cache", False),
        ("*.npz", "a.npz", True),
        ("**/model.pt", "any/where", True),
        ("eval/**/*.json", "eval", True),
        ("eval/**/*.json", "evaluation", False),
    ],
)
def test_a_pattern_reaches_directories_in_which_it_may_name_something(
    pattern: str, directory: str, reaches: bool
) -> None:
    assert GlobPatterns([pattern]).reaches(directory) == reaches
