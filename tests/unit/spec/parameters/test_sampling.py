"""Draws: prefix-stable, within their bounds, and of the distribution that was asked for."""

from __future__ import annotations

import hashlib
from itertools import islice
from statistics import NormalDist, fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.spec.parameters.sampling import (
    DRAW_BITS,
    Distribution,
    convert_to_fraction,
    generate_draws,
    make_choice_sampler,
    make_sampler,
)
from tests.unit.spec.making import jobs, table

SWEEP = """\
    method: random
    run_cap: {cap}
    seed: {seed}
    parameters:
      lr: {{loguniform: [1e-4, 1e-1]}}
      width: [32, 64, 128]
      depth: {{min: 1, max: 9}}
      drop: {{quniform: [0, 0.5, 0.1]}}
      noise: {{distribution: normal, sigma: 0.1}}
      model: {{values: [a, b], probabilities: [0.9, 0.1]}}
    """


GOLDEN = [
    {"lr": 0.001150624582, "width": 128, "depth": 9, "drop": 0.3, "noise": 0.042607747380000005, "model": "a"},
    {"lr": 0.02061644153, "width": 128, "depth": 4, "drop": 0.0, "noise": -0.08511821650000001, "model": "a"},
]


def test_golden_draws_never_change() -> None:
    assert jobs(SWEEP.format(cap=2, seed=7)) == GOLDEN


def test_a_draw_is_of_seed_name_and_number() -> None:
    digest = hashlib.sha256(b"7\0lr\x003").digest()
    assert next(islice(generate_draws(7, "lr"), 3, None)) == int.from_bytes(digest[:8], "big") >> (64 - DRAW_BITS)


def test_raising_the_cap_adds_jobs_and_changes_none() -> None:
    many = jobs(SWEEP.format(cap=300, seed=1))
    assert many[:40] == jobs(SWEEP.format(cap=40, seed=1))
    assert many != jobs(SWEEP.format(cap=300, seed=2))


def test_adding_and_moving_parameters_changes_no_other_draw() -> None:
    before = table(SWEEP.format(cap=50, seed=1))
    text = SWEEP.format(cap=50, seed=1).replace("width:", "fresh: [1, 2, 3]\n      width:")
    after = table(text)
    for name in before.columns:
        assert [before.parameters(n)[name] for n in range(50)] == [after.parameters(n)[name] for n in range(50)]


def test_zipped_parameters_are_drawn_together() -> None:
    made = jobs("method: random\nrun_cap: 50\nparameters: {a: [1, 2, 3], b: [x, y, y], c: [0, 1]}\nzip: [[b, a]]")
    assert {(job["a"], job["b"]) for job in made} == {(1, "x"), (2, "y"), (3, "y")}
    assert len(made) == 6  # equal draws are one job


def test_fractions_are_strictly_between_0_and_1() -> None:
    assert 0 < convert_to_fraction(0) < convert_to_fraction((1 << DRAW_BITS) - 1) < 1


bounds = st.floats(-1e300, 1e300) | st.integers(-(10**6), 10**6)
draws = st.integers(0, (1 << DRAW_BITS) - 1) | st.sampled_from([0, (1 << DRAW_BITS) - 1])


@given(low=bounds, high=bounds, draw=draws)
def test_uniform_stays_within_its_bounds(low: float, high: float, draw: int) -> None:
    low, high = min(low, high), max(low, high)
    assert low <= make_sampler(Distribution("uniform", low, high))(draw) <= high


@given(low=st.floats(1e-300, 1e300), high=st.floats(1e-300, 1e300), draw=draws)
def test_log_uniform_stays_within_its_bounds(low: float, high: float, draw: int) -> None:
    low, high = min(low, high), max(low, high)
    assert low <= make_sampler(Distribution("log_uniform_values", low, high))(draw) <= high


@given(low=st.integers(-(10**40), 10**40), width=st.integers(0, 10**40), draw=draws)
def test_int_uniform_stays_within_its_bounds(low: int, width: int, draw: int) -> None:
    value = make_sampler(Distribution("int_uniform", low, low + width))(draw)
    assert isinstance(value, int)
    assert low <= value <= low + width


