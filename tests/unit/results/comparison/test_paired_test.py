"""The statistics of a comparison: against tables, against textbook cases, and against draws whose truth is known."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from math import sqrt
from statistics import correlation, fmean

import pytest

from monkey.results.comparison.paired_test import (
    ALPHA,
    LEAST_DEVIATION,
    apply_holm_correction,
    compute_correlation,
    compute_paired_test,
    find_step,
)
from monkey.results.groups import summarize_values
from monkey.results.t_interval import compute_t_tail, find_t_quantile


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.7062), (2, 4.3027), (4, 2.7764), (9, 2.2622), (29, 2.0452)])
def test_tails_of_students_t_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert compute_t_tail(quantile, freedom) == pytest.approx(0.025, abs=5e-6)
    assert compute_t_tail(-quantile, freedom) == pytest.approx(0.975, abs=5e-6)


def test_a_tail_and_a_quantile_are_inverse_for_any_number_of_jobs() -> None:
    for freedom in [*range(1, 130), 1_000, 9_999]:
        assert compute_t_tail(find_t_quantile(freedom), freedom) == pytest.approx(0.025, rel=1e-6)
    assert compute_t_tail(0.0, 4) == 0.5 and compute_t_tail(float("inf"), 4) == 0.0


def test_a_paired_test_is_that_of_the_textbook() -> None:
    """Student's own figures of 1908, hours of sleep that two drugs gave: t = 4.06, p = 0.0028 (two-sided)."""
    gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    found = compute_paired_test(gained, 0.0, maximize=True)
    assert found is not None and found.spread.ci95 is not None
    assert found.spread.mean == pytest.approx(1.58)
    assert found.better == pytest.approx(0.00283289 / 2, rel=1e-5)
    assert found.worse == pytest.approx(1 - 0.00283289 / 2, rel=1e-5)
    low, high = found.spread.mean - found.spread.ci95, found.spread.mean + found.spread.ci95
    assert (low, high) == (pytest.approx(0.7001, abs=1e-4), pytest.approx(2.4599, abs=1e-4))
    worse = compute_paired_test(gained, 0.0, maximize=False)
    assert worse is not None and worse.worse == found.better


def test_a_limit_is_beyond_the_interval_just_where_the_p_value_says_so() -> None:
    lost = [-0.02, -0.031, -0.018, -0.025, -0.029]
    spread = summarize_values(lost)
    assert spread.ci95 is not None
    edge = -(spread.mean + spread.ci95)  # the smallest loss that the interval holds
    for limit, surely in ((edge - 1e-9, True), (edge + 1e-9, False)):
        found = compute_paired_test(lost, limit, maximize=True)
        assert found is not None and (found.worse <= ALPHA) is surely


def test_fewer_than_three_differences_say_nothing() -> None:
    assert compute_paired_test([-1.0, -1.0], 0.0, maximize=True) is None
    always = compute_paired_test([-1.0, -1.0, -1.0], 0.0, maximize=True)
    assert always is not None and (always.worse, always.better) == (0.0, 1.0)
    none = compute_paired_test([0.0] * 3, 0.0, maximize=True)
    assert none is not None and (none.worse, none.better) == (1.0, 1.0)


