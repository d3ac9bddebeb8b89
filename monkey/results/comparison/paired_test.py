"""The t test of paired differences: is HEAD worse than BASE by more than a limit, or better?

Two things decide: the differences alone (their mean, deviation and number), and Holm's correction for the number of
configurations that are looked at. How well pairs correlate is shown, and decides nothing.

Three equal differences have no deviation, and would be certain of themselves. Of a metric with few digits, such as an
accuracy over 100 images, they are an accident. Rounding alone makes a value vary by step / √12 (Sheppard, 1898), and a
difference of two by √2 times as much: less is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from monkey.results.groups import MetricSpread, summarize_values
from monkey.results.t_interval import CONFIDENCE, compute_half_width, compute_t_tail

#: Differences below which nothing is said: of two, the interval is nine standard deviations wide.
FEWEST_DIFFERENCES = 3
#: A verdict wants a chance of at most this: then the whole interval of 95 % lies on one side.
ALPHA = (1 - CONFIDENCE) / 2
#: The least deviation of a difference that is believed, in steps of the metric: 1 / √6, rounded down so that three
#: equal differences of one step are just a verdict where nothing else is looked at.
LEAST_DEVIATION = 0.4
#: Values closer than this, relative to the largest, are one: a mean of 32-bit floats depends on their order.
_SAME = 2.0**-22
#: A step is one if it is so many times as large as its error: of values that have none, the error grows over it.
_ERRORS_IN_STEP = 8


class PairedTest(NamedTuple):
    """The differences HEAD less BASE, and how likely chance alone would make as much of them."""

    spread: MetricSpread
    #: The one-sided p value of "HEAD is worse by no more than the limit".
    worse: float
    #: The one-sided p value of "HEAD is no better".
    better: float


def find_step(groups: Iterable[Sequence[tuple[float, float]]]) -> float:
    """Return the largest number of which all distances between values are multiples, of pairs (BASE, HEAD).

    Groups are configurations. It is 0 where values are too fine to have one. It is 0, too, where no seed changes
    anything, in no configuration and on no side: such values are exact.
    """
    sides = [side for group in groups if group for side in zip(*group, strict=True)]
    if all(min(side) == max(side) for side in sides):
        return 0.0
    values = sorted({value for side in sides for value in side})
    noise = _SAME * max(abs(value) for value in values)
    step, error = 0.0, 0.0
    # The smallest first: it is often the step itself, and few divisions keep the error small.
    for distance in sorted(above - below for below, above in pairwise(values)):
        if distance > noise:
            step, error = _find_shared_step(distance, noise, step, error)
    return step if error < step / _ERRORS_IN_STEP else 0.0


def _find_shared_step(large: float, large_error: float, small: float, small_error: float) -> tuple[float, float]:
    """Return the greatest common divisor of two numbers that are known so exactly (Euclid), and its error."""
    while small > 2 * small_error:
        times = round(large / small)
        rest = abs(large - times * small)
        rest_error = large_error + times * small_error
        large, large_error, small, small_error = small, small_error, rest, rest_error
    return large, large_error


def summarize_differences(differences: Sequence[float], least: float) -> MetricSpread:
    """Return the spread of differences; its interval is as if their deviation were `least`, where it is less."""
    spread = summarize_values(differences)
    if spread.std is None or spread.std >= least:
        return spread
    return replace(spread, ci95=compute_half_width(least, spread.n))


def compute_paired_test(
    differences: Sequence[float], limit: float, *, maximize: bool, least: float = 0.0
) -> PairedTest | None:
    """Return the t test of differences, in units of the metric as is `limit`; None for fewer than three.

    `least`: the least deviation of a difference that is believed, in the same units.
    """
    if len(differences) < FEWEST_DIFFERENCES:
        return None
    spread = summarize_differences(differences, least)
    assert spread.std is not None  # of three or more
    gain = spread.mean if maximize else -spread.mean
    error = max(spread.std, least) / sqrt(spread.n)
    return PairedTest(spread, _compute_chance(-gain - limit, error, spread.n), _compute_chance(gain, error, spread.n))


def _compute_chance(excess: float, error: float, n: int) -> float:
    """Return how likely a mean of `n`, with that standard error, lies so far above what it should be at most."""
    if error == 0:
        return 0.0 if excess > 0 else 1.0
    return compute_t_tail(excess / error, n - 1)


def apply_holm_correction(chances: Sequence[float]) -> list[float]:
    """Return p values that hold over all of them: each at most ALPHA is wrong, in all, with a probability of ALPHA."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    raised = (min(1.0, chances[at] * (len(order) - rank)) for rank, at in enumerate(order))
    adjusted = dict(zip(order, accumulate(raised, max), strict=True))
    return [adjusted[at] for at in range(len(chances))]


def compute_correlation(groups: Iterable[Sequence[tuple[float, float]]]) -> float | None:
    """Return the correlation of (BASE, HEAD) within the groups, over all of them; None where a side does not vary."""
    kept = [group for group in groups if group]
    scale = max((abs(value) for group in kept for pair in group for value in pair), default=0.0) or 1.0
    both = ours = theirs = 0.0
    for group in kept:
        base, head = ([value / scale for value in side] for side in zip(*group, strict=True))
        # The mean of equal values may be off by a last digit, which would correlate.
        of_base, of_head = (side[0] if min(side) == max(side) else fmean(side) for side in (base, head))
        for x, y in zip(base, head, strict=True):
            both += (x - of_base) * (y - of_head)
            ours += (x - of_base) ** 2
            theirs += (y - of_head) ** 2
    width = sqrt(ours) * sqrt(theirs)
    return max(-1.0, min(1.0, both / width)) if width else None
