"""A comparison as texts for people: a line for each configuration, one over all, what was left out, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.plan.text.describe import format_value
from monkey.results.comparison.paired_test import FEWEST_DIFFERENCES
from monkey.results.comparison.sweep_comparison import (
    ComparedConfiguration,
    ComparisonMark,
    ComparisonVerdict,
    SweepComparison,
)
from monkey.results.groups import MetricSpread
from monkey.results.result_table import ResultColumn, ResultTable, format_number, format_spread
from monkey.spec.job.job_id import dump_canonical_json

#: Signs of the marks, for whoever looks along the column.
SIGNS = {
    ComparisonMark.WORSE: "✗",
    ComparisonMark.BETTER: "✓",
    ComparisonMark.UNSURE: "~",
    ComparisonMark.UNKNOWN: "?",
    ComparisonMark.SAME: "=",
}
#: Jobs of a kind that are named; `--json` lists all.
_NAMED_JOBS = 3
#: Where columns leave a narrow terminal: first the correlation, then the means; parameters last.
_CORRELATION_LEAVES, _MEAN_LEAVES, _PARAMETER_LEAVES = 3000, 2000, 1000


def tabulate_comparison(comparison: SweepComparison, *, signs: bool = True) -> ResultTable:
    """Return one line a configuration: what varies, both means, the difference, n, correlation, mark.

    `signs`: false where the terminal cannot show them.
    """
    rows = comparison.configurations
    names = list(dict.fromkeys(name for row in rows for name in row.parameters))
    columns = [
        ResultColumn(name, [_spell_parameter(row, name) for row in rows], leaves=_PARAMETER_LEAVES + at)
        for at, name in enumerate(name for name in names if _varies(rows, name))
    ]
    columns += [
        ResultColumn("BASE", [_number(row.base_mean) for row in rows], True, _MEAN_LEAVES),
        ResultColumn("HEAD", [_number(row.head_mean) for row in rows], True, _MEAN_LEAVES + 1),
        ResultColumn("Δ", [format_difference(row.spread) for row in rows], True),
        ResultColumn("n", [str(len(row.pairs)) for row in rows], True),
        ResultColumn("r", [format_correlation(row.correlation) for row in rows], True, _CORRELATION_LEAVES),
        ResultColumn("verdict", [f"{SIGNS[row.mark]} {row.mark}" if signs else str(row.mark) for row in rows]),
    ]
    return ResultTable(tuple(columns))


def explain_columns(comparison: SweepComparison) -> str:
    """Say what the columns of the table are."""
    tested = sum(each.worse is not None for each in comparison.configurations)
    limit = f"by more than {format_number(comparison.limit)} " if comparison.limit else ""
    holm = f" after Holm's correction for {tested:,}" if tested > 1 else ""
    spreads = [each.spread for each in comparison.configurations if each.spread and not each.same]
    widened = any(spread.std is not None and spread.std < comparison.least for spread in spreads)
    steps = f" (of a deviation of {format_number(comparison.least)} at least: values have steps)" if widened else ""
    return (
        f"Δ: mean of HEAD - BASE ± half of its 95 % t interval{steps}, over n pairs; r: their correlation; "
        f"worse {limit}or better: the whole interval{holm}"
    )


def format_heading(comparison: SweepComparison) -> str:
    """Return what is compared with what: "digits@3 → digits@5: val_accuracy (more is better)"."""
    metric = comparison.metric
    way, best = "more" if metric.maximize else "less", ", best values" if metric.take == "best" else ""
    where = f", where {comparison.where}" if comparison.where else ""
    return f"{comparison.base.name} → {comparison.head.name}: {metric.name} ({way} is better{best}){where}"


def format_overall(comparison: SweepComparison) -> str:
    """Return the line over all configurations; "" where one says all by itself."""
    overall = comparison.overall
    if overall is None:
        return ""
    over = f"over the means of {overall.spread.n:,} configurations, {comparison.pairs:,} pairs"
    if overall.mark is ComparisonMark.UNKNOWN:
        shown = f"{format_difference(overall.spread, interval=False)} {over} (three make an interval)"
    else:
        shown = f"{format_difference(overall.spread)} {over}: {overall.mark}"
    r = comparison.correlation
    return f"over all: Δ {shown}" + (
        "" if r is None else f"; correlation within configurations {format_correlation(r)}"
    )


def list_left_out(comparison: SweepComparison) -> list[str]:
    """Return a line for each kind of job that is in no pair: of which side, why, how many, and some of them."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in comparison.unpaired:
        kinds.setdefault((one.role, one.why), []).append(one.job)
    lines = []
    for (role, why), jobs in kinds.items():
        reason = why or f"no such job in {'HEAD' if role == 'BASE' else 'BASE'}"
        more = ", …" if len(jobs) > _NAMED_JOBS else ""
        lines.append(f"not paired: {len(jobs):,} of {role}: {reason} ({', '.join(jobs[:_NAMED_JOBS])}{more})")
    return lines


def format_verdict(comparison: SweepComparison) -> str:
    """Return the verdict in one line, with what it is made of."""
    limit = f" by more than {format_number(comparison.limit)}" if comparison.limit else ""
    verdict = comparison.verdict
    if verdict is ComparisonVerdict.REGRESSION:
        worse, total = comparison.counts[ComparisonMark.WORSE], len(comparison.configurations)
        parts = [f"{worse:,} of {total:,} configurations"] if worse and total > 1 else []
        if comparison.overall and comparison.overall.mark is ComparisonMark.WORSE:
            parts.append("the mean over all")
        where = f" ({', '.join(parts)})" if parts else ""
        return f"{verdict}: HEAD is worse{limit}{where}"
    if verdict is ComparisonVerdict.UNKNOWN:
        return f"{verdict}: {'; '.join(comparison.doubts)}"
    return f"{verdict} is shown: HEAD is not surely worse{limit}"


def format_difference(spread: MetricSpread | None, *, interval: bool = True) -> str:
    """Return a difference with its sign, and half of its interval where there is one; "" for None."""
    if spread is None:
        return ""
    text = format_spread(spread) if interval and spread.n >= FEWEST_DIFFERENCES else format_number(spread.mean)
    return text if spread.mean <= 0 else f"+{text}"


def format_correlation(value: float | None) -> str:
    """Return a correlation with its sign and two digits; "" for None."""
    return "" if value is None else f"{value:+.2f}"


def _number(value: float | None) -> str:
    return "" if value is None else format_number(value)


def _varies(rows: Sequence[ComparedConfiguration], name: str) -> bool:
    return len({dump_canonical_json(row.parameters[name]) if name in row.parameters else "" for row in rows}) > 1


def _spell_parameter(row: ComparedConfiguration, name: str) -> str:
    return format_value(row.parameters[name]) if name in row.parameters else ""
