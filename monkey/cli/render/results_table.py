"""Results as tables; their texts are made in `monkey.results.result_table`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap

from monkey.cli.terminal.text import (
    Terminal,
    flatten_column,
    flatten_text,
    format_plural,
    lay_out_columns,
    lay_out_table,
    measure_column,
)
from monkey.plan.text.short_texts import measure_width, shorten_column
from monkey.results.causes.importance import ParameterImportance
from monkey.results.groups import ResultGroup, explain_mixed_groups
from monkey.results.result_rows import Results
from monkey.results.result_table import INTERVAL, ResultColumn, ResultTable, tabulate_groups, tabulate_results

#: Columns that a text of a narrow table keeps before others are left out for it.
_TEXT = 20


def format_results(
    results: Results, to: Terminal, *, everything: bool = False, top: int | None = None, more: str = ""
) -> list[str]:
    """Return a line a job, best first; at most `top`, with `more` on how to see the others."""
    if not results.order:
        return ["No such job."]
    made = tabulate_results(results, everything=everything, top=top)
    places = results.order[:top]
    colours = {
        row: "red" if results.states[at] == "failed" else "dim"
        for row, at in enumerate(places)
        if not results.counts[at]
    }
    left = len(results.order) - len(places)
    return lay_out_results(made, to, colours, [_say_more(left, more)] if left else [], whole=everything)


def format_groups(
    groups: Sequence[ResultGroup],
    names: Sequence[str],
    results: Results,
    to: Terminal,
    *,
    everything: bool,
    top: int | None,
) -> list[str]:
    """Return a line a group, best mean first."""
    made = tabulate_groups(groups[:top], names, results, everything=everything)
    left = len(groups) - len(groups[:top])
    below = [_say_more(left)] if left else []
    mixed = explain_mixed_groups(groups[:top], names)
    if mixed:
        below.append(mixed)
    return lay_out_results(made, to, {}, below, whole=everything, note=INTERVAL)


def format_importance(rows: Sequence[ParameterImportance], to: Terminal) -> list[str]:
    """Return a line a parameter: its share of all importance, and whether chance makes as much."""
    if not rows:
        return ["No parameter varies."]
    told = [
        [row.name, f"{row.share:.0%}", "" if row.visible else "no visible effect: chance makes as much"] for row in rows
    ]
    colours = {at: "dim" for at, row in enumerate(rows) if not row.visible}
    return lay_out_table(["PARAMETER", "IMPORTANCE", ""], told, to, colours)


def _say_more(left: int, how: str = "") -> str:
    return format_plural(left, "more row") + (f" ({how})" if how else "")


def lay_out_results(
    made: ResultTable,
    to: Terminal,
    colours: dict[int, str],
    below: list[str],
    *,
    whole: bool,
    note: str = "",
    full: str = "--csv",
) -> list[str]:
    """Lay the table out; `whole`: with all columns, if need be a line a cell. `below`, `note`: what is said below.

    `full`: the option that shows also what there is no room for.
    """
    columns, gone = (made.columns, []) if whole else select_columns(made.columns, to.width)
    lines = lay_out_columns(
        [column.name for column in columns],
        [column.cells for column in columns],
        to,
        colours,
        [column.right for column in columns],
        whole=whole,
    )
    below = [*below, made.left_out] if made.left_out else below
    if gone:
        below = [*below, f"no room for {', '.join(gone)} ({full} has all)"]
    said = [note] if note and any("±" in cell for column in columns for cell in column.cells) else []
    said += [f"… {'; '.join(below)}"] if below else []
    said = [part for line in said for part in (wrap(flatten_text(line), to.width) if to.width else [line])]
    return [*lines, *(to.paint(flatten_text(line), "dim") for line in said)]


def select_columns(columns: Sequence[ResultColumn], limit: int | None) -> tuple[Sequence[ResultColumn], list[str]]:
    """Return the columns that a line of so many characters has room for, and the names of the others.

    Long texts are cut first, but to no less than a few words that tell them apart; numbers, states and ids never are.
    """
    if limit is None:
        return columns, []
    widths = [max(measure_width(flatten_text(one.name)), measure_column(flatten_column(one.cells))) for one in columns]
    least = [
        _find_least(one, width) if one.leaves and not one.right else width
        for one, width in zip(columns, widths, strict=True)
    ]
    room = limit + 2
    kept = set[int]()
    for at in sorted(range(len(columns)), key=lambda i: columns[i].leaves):
        if not columns[at].leaves or least[at] + 2 <= room:
            kept.add(at)
            room -= least[at] + 2
    shown = []
    for at in sorted(kept):
        width = min(widths[at], least[at] + max(room, 0))
        room -= width - least[at]
        cells = columns[at].cells
        if width < widths[at]:
            cells = shorten_column(flatten_column(cells), width, _TEXT)
        shown.append(replace(columns[at], cells=cells))
    return shown, [one.name for at, one in enumerate(columns) if at not in kept]


def _find_least(column: ResultColumn, width: int) -> int:
    """Return how narrow a column of texts may be: a few words, and what tells them apart."""
    if width <= _TEXT:
        return width
    cut = measure_column(shorten_column(flatten_column(column.cells), _TEXT))
    return max(cut, measure_width(flatten_text(column.name)))