def test_holms_correction_is_that_of_the_textbook() -> None:
    assert apply_holm_correction([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert apply_holm_correction([0.9, 0.8]) == [1.0, 1.0] and apply_holm_correction([]) == []


def test_correlation_is_within_the_groups() -> None:
    apart = [[(0.0, 1.0), (1.0, 0.0)], [(10.0, 11.0), (11.0, 10.0)]]  # together they would seem to agree
    assert compute_correlation(apart) == pytest.approx(-1)
    assert compute_correlation([[(0.1, 0.5)] * 3]) is None and compute_correlation([]) is None
    assert compute_correlation([[(1e308, 1e308), (-1e308, -1e308)]]) == pytest.approx(1)


def test_correlation_is_pearsons() -> None:
    base, head = [1.0, 2.0, 4.0, 8.0, 9.0], [3.0, 1.0, 2.0, 7.0, 4.0]
    pairs = list(zip(base, head, strict=True))
    assert compute_correlation([pairs]) == pytest.approx(correlation(base, head), rel=1e-12)
    assert compute_correlation([pairs[::-1]]) == pytest.approx(correlation(base, head), rel=1e-12)
    # Each group has means of its own: that one lies elsewhere changes nothing.
    moved = [(x + 50, y - 20) for x, y in pairs[:3]]
    apart = compute_correlation([moved, pairs[3:]])
    assert apart == pytest.approx(compute_correlation([pairs[:3], pairs[3:]])) != pytest.approx(correlation(base, head))


def measure(draw: Callable[[], float], n: int, draws: int) -> float:
    """Return how many of 100 t intervals hold the mean, which is 0."""
    held = 0
    for _ in range(draws):
        spread = summarize_values([draw() for _ in range(n)])
        assert spread.ci95 is not None
        held += abs(spread.mean) <= spread.ci95
    return 100 * held / draws


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    """The bounds are three standard deviations of the count; benchmarks/compare.py draws the whole table."""
    draws, chance = 1_500, random.Random(7)
    bound = 3 * 100 * sqrt(0.95 * 0.05 / draws)
    for n in (3, 5, 10):
        assert measure(lambda: chance.gauss(0, 1), n, draws) == pytest.approx(95, abs=bound)
    # Skewed values: fewer than 95, and far more than what a bootstrap of so few holds.
    skewed = measure(lambda: chance.expovariate(1) - 1, 3, draws)
    assert 83 < skewed < 93
    boot = 0
    for _ in range(500):
        values = [chance.expovariate(1) - 1 for _ in range(3)]
        means = sorted(fmean(chance.choices(values, k=3)) for _ in range(100))
        boot += means[2] <= 0 <= means[97]
    assert 100 * boot / 500 < skewed - 10


@pytest.mark.needs("scipy")
@pytest.mark.parametrize(
    ("spread", "noise", "worse", "limit"), [(1, 0.01, 0.1, 0.05), (1, 0.001, 0.02, 0.012), (100, 0.05, 5, 0)]
)
@pytest.mark.parametrize("n", [3, 5])
def test_seeds_that_differ_much_hide_no_loss_that_all_of_them_show(
    spread: float, noise: float, worse: float, limit: float, n: int
) -> None:
    """Few values of a continuous metric lie far apart: that was taken for the step of a metric with few digits."""
    from scipy import stats

    draws = random.Random(0)
    ours = theirs = 0
    for _ in range(200):
        base = [draws.gauss(0, spread) for _ in range(n)]
        pairs = [(value, value + worse + draws.gauss(0, noise)) for value in base]
        deltas = [head - before for before, head in pairs]
        least = LEAST_DEVIATION * find_step([pairs])
        found = compute_paired_test(deltas, limit, maximize=False, least=least)
        assert found is not None
        ours += found.worse <= ALPHA
        theirs += stats.ttest_1samp(deltas, limit, alternative="greater").pvalue <= ALPHA
    assert theirs >= 190
    assert ours >= theirs - 10


@pytest.mark.parametrize("images", [20, 30, 100, 1_000, 10_000])
@pytest.mark.parametrize("bits", [32, 64])
def test_the_step_of_an_accuracy_is_one_image(images: int, bits: int) -> None:
    draws = random.Random(images)

    def draw() -> float:
        value = round(images * min(1.0, draws.gauss(0.9, 0.03))) / images
        return value if bits == 64 else float(struct.unpack("f", struct.pack("f", value))[0])

    assert find_step([[(draw(), draw()) for _ in range(3)] for _ in range(12)]) == pytest.approx(1 / images, rel=1e-2)


def test_values_without_a_step_have_none_that_matters() -> None:
    draws = random.Random(0)
    steps = [find_step([[(draws.gauss(0, 1), draws.gauss(0, 1)) for _ in range(3)]] * 4) for _ in range(500)]
    assert max(steps) < 0.01
