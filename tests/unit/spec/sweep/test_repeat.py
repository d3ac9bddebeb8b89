"""Repeats: each point runs once per repeat, whatever makes the points; against itertools.product."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.spec.sweep.expand import expand_spec
from tests.unit.spec.making import jobs, problem, problems, spec, table

RANDOM = "method: random\nrun_cap: 20\nparameters:\n  lr: {loguniform: [1e-4, 0.1]}\n  opt: [adam, sgd]\n"


def identities(text: str) -> list[str]:
    return list(assign_job_ids(table(text), Recipe("true", "c" * 64)).ids)


def test_each_draw_runs_with_all_repeats() -> None:
    points = jobs(RANDOM)
    expected = [{**point, "fold": fold} for point, fold in itertools.product(points, ["a", "b", "c"])]
    assert jobs(RANDOM + "repeat: {fold: [a, b, c]}") == expected
    assert jobs(RANDOM + "repeat: 3") == [{**point, "seed": n} for point, n in itertools.product(points, range(3))]


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True), st.integers(1, 4), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_a_capped_grid_repeats_its_first_points(values: list[str], repeats: int, cap: int) -> None:
    text = f"parameters: {{x: [{', '.join(values)}], y: [1, 2]}}\nrun_cap: {cap}\nrepeat: {{seed: {repeats}, fold: 2}}"
    points = list(itertools.product(values, [1, 2]))[:cap]
    expected = [
        {"x": x, "y": y, "seed": seed, "fold": fold}
        for (x, y), seed, fold in itertools.product(points, range(repeats), range(2))
    ]
    assert jobs(text) == expected


def test_a_repeat_is_the_same_job_as_a_value_of_a_grid() -> None:
    by_values = "parameters: {lr: [0.1, 0.2], seed: [0, 1, 2]}"
    assert identities("parameters: {lr: [0.1, 0.2]}\nrepeat: 3") == identities(by_values)
    assert identities("parameters: {lr: [0.1, 0.2]}\nrepeat: {seed: {range: [0, 3]}}") == identities(by_values)


@pytest.mark.parametrize("base", [RANDOM, "parameters: {lr: [0.1, 0.2]}\nexclude: [{lr: 0.1, seed: 0}]\n"])
def test_more_repeats_and_more_draws_keep_all_jobs(base: str) -> None:
    few, many = (identities(f"{base}repeat: {count}") for count in (2, 5))
    assert set(few) < set(many)
    draws = identities(f"{RANDOM}repeat: 2")
    assert draws == identities(f"{RANDOM.replace('20', '30')}repeat: 2")[: len(draws)]


def test_without_parameters_a_command_is_repeated() -> None:
    assert jobs("repeat: 2") == jobs("method: random\nrun_cap: 1\nrepeat: 2") == [{"seed": 0}, {"seed": 1}]


def test_equal_points_are_one_before_they_are_repeated() -> None:
    text = "method: random\nrun_cap: 50\nparameters: {opt: [adam, sgd], width: {values: [8, 16], when: opt == 'sgd'}}\n"
    seen = jobs(text + "repeat: 3")
    shapes: list[dict[str, Any]] = [{"opt": "adam"}, {"opt": "sgd", "width": 8}, {"opt": "sgd", "width": 16}]
    assert sorted(map(str, seen)) == sorted(str({**shape, "seed": n}) for shape in shapes for n in range(3))
    made = spec(text + "repeat: 3")
    assert expand_spec(made)[1] == ("the 50 draws of run_cap make 3 points; 47 came out equal to one before",)


def test_exclude_and_include_know_repeats() -> None:
    text = "parameters: {lr: [1, 2]}\nrepeat: 2\nexclude: [{lr: 1, seed: 1}]\n"
    rows = jobs(text + "include: [{lr: 3}, {lr: 4, seed: 7}, {lr: 2}]")
    assert [tuple(job.values()) for job in rows] == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (4, 7)]


def test_zip_and_conditions_make_points() -> None:
    text = "parameters: {a: [1, 2], b: [x, y], c: {values: [5], when: a > 1}}\nzip: [[a, b]]\nrepeat: 2"
    assert jobs(text) == [
        *({"a": 1, "b": "x", "seed": n} for n in range(2)),
        *({"a": 2, "b": "y", "c": 5, "seed": n} for n in range(2)),
    ]


def test_settings_say_what_repeats() -> None:
    asked = spec("parameters: {lr: [1]}\nrepeat: {fold: 2, seed: [7, 8]}").settings()
    assert asked.repeats == ["fold", "seed"]
    assert SweepSettings.from_json(asked.to_json()) == asked
    assert "repeats" not in spec("parameters: {lr: [1]}").settings().to_json(), "an older agent reads that"


WRONG = [
    ("repeat: 0", (3, 9), "expected how often to run each point, found 0", "write repeat: 3"),
    ("repeat: true", (3, 9), "expected how often to run each point, found true", "{fold: [a, b]}"),
    ("repeat: 2.5", (3, 9), "expected how often to run each point, found 2.5", "repeat: 3"),
    ("repeat: [0, 1]", (3, 9), "expected how often to run each point, found a list", "{fold: [a, b]}"),
    ("repeat: {fold: 0}", (3, 16), "expected how often to run each point, found 0", "{fold: [a, b]}"),
    ("repeat: {fold: []}", (3, 16), "expected at least one value, found an empty list", ""),
    ("repeat: {fold: {min: 0, max: 4}}", (3, 16), "expected how often to run each point, found a mapping", ""),
    ("repeat: {fold: [1, 1]}", (3, 16), "1 stands twice in 'fold'", "remove one"),
    ("repeat: {lr: 3}", (3, 10), "'lr' is a parameter already", "remove it from 'parameters'"),
    ("repeat: {lr.x: 3}", (3, 10), "'lr.x' and the parameter 'lr' cannot lie in each other", "rename"),
    ("repeat: {opt: 3}", (3, 10), "'opt' and the parameter 'opt.name' cannot lie in each other", "rename"),
    ("zip: [[lr, seed]]\nrepeat: 2", (3, 12), "'seed' repeats each point, so it varies with no parameter", "zip"),
    ("run_cap: 5000000\nrepeat: 2", (4, 1), "expected at most 5,000,000 jobs, found 10,000,000", "fewer"),
]


@pytest.mark.parametrize(("text", "place", "message", "hint"), WRONG)
def test_a_wrong_repeat_is_named_with_its_place(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    found = problem(f"parameters: {{lr: [1, 2], opt.name: [a]}}\ncommand: 'a {{lr}}'\n{text}")
    assert ((found.line, found.column), found.message[: len(message)]) == (place, message)
    assert hint in (found.hint or "")


def test_a_default_seed_that_is_a_parameter_says_so() -> None:
    found = problem("parameters: {seed: [1, 2]}\nrepeat: 2")
    assert (found.line, found.message) == (2, "'seed' is a parameter already")


def test_a_condition_cannot_tell_repeats_apart() -> None:
    found = problem("parameters:\n  lr: {values: [1], when: seed > 0}\nrepeat: 2")
    assert (found.line, found.message) == (2, "'seed' repeats each point, so no condition can use it")


def test_what_is_wrong_with_repeats_hides_no_other_mistake_and_makes_none() -> None:
    text = "command: a --fold {fold} --lr {lrr}\nparameters: {lr: [1]}\nrepeat: {fold: 0}"
    assert [found.line for found in problems(text)] == [1, 3]
    assert problem("command: a {seed}\nparameters: {lr: [1]}\nrepeat: 0").line == 3
