from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.plan.text.describe import describe_jobs, format_value
from monkey.plan.text.rectangles import JobRectangles, factor_rows
from tests.unit.plan.making import grid, table

GRID = grid(lr=[0.01, 0.03, 0.1], hidden=[32, 128], seed=range(5))


def told(jobs: list[dict[str, object]], rows: list[int] | None = None, limit: int = 8) -> list[str]:
    return describe_jobs(table(jobs), range(len(jobs)) if rows is None else rows, limit)


def rows_of(jobs: list[dict[str, object]], **values: object) -> list[int]:
    return [row for row, job in enumerate(jobs) if values.items() <= job.items()]


def test_a_grid_is_one_line() -> None:
    assert told(GRID) == ["lr{0.01,0.03,0.1} × hidden{32,128} × 5 seeds = 30 jobs"]


def test_a_part_of_a_grid_is_one_line() -> None:
    assert told(GRID, rows_of(GRID, lr=0.03)) == ["lr=0.03 × hidden{32,128} × 5 seeds = 10 jobs"]
    assert told(GRID, [7]) == ["lr=0.01 × hidden=128 × seed=2 = 1 job"]


def test_an_excluded_corner_leaves_two_lines() -> None:
    jobs = [job for job in GRID if (job["lr"], job["hidden"]) != (0.1, 32)]
    assert told(jobs) == [
        "lr{0.01,0.03} × hidden=32 × 5 seeds = 10 jobs",
        "lr{0.01,0.03,0.1} × hidden=128 × 5 seeds = 15 jobs",
    ]


def test_an_absent_parameter_is_left_out() -> None:
    jobs = [job if job["lr"] != 0.1 else {"lr": 0.1, "seed": job["seed"]} for job in GRID if job["hidden"] == 32]
    assert told(jobs) == ["lr{0.01,0.03} × hidden=32 × 5 seeds = 10 jobs", "lr=0.1 × 5 seeds = 5 jobs"]


def test_a_parameter_both_absent_and_present_says_so() -> None:
    jobs = [*grid(a=[1, 2]), *grid(a=[1, 2], b=[3])]
    assert told(jobs) == ["a{1,2} × b{3,unset} = 4 jobs"]


def test_a_constant_parameter_is_left_out_unless_it_is_all_there_is() -> None:
    assert told(grid(lr=[0.1, 0.2], epochs=[5])) == ["lr{0.1,0.2} = 2 jobs"]
    assert told(grid(epochs=[5])) == ["epochs=5 = 1 job"]
    assert told([{}]) == ["1 job"]


def test_many_values_are_a_span() -> None:
    assert told(grid(x=range(100), y=[1, 2])) == ["x{0 … 99, 100 values} × y{1,2} = 200 jobs"]


def test_zipped_parameters_are_a_line_each_while_they_are_few() -> None:
    jobs = [{"lr": lr, "hidden": hidden, "seed": seed} for lr, hidden in ((0.1, 32), (0.3, 64)) for seed in (0, 1)]
    assert told(jobs) == ["lr=0.1 × hidden=32 × 2 seeds = 2 jobs", "lr=0.3 × hidden=64 × 2 seeds = 2 jobs"]
    many = [{"layers": i, "width": 2 * i, "seed": seed} for i in range(30) for seed in (0, 1)]
    assert told(many) == ["layers 0 … 29, width 0 … 58 (30 combinations) × 2 seeds = 60 jobs"]


def test_a_random_search_is_summed_up() -> None:
    draws = random.Random(3)
    jobs = [
        {"opt": opt, "lr": lr, "seed": seed}
        for lr in [draws.uniform(0.001, 0.1) for _ in range(20)]
        for opt in ("adam", "sgd")
        for seed in (0, 1)
    ]
    assert told(jobs) == ["opt{adam,sgd} × lr{~0.0023 … ~0.0996, 20 values} × 2 seeds = 80 jobs"]
    for job in jobs:
        job["wd"] = job["lr"] * 2
    assert told(jobs) == ["opt{adam,sgd} × lr ~0.0023 … ~0.0996, wd ~0.00461 … ~0.199 (20 draws) × 2 seeds = 80 jobs"]


def test_a_patchwork_shows_its_largest_pieces_and_sums_up_the_rest() -> None:
    draws = random.Random(1)
    patches = draws.sample(list(product(range(30), range(30))), 60)
    jobs = [*grid(a=range(100, 110), b=range(100, 110)), *({"a": a, "b": b} for a, b in patches)]
    lines = told(jobs, limit=4)
    assert len(lines) <= 4
    assert lines[0].startswith("a 0 …") or "= 100 jobs" in lines[0]
    assert sum(int(line.rpartition("= ")[2].split()[0]) for line in lines) == 160


