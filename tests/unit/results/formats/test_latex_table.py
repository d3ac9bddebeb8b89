"""LaTeX: a strict reader finds the cells again, whatever they hold, and a real compiler accepts them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from monkey.results.formats.latex_table import escape_latex, format_latex, format_latex_groups
from monkey.results.groups import group_results
from monkey.results.result_rows import Results
from tests.unit.results.sample_results import JOBS, Job, accs, made, metric

HOSTILE = [
    *("\\input{/etc/passwd}", "\\", "\\\\", "{", "}", "}{", "$", "$$", "&", "#1", "%", "_a_b", "^", "~", "\\hline"),
    *("\\end{tabular}", "\\write18{id}", "[1em]", "*", "<!--", "?`", "--", "---", "''", '"', "`", "|", "a & b \\\\"),
    *("é ü ß", "日本", "\U0001f600", "\x00", "a\nb", "a\n\nb", "\t", "±", "×", "−1", "…", "\u202e", "x" * 300, ""),
    *(" ", "1e-05", "-0.5", "nan", "^^M"),
]
#: All that may stand in a cell: words, escapes, groups of one mark, and signs of mathematics.
TOKEN = re.compile(
    r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|textquotesingle|textasciigrave"
    r"|dots|ss)\{\}|\\[{}$&#%_]|\{[-\[\]*?!,]\}|\$(?:\\pm|\\times|-)\$|[A-Za-z0-9 .:;/()=+@']|[À-ÿ]"
)


def parse(lines: list[str]) -> tuple[list[str], list[list[str]], set[int]]:
    """Read a table strictly; returns the headings, the rows as written, and which rows have a bold cell."""
    lines = [line for line in lines if not line.startswith("%")]
    head = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0])
    assert head and lines[1] == r"\toprule" and lines[3] == r"\midrule"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    rows, bold = [], set()
    for number, line in enumerate([lines[2], *lines[4:-2]]):
        assert "\n" not in line and line.endswith(r" \\")
        cells = re.split(r"(?<!\\) ?& ", line[: -len(r" \\")])
        assert len(cells) == len(head[1])
        for cell in cells:
            if inner := re.fullmatch(r"\\textbf\{(.*)\}", cell):
                bold.add(number - 1)
                cell = inner[1]
            assert TOKEN.sub("", cell) == "", cell
        rows.append(cells)
    return rows[0], rows[1:], bold


def hostile() -> Results:
    jobs = [{"name": text, "lr": at} for at, text in enumerate(HOSTILE)]
    names = [*HOSTILE[1:], "\ud800"]
    seen = [Job(metrics={"acc": metric(at / 7), f"m{at}{text}": metric(1)}) for at, text in enumerate(names)]
    return made(jobs, seen)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_text_is_a_command(text: str) -> None:
    assert TOKEN.sub("", escape_latex(text)) == ""
    assert escape_latex(text).isascii() or set(text) & set("éüß")


def test_jobs_are_rows_and_the_best_is_bold() -> None:
    results = made(JOBS, accs(0.5, 0.75, 0.25, None))
    head, rows, bold = parse(format_latex(results))
    assert head[:3] == ["lr", "seed", "acc"] and bold == {0}
    assert [row[2] for row in rows] == [r"\textbf{0.75}", "0.5", "0.25", ""]


def test_groups_have_intervals_and_the_best_mean_is_bold() -> None:
    results = made(JOBS, accs(0.5, 0.7, 0.9, 0.8))
    lines = format_latex_groups(group_results(results, ["lr"]), ["lr"], results)
    head, rows, bold = parse(lines)
    assert (head, bold) == (["lr", "acc", "n"], {0})
    assert rows == [["0.2", r"\textbf{0.85 $\pm$ 0.64}", "2"], ["0.1", r"0.6 $\pm$ 1.3", "2"]]
    assert "95 % t interval" in lines[-1] and lines[-1].startswith("% ")
    lower = made(JOBS, accs(0.5, 0.7, 0.9, 0.8), maximize=False)
    assert parse(format_latex_groups(group_results(lower, ["lr"]), ["lr"], lower))[1][0][0] == "0.1"


def test_equal_means_are_bold_alike_and_none_where_no_job_counts() -> None:
    same = made(JOBS, accs(0.5, 0.5, 0.5, 0.5))
    assert parse(format_latex_groups(group_results(same, ["lr"]), ["lr"], same))[2] == {0, 1}
    none = made(JOBS, [Job("failed", metrics={"acc": metric(1)})] * 4)
    assert parse(format_latex_groups(group_results(none, ["lr"]), ["lr"], none))[2] == set()
    assert parse(format_latex(none))[2] == set()


def test_a_table_of_hostile_texts_is_read_strictly() -> None:
    head, rows, _ = parse(format_latex(hostile(), everything=True))
    assert len(rows) == len(HOSTILE) and len(head) > 40


@pytest.mark.slow
@pytest.mark.needs("pdflatex")
def test_a_real_compiler_takes_hostile_texts(tmp_path: Path) -> None:
    results = hostile()
    groups = group_results(results, ["name"])
    tables = [format_latex(results), format_latex_groups(groups, ["name"], results)]
    body = "\n\n".join("\n".join(table) for table in tables)
    text = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + body + "\n\\end{document}\n"
    (tmp_path / "t.tex").write_text(text)
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-no-shell-escape", "t.tex"], cwd=tmp_path, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-1500:]
    assert (tmp_path / "t.pdf").stat().st_size > 10_000 and b"root:" not in done.stdout
