"""Results as tables; their texts are made in `monkey.results.result_table`."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.cli.terminal.text import Terminal, flatten_text, format_plural, lay_out_table
from monkey.results.groups import ResultGroup
from monkey.results.result_rows import Results
from monkey.results.result_table import ResultTable, tabulate_groups, tabulate_results


def format_results(
    results: Results, to: Terminal, *, everything: bool = False, top: int | None = None, more: str = ""
) -> list[str]:
    """Return a line a job, best first; at most `top`, with `more` on how to see the others."""
    if not results.rows:
        return ["No such job."]
    colours = {i: "red" if row.state == "failed" else "dim" for i, row in enumerate(results.rows) if not row.counts}
    return _lines(tabulate_results(results, everything=everything), to, colours, top, more)


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
    return _lines(tabulate_groups(groups, names, results, everything=everything), to, {}, top, "")


def _lines(made: ResultTable, to: Terminal, colours: dict[int, str], top: int | None, more: str) -> list[str]:
    rows = made.rows[:top]
    lines = lay_out_table(made.names, rows, to, colours, made.right)
    below = [made.left_out] if made.left_out else []
    if left := len(made.rows) - len(rows):
        below.insert(0, f"{format_plural(left, 'more row')}" + (f" ({more})" if more else ""))
    return [*lines, *(to.paint(flatten_text(f"… {'; '.join(below)}"), "dim") for _ in below[:1])]