def test_nothing_is_no_line() -> None:
    assert told(GRID, []) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (3e-5, "3e-05"),
        (True, "true"),
        (None, "null"),
        ("adam", "adam"),
        ("0.1", '"0.1"'),
        ("true", '"true"'),
        ("", '""'),
        ("a b", '"a b"'),
        ("a\nb", '"a\\nb"'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ("größe", "größe"),
        ([1, "x"], '[1,"x"]'),
        (["a\u202eb"], '["a\\u202eb"]'),
        (2**200, str(2**200)),
        (0.001953125, "0.001953125"),
        ("x" * 100, "x" * 100),
    ],
)
def test_values_are_written_as_in_a_spec(value: object, text: str) -> None:
    assert format_value(value) == text


_POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-1, 3)), unique=True, max_size=60)


@given(_POINTS)
def test_rectangles_are_exactly_the_rows(chosen: list[tuple[int, int, int]]) -> None:
    # -1: this job lacks the parameter.
    jobs = [{"a": a, "b": b, **({"c": c} if c >= 0 else {})} for a, b, c in chosen]
    made = table(jobs)
    names = list(made.columns)
    rectangles = factor_rows(made, range(len(jobs)), names)
    found = expand_points(rectangles)
    expected = {tuple(made.columns[name].index[row] for name in names) for row in range(len(jobs))}
    assert len(found) == len(jobs) and set(found) == expected
    assert sum(rectangles.jobs()) == len(jobs)


@given(_POINTS)
def test_lines_count_every_job_once(chosen: list[tuple[int, int, int]]) -> None:
    jobs = [{"a": a, "b": b, "c": c / 3} for a, b, c in chosen]
    lines = told(jobs, limit=3)
    assert len(lines) <= 3
    assert sum(int(line.rpartition("= ")[2].split()[0]) for line in lines) == len(jobs)


@given(_POINTS)
def test_no_two_rectangles_could_be_one(chosen: list[tuple[int, int, int]]) -> None:
    jobs = [{"a": a, "b": b, **({"c": c} if c >= 0 else {})} for a, b, c in chosen]
    made = table(jobs)
    rectangles = factor_rows(made, range(len(jobs)), list(made.columns))
    for at in range(len(rectangles.columns)):
        others = [numbers for column, numbers in enumerate(rectangles.columns) if column != at]
        keys = list(zip(*others, strict=True))
        assert len(set(keys)) == len(keys) or not others


def test_texts_and_mixed_values_are_shown_by_the_first_few() -> None:
    assert told(grid(x=[f"v{i}" for i in range(9)])) == ["x{v0,v1,v2,…, 9 values} = 9 jobs"]
    assert told(grid(x=[1, "a", None, 2, 3, 4, 5])) == ["x{1,a,null,…, 7 values} = 7 jobs"]
    assert told([{"x": "abcd"[i % 4], "y": i} for i in range(8)], limit=7)[1:2] == ["x=b × y{1,5} = 2 jobs"]


def test_a_few_choices_are_told_apart_and_many_are_summed_up() -> None:
    def drawn(kinds: str) -> list[dict[str, object]]:
        return [{"k": kind, "x": i / 7 + ord(kind), "y": i / 9 + ord(kind)} for kind in kinds for i in range(9)]

    assert [line.split(" × ")[0] for line in told(drawn("abcd"))] == ["k=a", "k=b", "k=c", "k=d"]
    assert told(drawn("abcde")) == ["k a,b,c,…, x 97.0 … ~102, y 97.0 … ~102 (45 draws) = 45 jobs"]


def test_bounds_of_a_grid_are_exact() -> None:
    halves = [2.0**-at for at in range(12)]
    assert told(grid(x=halves)) == [f"x{{{min(halves)!r} … 1.0, 12 values}} = 12 jobs"]


MODELS = [f"mistralai/Mistral-7B-Instruct-v0.{at}" for at in (2, 3)]


def test_values_that_differ_at_their_ends_are_told_apart_in_a_plan() -> None:
    assert told(grid(model=MODELS)) == [
        "model{mistralai/Mistra…B-Instruct-v0.2,mistralai/Mistra…B-Instruct-v0.3} = 2 jobs"
    ]
    old, new = (table(grid(model=[model], n=[1, 2])) for model in MODELS)
    after, before = describe_jobs(new, range(2), before=old), describe_jobs(old, range(2), before=new)
    assert after == ["model=mistralai/Mistra…B-Instruct-v0.3 × n{1,2} = 2 jobs"]
    assert before == ["model=mistralai/Mistra…B-Instruct-v0.2 × n{1,2} = 2 jobs"]
    assert told(grid(model=["x" * 100, "y"]))[0] == f"model{{{'x' * 31}…,y}} = 2 jobs"


def expand_points(rectangles: JobRectangles) -> list[tuple[int, ...]]:
    """Return every combination again, as indexes of the table's columns: what the rectangles must equal."""
    return [
        point
        for numbers in zip(*rectangles.columns, strict=True)
        for point in product(*(rectangles.axis(at, number) for at, number in enumerate(numbers)))
    ]
