"""From parameters to jobs: order, zip, when, exclude, include, caps; large sweeps in little time and memory."""

from __future__ import annotations

import itertools
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from monkey.spec.job.job_table import JobTable
from monkey.spec.sweep.expand import expand_spec
from tests.unit.spec.making import jobs, problem, problems, spec, table


def rows(text: str) -> list[tuple[Any, ...]]:
    return [tuple(job.values()) for job in jobs(text)]


def test_the_first_parameter_varies_slowest() -> None:
    assert rows("parameters: {a: [1, 2], b: [x, y], c: [0]}") == [(1, "x", 0), (1, "y", 0), (2, "x", 0), (2, "y", 0)]


def test_zip_varies_together_where_its_first_parameter_stands() -> None:
    text = "parameters: {a: [1, 2], s: [7, 8], b: [x, y]}\nzip: [[b, a]]"
    assert rows(text) == [(1, 7, "x"), (1, 8, "x"), (2, 7, "y"), (2, 8, "y")]
    assert rows("parameters: {a: [1, 1, 2], b: [x, x, x]}\nzip: [[a, b]]") == [(1, "x"), (2, "x")]


def test_when_leaves_a_parameter_out_and_equal_jobs_are_one() -> None:
    text = "parameters: {lr: [0.01, 0.1], hidden: {values: [32, 64], when: lr < 0.1}}"
    assert jobs(text) == [{"lr": 0.01, "hidden": 32}, {"lr": 0.01, "hidden": 64}, {"lr": 0.1}]


def test_else_gives_a_value_where_when_does_not_hold() -> None:
    text = "parameters: {lr: [0.01, 0.1], hidden: {values: [32, 64], when: lr < 0.1, else: 32}}"
    assert rows(text) == [(0.01, 32), (0.01, 64), (0.1, 32)]
    assert rows(text.replace("else: 32", "else: 1.5")) == [(0.01, 32), (0.01, 64), (0.1, 1.5)]


def test_conditions_may_depend_on_each_other_in_any_order() -> None:
    text = """\
        parameters:
          c: {value: 1, when: b == 1}
          b: {values: [0, 1], when: a}
          a: [false, true]
        """
    assert jobs(text) == [{"a": False}, {"b": 0, "a": True}, {"c": 1, "b": 1, "a": True}]


def test_conditions_in_a_circle_are_refused() -> None:
    a, b, c = (f"{name}: {{value: 1, when: {on} == 1}}" for name, on in (("a", "b"), ("b", "c"), ("c", "b")))
    found = problems(f"parameters: {{{a}, {b}, {c}}}")
    assert [p.message for p in found] == [f"whether {n!r} applies depends on {n!r} itself" for n in "bc"]


def test_a_condition_that_cannot_be_decided_is_placed() -> None:
    found = problem("parameters:\n  a: [1, x]\n  b: {value: 1, when: a < 2}\n")
    assert (found.line, found.column) == (3, 23)
    assert "cannot decide 'a < 2' where a = 'x'" in found.message


def test_a_command_needs_what_it_uses_in_every_job() -> None:
    text = "command: a --lr {lr} --h {h}\nparameters: {lr: [1, 2], h: {value: 3, when: lr > 1%s}}\n"
    found = problem(text % "")
    assert found.line == 1
    assert "uses 'h', but some jobs do not have it" in found.message
    assert "else: VALUE" in (found.hint or "")
    assert len(jobs(text % ", else: 0")) == 2
    assert len(jobs(text % "" + "exclude: [{lr: 1}]")) == 1


def test_exclude_matches_what_it_names() -> None:
    text = "parameters: {a: [1, 2, 3], b: [x, y]}\nexclude: [{a: 1}, {a: 2, b: y}, {b: x, a: 3.0}]"
    assert rows(text) == [(2, "x"), (3, "y")]
    assert rows("parameters: {a: [1, true]}\nexclude: [{a: true}]") == [(1,)]
    assert rows("parameters: {a: {range: [0, 4]}}\nexclude: [{a: 2.0}]") == [(0,), (1,), (3,)]
    assert rows("parameters: {o: {parameters: {a: [1, 2]}}}\nexclude: [{o: {a: 1}}]") == [(2,)]
    assert rows("parameters: {o: {parameters: {a: [1, 2]}}}\nexclude: [{o.a: 1}]") == [(2,)]
    assert rows("parameters: {a: [{b: 1}, [1]]}\nexclude: [{a: {b: 1}}]") == [([1],)]


def test_include_adds_jobs_that_are_not_there_yet() -> None:
    text = "parameters: {a: [1, 2], b: [x]}\nexclude: [{a: 2}]\n"
    text += "include: [{a: 5, b: z}, {a: 1}, {a: 2, b: x}, {a: 5, b: z}]"
    assert rows(text) == [(1, "x"), (5, "z"), (2, "x")]
    assert rows("parameters: {a: {range: [0, 2]}}\ninclude: [{a: 7}, {a: 1}]") == [(0,), (1,), (7,)]
    when = "parameters: {a: [1], b: {value: 2, when: a > 1}}\ninclude: [{a: 1, b: 3}, {a: 4}]"
    assert jobs(when) == [{"a": 1}, {"a": 1, "b": 3}, {"a": 4}]
    assert "lacks b" in problem("parameters: {a: [1], b: {value: 2, when: a > 1, else: 3}}\ninclude: [{a: 4}]").message


