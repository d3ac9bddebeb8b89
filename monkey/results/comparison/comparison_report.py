"""A comparison for programs, and as Markdown for a pull request: there, what users wrote is text alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monkey.plan.text.inert_markdown import cut_parts, format_cells, format_inline_code
from monkey.plan.text.short_texts import cut_text, shorten_column
from monkey.results.comparison.comparison_table import (
    explain_columns,
    format_heading,
    format_overall,
    format_verdict,
    list_left_out,
    tabulate_comparison,
)
from monkey.results.comparison.paired_test import PairedTest
from monkey.results.comparison.sweep_comparison import ComparedConfiguration, ComparisonVerdict, SweepComparison
from monkey.results.groups import MetricSpread

#: Lines of the table, columns, and characters of a cell that a comment has room for.
_ROWS, _COLUMNS, _WIDTH = 30, 14, 120
_HEADINGS = {
    ComparisonVerdict.REGRESSION: "✗ regression",
    ComparisonVerdict.UNKNOWN: "? too few to say",
    ComparisonVerdict.NONE: "no regression is shown",
}


def format_comparison_markdown(comparison: SweepComparison) -> str:
    """Return the report, no longer than a comment may be: verdict, table with the worst first, what was left out."""
    lines = [_quote(format_verdict(comparison)), *([_quote(over)] if (over := format_overall(comparison)) else [])]
    lines += map(_quote, list_left_out(comparison))
    parts = [
        f"### monkey: {_HEADINGS[comparison.verdict]}\n",
        f"{_quote(format_heading(comparison))}\n",
        _format_table(comparison),
        "\n".join(f"- {line}" for line in lines) + "\n",
        f"{explain_columns(comparison)}.\n" if comparison.configurations else "",
    ]
    return cut_parts(parts, f"{format_inline_code('monkey compare')} shows all")


def _quote(text: str) -> str:
    return format_inline_code(text if len(text) <= 4 * _WIDTH else f"{text[: 4 * _WIDTH - 1]}…")


def _format_table(comparison: SweepComparison) -> str:
    if not comparison.configurations:
        return ""
    made = tabulate_comparison(comparison)
    # Those that a narrow terminal would lack first.
    kept = sorted(made.columns, key=lambda column: column.leaves)[:_COLUMNS]
    columns = [column for column in made.columns if column in kept]
    own = {"BASE", "HEAD", "Δ", "n", "r", "verdict"}
    cells = [_format_cells(shorten_column(column.cells, _WIDTH)[:_ROWS], column.leaves) for column in columns]
    lines = [
        format_cells(
            [
                column.name if column.name in own else format_inline_code(cut_text(column.name, _WIDTH))
                for column in columns
            ]
        ),
        format_cells(["--:" if column.right else "---" for column in columns]),
        *map(format_cells, zip(*cells, strict=True)),
    ]
    left = len(comparison.configurations) - _ROWS
    return "\n".join(lines) + (f"\n\n… and {left:,} more\n" if left > 0 else "\n")


def _format_cells(texts: Sequence[str], written: int) -> list[str]:
    """Return cells; `written`: not 0 where they may be a user's, which is text alone in code."""
    return [format_inline_code(text) if text and written else text for text in texts]


def serialize_comparison(comparison: SweepComparison) -> dict[str, Any]:
    """Return the comparison for `--json`, with these keys:

    - `base`, `head`, `metric`, `maximize`, `take`, `limit`, `where`
    - `verdict`: "regression", "too few to say" or "no regression"; `doubts`: why it is not known, in sentences
    - `overall`: the mean difference over configurations, or null; `correlation`: of the pairs within configurations
    - `configurations`: each with `parameters`, `mark`, `base`, `head`, the difference, its p values, and its `pairs`
    - `unpaired`: jobs in no pair; `why` is "" where the other side has no such job

    A difference has `delta`, `low` and `high` of its 95 % interval, `std` and `n`. p values are one-sided; `worse` and
    `better` are after Holm's correction. All values are HEAD less BASE, in units of the metric.
    """
    overall = comparison.overall
    return {
        "base": comparison.base.name,
        "head": comparison.head.name,
        "metric": comparison.metric.name,
        "maximize": comparison.metric.maximize,
        "take": comparison.metric.take,
        "limit": comparison.limit,
        "where": comparison.where,
        "verdict": str(comparison.verdict),
        "doubts": comparison.doubts,
        "overall": overall and {"mark": str(overall.mark), **_serialize_difference(overall.spread, overall.test)},
        "correlation": comparison.correlation,
        "configurations": [_serialize_configuration(each) for each in comparison.configurations],
        "unpaired": [
            {"side": one.role.lower(), "job": one.job, "parameters": dict(one.parameters), "why": one.why}
            for one in comparison.unpaired
        ],
    }


def _serialize_configuration(each: ComparedConfiguration) -> dict[str, Any]:
    return {
        "parameters": each.parameters,
        "mark": str(each.mark),
        "base": each.base_mean,
        "head": each.head_mean,
        **_serialize_difference(each.spread, each.test),
        "worse": each.worse,
        "better": each.better,
        "correlation": each.correlation,
        "pairs": [
            {
                "seed": dict(pair.seed),
                "base_job": pair.base_job,
                "head_job": pair.head_job,
                "base": pair.base,
                "head": pair.head,
                "delta": pair.delta,
            }
            for pair in each.pairs
        ],
    }


def _serialize_difference(spread: MetricSpread | None, test: PairedTest | None) -> dict[str, Any]:
    """Return a difference; there is no interval of fewer than three."""
    known = spread if test is not None else None
    half = known.ci95 if known is not None else None
    return {
        "delta": spread.mean if spread else None,
        "low": known.mean - half if known is not None and half is not None else None,
        "high": known.mean + half if known is not None and half is not None else None,
        "std": known.std if known else None,
        "n": spread.n if spread else 0,
        "p_worse": test.worse if test else None,
        "p_better": test.better if test else None,
    }