@given(
    draw=draws, q=st.sampled_from([1, 2, 0.1, 0.25, 3, 1e-3]), kind=st.sampled_from(["uniform", "log_uniform_values"])
)
def test_quantised_values_are_multiples_within_bounds(draw: int, q: float, kind: str) -> None:
    value = make_sampler(Distribution(f"q_{kind}", 0.5, 17, q=q))(draw)
    assert 0.5 <= value <= 17
    assert type(value) is type(q)
    assert round(value / q) * q == pytest.approx(value)
    assert len(repr(value)) <= 6


@pytest.mark.parametrize(
    ("low", "high", "q", "expected"),
    [
        (1000, 4999, 1000, [1000, 2000, 3000, 4000]),
        (1001, 5000, 1000, [2000, 3000, 4000, 5000]),
        (0, 0.3, 0.1, [0.0, 0.1, 0.2, 0.3]),
        (0.7, 2.1, 0.7, [0.7, 1.4, 2.1]),
        (0.29999, 0.60001, 0.3, [0.3, 0.6]),
        (0.30001, 0.59999, 0.1, [0.4, 0.5]),
        (1 / 3, 1.0, 1 / 3, [1 / 3, 0.666666666667, 1.0]),
        (1 / 3, 0.6666666666666667, 1 / 3, [1 / 3, 0.6666666666666667]),
    ],
)
def test_a_grid_and_draws_have_the_multiples_within_bounds(
    low: float, high: float, q: float, expected: list[float]
) -> None:
    form = f"{{distribution: q_uniform, min: {low}, max: {high}, q: {q}}}"
    assert [job["n"] for job in jobs(f"parameters: {{n: {form}}}")] == expected
    drawn = jobs(f"method: random\nrun_cap: 200\nparameters: {{n: {form}}}")
    assert {job["n"] for job in drawn} == {*expected}


def test_lines_of_a_zipped_group_may_stand_in_any_order() -> None:
    text = "method: random\nrun_cap: 30\nparameters: {{{}}}\nzip: [[{}]]"
    one = jobs(text.format("lr: {min: 0.0, max: 1.0}, x: [1, 2, 3, 4], y: [a, b, c, d]", "x, y"))
    other = jobs(text.format("y: [a, b, c, d], lr: {min: 0.0, max: 1.0}, x: [1, 2, 3, 4]", "y, x"))
    assert one == other


def test_both_ends_are_reached() -> None:
    ends = (0, (1 << DRAW_BITS) - 1)
    assert [make_sampler(Distribution("int_uniform", 3, 9))(end) for end in ends] == [3, 9]
    assert [make_sampler(Distribution("q_uniform", 0, 1, q=0.3))(end) for end in ends] == [0.0, 0.9]
    assert [make_choice_sampler(5)(end) for end in ends] == [0, 4]
    assert [make_choice_sampler(3, [0.0, 1.0, 0.0])(end) for end in ends] == [1, 1]


def sample(distribution: Distribution, count: int = 20_000) -> list[float]:
    return [float(value) for value in map(make_sampler(distribution), islice(generate_draws(0, "p"), count))]


def test_moments() -> None:
    normal = sample(Distribution("normal", mu=3, sigma=2))
    assert fmean(normal) == pytest.approx(3, abs=0.05)
    assert pstdev(normal) == pytest.approx(2, abs=0.05)
    assert sorted(sample(Distribution("log_normal", mu=1, sigma=0.5)))[10_000] == pytest.approx(2.718, rel=0.03)
    assert sorted(sample(Distribution("log_uniform_values", 1e-4, 1)))[10_000] == pytest.approx(1e-2, rel=0.1)
    assert fmean(sample(Distribution("uniform", -1, 3))) == pytest.approx(1, abs=0.05)
    assert fmean(sample(Distribution("q_normal", mu=1, q=0.5))) == pytest.approx(1, abs=0.05)
    picked = list(map(make_choice_sampler(3, [0.2, 0.5, 0.3]), islice(generate_draws(0, "p"), 20_000)))
    assert [picked.count(n) / 20_000 for n in range(3)] == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_normal_is_the_inverse_of_the_distribution() -> None:
    draw = make_sampler(Distribution("normal", mu=1, sigma=2))
    assert NormalDist(1, 2).cdf(draw(1 << (DRAW_BITS - 2))) == pytest.approx(0.25)
    assert "-0.0" not in {
        repr(make_sampler(Distribution("q_normal", q=0.5))(unit)) for unit in range(0, 1 << DRAW_BITS, 1 << 44)
    }