def test_run_cap_cuts_the_grid_after_all_else_but_include() -> None:
    text = "parameters: {a: [1, 2, 3, 4], b: {values: [0, 1], when: a > 1}}\n"
    text += "exclude: [{a: 2}]\ninclude: [{a: 9}]\nrun_cap: 3"
    assert jobs(text) == [{"a": 1}, {"a": 3, "b": 0}, {"a": 3, "b": 1}, {"a": 9}]


def test_equal_random_draws_are_one_job() -> None:
    assert len(rows("method: random\nrun_cap: 5\nparameters: {a: [1, 2, 3, 4, 5]}")) < 5
    assert len(rows("method: random\nrun_cap: 50\nparameters: {a: [1, 2]}\nexclude: [{a: 1}]")) == 1


values = st.lists(st.integers(-2, 2) | st.sampled_from([0.5, "x", True, None]), min_size=1, max_size=3, unique_by=repr)


@settings(max_examples=60)
@given(axes=st.lists(values, min_size=1, max_size=4), cap=st.none() | st.integers(1, 10), data=st.data())
def test_a_grid_is_the_product(axes: list[list[Any]], cap: int | None, data: st.DataObject) -> None:
    """Against itertools, with a rule that excludes and a parameter that depends on another."""
    names = [f"p{n}" for n in range(len(axes))]
    picked = data.draw(st.sampled_from(axes[0]))
    text = f"parameters: {dict(zip(names, axes, strict=True))}\nexclude: [{{p0: {picked}}}]\n"
    text += f"run_cap: {cap}\n" if cap else ""
    text = text.replace("None", "null").replace("True", "true")
    expected = [row for row in itertools.product(*axes) if repr(row[0]) != repr(picked)][:cap]
    assume(expected)
    assert [tuple(map(repr, row)) for row in rows(text)] == [tuple(map(repr, row)) for row in expected]


MILLION = """\
    parameters:
      a: {range: [0, 1000]}
      b: {range: [0, 100]}
      c: {values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]%s}
    """


@pytest.mark.parametrize("condition, most, many", [("", 1000, 1_000_000), (", when: 'a < 50 or b > 50'", 100, 77_050)])
def test_a_million_jobs(condition: str, most: int, many: int) -> None:
    made = spec((MILLION % condition).replace("1000", str(most)))
    begin = time.process_time()
    grown = expand_spec(made)[0]
    assert len(grown) == many
    assert time.process_time() - begin < 6
    assert sum(len(c.index) * c.index.itemsize for c in grown.columns.values()) <= 12 * many  # type: ignore[attr-defined]  # array


def test_a_large_grid_takes_little_memory() -> None:
    made = spec((MILLION % "").replace("1000", "100"))
    tracemalloc.start()
    grown = expand_spec(made)[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(grown) == 100_000
    assert peak < 100_000 * 40


def test_a_table_survives_json() -> None:
    bare = table("parameters: {a: {range: [0, 3]}, b: {values: [x], when: a > 1}}\ninclude: [{a: 9}]")
    made = replace(bare, ids=[f"{job:016x}" for job in range(4)])
    assert JobTable.from_json(made.to_json()).to_json() == made.to_json()


@pytest.mark.slow
def test_a_run_cap_spares_making_the_rest() -> None:
    grid = "parameters: {a: {range: [0, 1000000]}, b: {range: [0, 1000000]}}\nrun_cap: 3\n"
    assert rows(grid) == [(0, 0), (0, 1), (0, 2)]
    assert rows(f"{grid}exclude: [{{b: 1}}, {{b: 3}}, {{a: 7}}]") == [(0, 0), (0, 2), (0, 4)]
    found = problem(f"{grid}exclude: [{{a: 0}}, {{a: 1}}, {{a: 2}}, {{a: 3}}, {{a: 4}}]")
    assert (found.line, found.column) == (2, 10)
    assert "of the first 5,000,000 points, only 0" in found.message


def test_a_matrix_without_jobs_is_a_mistake() -> None:
    found = problem("parameters: {a: [1, 2]}\nexclude: [{a: 1}, {a: 2}]")
    assert (found.line, found.message) == (2, "no job is left: exclude takes all of them out")
    assert rows("parameters: {a: [1]}\nexclude: [{a: 1}]\ninclude: [{a: 5}]") == [(5,)]


def test_draws_that_make_no_job_are_told() -> None:
    text = "method: random\nrun_cap: 50\nparameters: {a: [1, 2, 3]}\n"
    made, notes = expand_spec(spec(text))
    assert (len(made), notes) == (3, ("the 50 draws of run_cap make 3 jobs; 47 came out equal to one before",))
    (note,) = expand_spec(spec(f"{text}exclude: [{{a: 1}}, {{a: 2}}]"))[1]
    assert note == "the 50 draws of run_cap make 1 job; 49 came out equal to one before, or excluded"
    for silent in ("parameters: {a: [1, 2]}", "method: random\nrun_cap: 5\nparameters: {a: {min: 0.0, max: 1.0}}"):
        assert expand_spec(spec(silent))[1] == ()
