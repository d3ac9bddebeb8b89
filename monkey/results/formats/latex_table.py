"""Results as a LaTeX table with booktabs, to be put into a paper: the best row by the sweep's metric is bold."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from monkey.results.groups import ResultGroup
from monkey.results.result_rows import Results
from monkey.results.result_table import INTERVAL, ResultTable, tabulate_groups, tabulate_results

#: What is not itself in LaTeX's text, or begins something there. Brackets and stars after a line's end are arguments.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # The name of this one is missing in the encoding OT1.
    '"': "''",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "{-}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "…": r"\dots{}",
    "ß": r"\ss{}",
    **{mark: rf"\{mark}" for mark in "{}$&#%_"},
    **{mark: f"{{{mark}}}" for mark in "[]*?!,"},
}
#: Letters that every LaTeX has without a package: those of Western Europe.
_LETTERS = set("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
_NUMBER = re.compile(r"-?[0-9.]+(e[-+]?[0-9]+)?")
#: What a document that takes the table in has to load.
_HEAD = r"% \usepackage{booktabs}"


def format_latex(results: Results, *, everything: bool = False, top: int | None = None) -> list[str]:
    """Return a line a job, best first: the best one that counts is bold."""
    made = tabulate_results(results, everything=everything, top=top)
    best = results.best
    bold = {row for row, at in enumerate(results.order[:top]) if best and results.table.ids[at] == best.job}
    return _lay_out(made, bold)


def format_latex_groups(
    groups: Sequence[ResultGroup],
    names: Sequence[str],
    results: Results,
    *,
    everything: bool = False,
    top: int | None = None,
) -> list[str]:
    """Return a line a group, best mean first, with t intervals: the best mean, and those that equal it, are bold."""
    made = tabulate_groups(groups[:top], names, results, everything=everything)
    means = [_find_mean(group, results.metric) for group in groups[:top]]
    bold = {row for row, mean in enumerate(means) if mean is not None and mean == means[0]}
    return [*_lay_out(made, bold), f"% {INTERVAL}"]


def _find_mean(group: ResultGroup, metric: str | None) -> float | None:
    return group.metrics[metric].mean if metric is not None and metric in group.metrics else None


def escape_latex(text: str) -> str:
    """Return a text of any characters as LaTeX's text: nothing in it is a command, and every compiler has it."""
    return "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in _LETTERS or " " <= character <= "~":
        return character
    return " " if character.isspace() else f"{{[}}U+{ord(character):04X}{{]}}"


def _lay_out(made: ResultTable, bold: Collection[int]) -> list[str]:
    align = "".join("r" if column.right else "l" for column in made.columns)
    lines = [_HEAD, f"\\begin{{tabular}}{{{align}}}", r"\toprule", _join(map(escape_latex, made.names)), r"\midrule"]
    for row, cells in enumerate(made.rows):
        shown = [_format_cell(cell) for cell in cells]
        if row in bold:
            shown = [
                f"\\textbf{{{cell}}}" if column.ranks else cell
                for column, cell in zip(made.columns, shown, strict=True)
            ]
        lines.append(_join(shown))
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _join(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _format_cell(cell: str) -> str:
    # A hyphen is no minus.
    return cell.replace("-", "$-$") if _NUMBER.fullmatch(cell) else escape_latex(cell)
