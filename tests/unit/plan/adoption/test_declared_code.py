"""Which code `equivalences` mean, and what is said where they mean none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monkey.plan.adoption.declared_code import resolve_declared_code
from monkey.plan.observed import ObservedProject
from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.recipe import EarlierRecipe
from tests.unit.plan.making import RECIPE, want
from tests.unit.plan.planning import CODE, JOBS

A, B, C = "a" * 64, "ab" * 32, "c" * 64


def revision(code: str, commit: str = "", *, dirty: bool = False) -> EarlierRecipe:
    return EarlierRecipe(replace(RECIPE, code=code), frozenset(), "digits", 1, commit, dirty)


HISTORY = [
    revision(A, "1" * 40),
    revision(B, "1" * 40),
    revision(C, "12" * 20, dirty=True),
    revision(CODE.code, "3" * 40),
]


def resolve(text: str, *codes: tuple[str, str]) -> tuple[set[str], str]:
    desired = want(JOBS, CODE, equivalences=[Equivalence(code=text, line=7)])
    found = resolve_declared_code(desired, ObservedProject(recipes=HISTORY, codes=set(codes)))
    return set(found.items), found.problems.get(7, "")


@pytest.mark.parametrize(
    "text, codes", [("aaaaaa", {A}), ("ababab", {B}), (A, {A}), ("111111", {A, B}), ("1" * 40, {A, B})]
)
def test_code_is_named_by_its_hash_or_by_a_clean_commit(text: str, codes: set[str]) -> None:
    assert resolve(text) == (codes, "")


@pytest.mark.parametrize(
    "text, problem",
    [
        ("fedcba", "no revision has fedcba as its code or commit; there is dddddddd (digits, commit 33333333); cccccc"),
        ("121212", "commit 121212 was applied with changes on top: name the code instead, cccccccc"),
        ("dddddd", "dddddd is today's code itself"),
        ("333333", "333333 is today's code itself"),
    ],
)
def test_a_hash_that_names_nothing_is_told_with_what_there_is(text: str, problem: str) -> None:
    codes, said = resolve(text)
    assert not codes and said.startswith(problem)


def test_the_beginning_of_several_hashes_names_none() -> None:
    history = [revision("abc" + end * 61, commit) for end, commit in (("0", "e" * 40), ("1", "e" * 39 + "f"))]
    for text, problem in (("abc", "is the beginning of 2 codes (abc00000, abc11111)"), ("eeeeee", "of 2 commits")):
        desired = want(JOBS, CODE, equivalences=[Equivalence(code=text, line=1)])
        found = resolve_declared_code(desired, ObservedProject(recipes=history))
        assert not found.items and problem in found.problems[1]
    assert resolve_declared_code(want(JOBS, equivalences=[Equivalence(code="abc")]), ObservedProject()).problems == {
        0: "no revision has abc as its code or commit; there is none yet"
    }


def test_a_declaration_holds_for_the_code_that_it_was_first_used_with() -> None:
    assert resolve("aaaaaa", (A, CODE.code), (A, C)) == ({A}, "")
    codes, problem = resolve("aaaaaa", (A, C))
    assert not codes and problem.endswith('if results are still the same, add {code: "cccccccc"}')
    assert resolve("111111", (A, C)) == ({B}, ""), "one of a commit's codes is enough"
