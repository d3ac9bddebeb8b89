"""What came of a sweep as Markdown, for a comment on the pull request that asked for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monkey.plan.text.describe import make_value_format
from monkey.plan.text.inert_markdown import cut_parts, format_cells, format_code_block, format_inline_code
from monkey.plan.text.short_texts import cut_text, shorten_column
from monkey.protocol.notices.sweep_outcome import SweepOutcome
from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.causes.ended_jobs import EndedJobs
from monkey.results.earlier_results import EarlierResults
from monkey.results.failure_kinds import find_last_line, group_failures
from monkey.results.result_chart import draw_chart
from monkey.results.result_rows import Results, explain_unmeasured
from monkey.results.result_table import format_number, tabulate_results

#: Rows of the table, columns of a row, and kinds of failure that a comment has room for.
_ROWS, _COLUMNS, _KINDS = 10, 12, 5
#: Characters of a cell, or of a line of a log.
_WIDTH = 120
#: What is no Markdown whatever stands around it: numbers and times.
_NUMBER = re.compile(r"-?[0-9][0-9.]*(?:e[-+][0-9]+)?s?")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
#: The verdicts in a heading.
_HEADINGS = {
    "working": "is at work",
    "paused": "is paused",
    "finished": "has finished",
    "failed": "has failed",
    "stalled": "has stalled",
    "cancelled": "was cancelled",
}


@dataclass(frozen=True)
class ResultReport:
    """What a report is made of."""

    view: SweepView
    results: Results
    outcome: SweepOutcome
    earlier: EarlierResults | None = None


def format_report(report: ResultReport) -> str:
    """Return the report, no longer than a comment may be: verdict, best job, table, chart, failures, how to look."""
    name = report.view.state.name
    head = f"### monkey: sweep {format_inline_code(name)} {_HEADINGS[report.outcome.verdict]}\n"
    chart = draw_chart(report.results)
    parts = [
        head,
        f"{_short(report.outcome.text, safe=True)}{_origin(report.view)}\n",
        _best(report.results),
        _difference(report),
        _table(report.results),
        f"{format_code_block(chart.text, 'mermaid')}{chart.note}\n" if chart else "",
        _failures(report.view),
        f"All rows: {format_inline_code(f'monkey results {name}')}; a job's log: `monkey logs JOB`.\n",
    ]
    return cut_parts(parts, f"{format_inline_code(f'monkey results {name}')} shows all")


def _short(text: str, *, safe: bool = False) -> str:
    """Return a text of any length as one cell of code; `safe`: as it is, where it is a count of jobs alone."""
    if safe and re.fullmatch(r"[0-9,/]+(?: [a-z]+)?(?:, [0-9,]+ [a-z]+)*", text):
        return text
    return format_inline_code(cut_text(text, _WIDTH))


def _cell(text: str) -> str:
    return text if not text or _NUMBER.fullmatch(text) else format_inline_code(text)


def _origin(view: SweepView) -> str:
    git = (view.state.revision.git if view.state.revision else None) or {}
    commit = str(git.get("commit", ""))
    dirty = " and changes that are in no commit" if git.get("dirty") else ""
    # As it stands, forges make a link of it.
    at = f", commit {commit[:10]}{dirty}" if _COMMIT.fullmatch(commit) else ""
    return f" (revision {view.state.revision_at}{at})"


def _best(results: Results) -> str:
    best = results.best
    if best is None or results.metric is None:
        missing = explain_unmeasured(results)
        return f"{_short(missing)}\n" if missing else ""
    told = []
    for name, value in best.parameters.items():
        if name in results.varying:
            text = make_value_format(results.table.columns[name].values, _WIDTH)(value)
            told.append(format_inline_code(f"{cut_text(name, _WIDTH)}={text}"))
    value = format_number(best.metrics[results.metric])
    with_these = f" with {', '.join(told[:_COLUMNS])}" if told else ""
    return f"**Best {_short(results.metric)}: {value}**{with_these} (job {_short(best.job)})\n"


def _difference(report: ResultReport) -> str:
    metric, before, now = report.results.metric, report.earlier, report.results.best
    if before is None or metric is None or now is None or before.results.best is None:
        return ""
    old, new = before.results.best.metrics[metric], now.metrics[metric]
    commit = str((before.revision.revision.git or {}).get("commit", ""))
    at = f" ({commit[:10]})" if _COMMIT.fullmatch(commit) else ""
    since = f"since revision {before.revision.number}{at}"
    if old == new:
        return f"Best {_short(metric)} is unchanged {since}: {format_number(new)}\n"
    better = (new > old) is report.results.maximize
    arrow = f"{format_number(old)} → {format_number(new)}"
    return f"Best {_short(metric)} is {'better' if better else 'worse'} {since}: {arrow}\n"


def _table(results: Results) -> str:
    if not results.order:
        return ""
    made = tabulate_results(results, top=_ROWS)
    # Those that a narrow terminal would lack first.
    kept = sorted(made.columns, key=lambda column: column.leaves)[:_COLUMNS]
    columns = [column for column in made.columns if column in kept]
    cells = [shorten_column(column.cells, _WIDTH) for column in columns]
    lines = [
        format_cells([_short(column.name) for column in columns]),
        format_cells(["--:" if column.right else "---" for column in columns]),
        *(format_cells([_cell(text) for text in row]) for row in zip(*cells, strict=True)),
    ]
    left = len(results.order) - _ROWS
    more = f"\n… and {left:,} more {'job' if left == 1 else 'jobs'}\n" if left > 0 else ""
    return "\n".join(lines) + f"\n{more}"


def _failures(view: SweepView) -> str:
    kinds = group_failures(view)
    if not kinds:
        return ""
    lines, ended = [], EndedJobs(view)
    for kind in kinds[:_KINDS]:
        last = find_last_line(kind.first)
        told = [_short(kind.first.reason or "no reason was recorded"), *([_short(last)] if last else [])]
        count = "1 job" if kind.count == 1 else f"{kind.count:,} jobs"
        rule = ended.explain(kind)
        where = f"; {_short(str(rule))}" if rule else ""
        lines.append(f"- {count} failed: {': '.join(told)} (job {_short(kind.first.job)}){where}")
    if rest := kinds[_KINDS:]:
        lines.append(f"- … and {sum(kind.count for kind in rest):,} more, for {len(rest):,} other reasons")
    return "\n".join(lines) + "\n"
