"""`equivalences:` as specs write it: what is read, and each mistake with its place."""

from __future__ import annotations

import pytest

from monkey.spec.job.equivalences import Equivalence
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.load import place_equivalences
from tests.unit.spec.making import problem, problems, spec

TWO = "parameters: {rate: [1, 2], o: {parameters: {lr: [0.1]}}}\n"
READ = (
    TWO
    + """\
equivalences:
  - renamed: {lr: rate}
  - code: ABCDEF12
  - default: {o.lr: 0.1}
"""
)


def test_each_item_is_read_with_its_line() -> None:
    read = spec(READ)
    assert place_equivalences(read) == (
        Equivalence(renamed={"lr": "rate"}, line=3),
        Equivalence(code="abcdef12", line=4),
        Equivalence(default={"o.lr": 0.1}, line=5),
    )


def test_one_item_may_stand_alone() -> None:
    read = spec(TWO + "equivalences: {renamed: {lr: rate, lrate: rate}}")
    assert place_equivalences(read)[0].renamed == {"lr": "rate", "lrate": "rate"}
    assert spec("").equivalences == []


def test_they_are_not_in_a_job_s_identity() -> None:
    with_them, without = spec(READ), spec(TWO)
    ids = [assign_job_ids(expand_spec(one)[0], one.recipe("c" * 64)).ids for one in (with_them, without)]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    "text, where, message, hint",
    [
        ("3", (2, 15), "expected a list of equivalences, found 3", "write {renamed:"),
        ("[3]", (2, 16), "expected an equivalence, found 3", "write {renamed:"),
        ("[{}]", (2, 16), "expected one of renamed, code, default, found nothing", "item of its own"),
        ("[{code: abcdef, renamed: {a: rate}}]", (2, 16), "found code and renamed", "item of its own"),
        ("[{rename: {a: rate}}]", (2, 17), "unknown key 'rename'", "did you mean 'renamed'?"),
        ("[{code: 1234567}]", (2, 23), "expected a hash of code or of a commit, 6 to 64 hex digits", "quotes"),
        ("[{code: abc}]", (2, 23), "found the text 'abc'", "monkey info"),
        ("[{code: train}]", (2, 23), "found the text 'train'", "monkey info"),
        ("[{renamed: [a, rate]}]", (2, 26), "expected a mapping, found a list", "write {renamed:"),
        ("[{renamed: {}}]", (2, 26), "expected a mapping, found an empty mapping", "write {renamed:"),
        ("[{default: 3}]", (2, 26), "expected a mapping, found 3", "{default: {name: value}}"),
        ("[{renamed: {a: 3}}]", (2, 30), "expected a parameter's name, found 3", "write {renamed:"),
        ("[{renamed: {a b: rate}}]", (2, 27), "'a b' cannot have been a parameter", "letters"),
        ("[{renamed: {a: rat}}]", (2, 30), "unknown parameter 'rat': today's name stands on the right", "'rate'"),
        ("[{renamed: {rate: o.lr}}]", (2, 27), "the name 'rate' is still in use", "remove this item"),
        ("[{renamed: {o: rate}}]", (2, 27), "the name 'o' is still in use", "remove this item"),
        ("[{renamed: {rate.x: o.lr}}]", (2, 27), "cannot have been there beside its own group", "check"),
        ("[{default: {rat: 1}}]", (2, 27), "unknown parameter 'rat'", "did you mean 'rate'?"),
        ("[{default: {rate: 3}}]", (2, 33), "3 is not a value of 'rate', so no job has it", "one of its values"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, where: tuple[int, int], message: str, hint: str) -> None:
    found = problem(f"{TWO}equivalences: {text}")
    assert (found.line, found.column) == where
    assert message in found.message and hint in (found.hint or "")


def test_a_parameter_is_renamed_to_one_name() -> None:
    found = problem(TWO + "equivalences:\n  - renamed: {a: rate}\n  - renamed: {a: o.lr}")
    assert (found.line, found.column) == (4, 15) and "'a' was renamed to 'rate' and to 'o.lr'" in found.message
    assert "expected at most 100" in problem("equivalences: [" + "{code: abcdef}," * 101 + "]").message


def test_mistakes_elsewhere_hide_none_and_make_none() -> None:
    found = problems("parameters: {rate: [], b: [1]}\nequivalences: [{renamed: {a: rate, b: c}}, {default: {rate: 9}}]")
    said = {one.message.split(":")[0] for one in found[1:]}
    assert said == {"unknown parameter 'c'", "the name 'b' is still in use"}


def test_a_value_is_compared_as_people_do() -> None:
    conditional = (
        "parameters: {a: [1], b: {values: [2], when: a > 1, else: 0.0}, c: {min: 0, max: 1}}\nmethod: random\n"
    )
    assert spec(conditional + "run_cap: 3\nequivalences: [{default: {a: 1.0, b: 0, c: 7}}]").equivalences
