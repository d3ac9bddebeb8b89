"""The comparison of two sweeps: what HEAD changes for each configuration and over all, and whether it is worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import sqrt
from statistics import fmean

from monkey.results.comparison.compared_metric import ComparedMetric
from monkey.results.comparison.job_pairs import ComparedSide, JobPair, PairedJobs, UnpairedJob
from monkey.results.comparison.paired_test import (
    ALPHA,
    FEWEST_DIFFERENCES,
    LEAST_DEVIATION,
    PairedTest,
    apply_holm_correction,
    compute_correlation,
    compute_paired_test,
    find_step,
    summarize_differences,
)
from monkey.results.groups import MetricSpread, summarize_values
from monkey.spec.job.job_table import ParameterValue


class ComparisonMark(StrEnum):
    """What is known of a difference, the worst first."""

    #: The whole interval is beyond the limit; of several configurations, after Holm's correction.
    WORSE = "worse"
    #: Fewer than three pairs.
    UNKNOWN = "too few to say"
    #: Neither is shown.
    UNSURE = "no verdict"
    #: The whole interval is on the better side of 0, after the same correction.
    BETTER = "better"
    #: Both sides have the same jobs: there is nothing to compare.
    SAME = "same jobs"


class ComparisonVerdict(StrEnum):
    """What comes of a comparison as a whole."""

    REGRESSION = "regression"
    UNKNOWN = "too few to say"
    NONE = "no regression"


class ComparedConfiguration:
    """One configuration that both sides have; the test is None for fewer than three pairs."""

    def __init__(
        self,
        parameters: dict[str, ParameterValue],
        pairs: Sequence[JobPair],
        test: PairedTest | None,
        least: float = 0.0,
    ):
        """Keep what was paired, its test, and the least deviation of it; `mark_configurations` sets the mark."""
        self.parameters, self.pairs, self.test = parameters, pairs, test
        self.mark = ComparisonMark.UNKNOWN
        #: The one-sided p values after Holm's correction; None where there is no test.
        self.worse: float | None = None
        self.better: float | None = None
        #: Of the differences HEAD less BASE; None without any pair.
        self.spread: MetricSpread | None = None
        if pairs:
            self.spread = summarize_differences([pair.delta for pair in pairs], least)
        self.base_mean = summarize_values([pair.base for pair in pairs]).mean if pairs else None
        self.head_mean = summarize_values([pair.head for pair in pairs]).mean if pairs else None

    @property
    def correlation(self) -> float | None:
        """The correlation of the pairs; None where a side does not vary, and where both sides are the same jobs."""
        return compute_correlation([self.points])

    @property
    def points(self) -> list[tuple[float, float]]:
        """The values of both sides, pair by pair, of pairs that are not one job."""
        return [(pair.base, pair.head) for pair in self.pairs if not pair.same]

    @property
    def same(self) -> bool:
        """Are all pairs one job each?"""
        return bool(self.pairs) and all(pair.same for pair in self.pairs)


@dataclass(frozen=True)
class OverallDifference:
    """The mean difference over configurations, each of which counts once."""

    mark: ComparisonMark
    #: Of the configurations' mean differences.
    spread: MetricSpread
    #: None for fewer than three configurations.
    test: PairedTest | None


@dataclass(frozen=True)
class SweepComparison:
    """All that is said of BASE and HEAD."""

    base: ComparedSide
    head: ComparedSide
    metric: ComparedMetric
    #: By how much HEAD may be worse, in units of the metric.
    limit: float
    #: Those that both sides have: the worst mark first, then in HEAD's order.
    configurations: Sequence[ComparedConfiguration]
    unpaired: Sequence[UnpairedJob]
    #: Why there is no pair at all; "" where that is not so, or no reason is known.
    no_pairs: str = ""
    #: The least deviation of a difference that is believed, in units of the metric.
    least: float = 0.0
    #: The condition that chose the jobs; "" for all.
    where: str = ""

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return sum(len(each.pairs) for each in self.configurations)

    @cached_property
    def correlation(self) -> float | None:
        """The correlation of the pairs within configurations; None where a side does not vary."""
        return compute_correlation(each.points for each in self.configurations)

    @cached_property
    def overall(self) -> OverallDifference | None:
        """The difference over configurations; None for fewer than two: one says all by itself."""
        spreads = [each.spread for each in self.configurations if each.spread is not None]
        if len(spreads) < 2:
            return None
        means = [spread.mean for spread in spreads]
        # A mean of n differences is as much finer.
        least = self.least * sqrt(fmean(1 / spread.n for spread in spreads))
        test = compute_paired_test(means, self.limit, maximize=self.metric.maximize, least=least)
        mark = ComparisonMark.UNKNOWN
        if all(each.same for each in self.configurations if each.pairs):
            mark = ComparisonMark.SAME
        elif test is not None:
            mark = _rate_difference(test.worse, test.better)
        return OverallDifference(mark, summarize_differences(means, least), test)

    @cached_property
    def counts(self) -> Counter[ComparisonMark]:
        """How many configurations have each mark."""
        return Counter(each.mark for each in self.configurations)

    @cached_property
    def doubts(self) -> list[str]:
        """Why no regression would be no news: what too few pairs, or jobs without a partner or a value, may hide."""
        if not self.configurations:
            why = f": {self.no_pairs}" if self.no_pairs else ""
            return [f"BASE and HEAD have no configuration in common{why}"]
        found = []
        if few := self.counts[ComparisonMark.UNKNOWN]:
            of, have = _count(len(self.configurations), "configuration"), "has" if few == 1 else "have"
            repeated = any(pair.seed for each in self.configurations for pair in each.pairs) or not self.pairs
            why = "" if repeated else ", as no parameter repeats them (--seed names one)"
            found.append(f"{few:,} of {of} {have} fewer than {FEWEST_DIFFERENCES} pairs{why}")
        lost = Counter(one.why for one in self.unpaired if one.role == "HEAD" and one.partner_counts)
        if lost:
            whys = ", ".join(f"{count:,} {why}" for why, count in lost.most_common())
            have = "has" if lost.total() == 1 else "have"
            found.append(f"{_count(lost.total(), 'job')} of HEAD {have} no value where BASE's count: {whys}")
        # A HEAD without the configurations in which it is bad, or with others in their place, shows nothing of them.
        for role, other in (("HEAD", "BASE"), ("BASE", "HEAD")):
            alone = sum(one.role == role and not one.why for one in self.unpaired)
            if alone:
                have = "has" if alone == 1 else "have"
                found.append(f"{_count(alone, 'job')} of {role} {have} no partner in {other}")
        return found

    @property
    def verdict(self) -> ComparisonVerdict:
        """What comes of it: a regression that is shown goes before all doubts."""
        if self.counts[ComparisonMark.WORSE] or (self.overall and self.overall.mark is ComparisonMark.WORSE):
            return ComparisonVerdict.REGRESSION
        return ComparisonVerdict.UNKNOWN if self.doubts else ComparisonVerdict.NONE


def compare_sides(
    base: ComparedSide, head: ComparedSide, paired: PairedJobs, metric: ComparedMetric, limit: float, no_pairs: str = ""
) -> SweepComparison:
    """Return the comparison of two sides whose jobs were paired; `limit` in units of the metric, at least 0."""
    made = []
    step = find_step([(pair.base, pair.head) for pair in pairs] for _, pairs in paired.configurations)
    least = LEAST_DEVIATION * step
    for parameters, pairs in paired.configurations:
        test = compute_paired_test([pair.delta for pair in pairs], limit, maximize=metric.maximize, least=least)
        made.append(ComparedConfiguration(dict(parameters), pairs, test, least))
    mark_configurations(made)
    ranks = list(ComparisonMark)
    made.sort(key=lambda each: ranks.index(each.mark))
    return SweepComparison(base, head, metric, limit, made, paired.unpaired, no_pairs, least)


def mark_configurations(configurations: Sequence[ComparedConfiguration]) -> None:
    """Give each its mark. Holm's correction is over those that have a test, and are not the same jobs."""
    tested = [(each, each.test) for each in configurations if each.test is not None and not each.same]
    worse = apply_holm_correction([test.worse for _, test in tested])
    better = apply_holm_correction([test.better for _, test in tested])
    for (each, _), of_worse, of_better in zip(tested, worse, better, strict=True):
        each.worse, each.better = of_worse, of_better
        each.mark = _rate_difference(of_worse, of_better)
    for each in configurations:
        if each.same:
            each.mark = ComparisonMark.SAME


def _rate_difference(worse: float, better: float) -> ComparisonMark:
    if worse <= ALPHA:
        return ComparisonMark.WORSE
    return ComparisonMark.BETTER if better <= ALPHA else ComparisonMark.UNSURE


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
