"""The t test of paired differences: is HEAD worse than BASE by more than a limit, or better?

Two things decide: the differences alone (their mean, deviation and number), and Holm's correction for the number of
configurations that are looked at. How well pairs correlate is shown, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from monkey.results.groups import MetricSpread, summarize_values
from monkey.results.t_interval import CONFIDENCE, compute_t_tail

#: Differences below which nothing is said: of two, the interval is nine standard deviations wide.
FEWEST_DIFFERENCES = 3
#: A verdict wants a chance of at most this: then the whole interval of 95 % lies on one side.
ALPHA = (1 - CONFIDENCE) / 2


class PairedTest(NamedTuple):
    """The differences HEAD less BASE, and how likely chance alone would make as much of them."""

    spread: MetricSpread
    #: The one-sided p value of "HEAD is worse by no more than the limit".
    worse: float
    #: The one-sided p value of "HEAD is no better".
    better: float


def compute_paired_test(differences: Sequence[float], limit: float, *, maximize: bool) -> PairedTest | None:
    """Return the t test of differences, in units of the metric as is `limit`; None for fewer than three."""
    if len(differences) < FEWEST_DIFFERENCES:
        return None
    spread = summarize_values(differences)
    gain = spread.mean if maximize else -spread.mean
    return PairedTest(spread, _compute_chance(-gain - limit, spread), _compute_chance(gain, spread))


def _compute_chance(excess: float, spread: MetricSpread) -> float:
    """Return how likely a mean lies at least so far above what it should be at most."""
    assert spread.std is not None  # of three or more
    if spread.std == 0:
        return 0.0 if excess > 0 else 1.0
    return compute_t_tail(excess / spread.std * sqrt(spread.n), spread.n - 1)


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
