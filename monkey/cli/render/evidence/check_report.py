"""The report of a check: what is as recorded; for each other job what differs, since which step, beside which facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from monkey.cli.terminal.text import Terminal, flatten_text, format_plural, lay_out_table
from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.checks.check_verdict import CheckedJob, CheckVerdict, MetricDifference
from monkey.spec.sweep.sweep_names import parse_check_name

#: Jobs, metrics, outputs and facts that are listed of those that differ; `--json` has all.
_JOBS, _LISTED = 20, 12
_HEADS = ("metric", "recorded", "now", "Δ", "parts at step", "")
_COLOURS = {
    CheckVerdict.IDENTICAL: "green",
    CheckVerdict.WITHIN: "green",
    CheckVerdict.DIFFERS: "red",
    CheckVerdict.FAILED: "red",
    CheckVerdict.UNFINISHED: "yellow",
}


def format_checks(view: SweepView, checks: Sequence[CheckedJob], to: Terminal) -> list[str]:
    """Return a part for each job that is not identical, and a last line that sums up."""
    told = [one for one in checks if one.verdict is not CheckVerdict.IDENTICAL]
    lines: list[str] = []
    for one in told[:_JOBS]:
        lines += [*_format_check(view, one, to), ""]
    if len(told) > _JOBS:
        lines += [f"and {format_plural(len(told) - _JOBS, 'more job')}: `--json` lists all", ""]
    return [*lines, _summarize(view, checks, to)]


def _summarize(view: SweepView, checks: Sequence[CheckedJob], to: Terminal) -> str:
    counts = Counter(one.verdict for one in checks)
    parts = [
        to.paint(f"{counts[each]:,} of {len(checks):,} {each}", _COLOURS[each]) for each in CheckVerdict if counts[each]
    ]
    name = flatten_text(view.state.name)
    left = f"; `monkey rerun --show {name}` shows the rest later" if counts[CheckVerdict.UNFINISHED] else ""
    return f"{to.paint(name, 'bold')}: {', '.join(parts) or 'no jobs'}{left}."


def _format_check(view: SweepView, one: CheckedJob, to: Terminal) -> list[str]:
    revision = view.state.revision
    assert revision is not None
    label = revision.table.label(revision.rows[one.check]).replace(one.check, one.job)
    verdict = to.paint(str(one.verdict), _COLOURS[one.verdict])
    lines = [f"{flatten_text(label)}: {verdict}" + (f" ({flatten_text(one.reason)})" if one.reason else "")]
    if not (one.metrics or one.outputs):
        return [*lines, f"  `monkey logs {one.check}` shows what it wrote"] if one.reason else lines
    lines += [f"  {line}" for line in _lay_out_metrics(one.metrics, to)]
    for output in one.outputs[:_LISTED]:
        lines.append(f"  output {flatten_text(output.path)}: {_cut(output.recorded)} → {_cut(output.now)}")
    lines += _tell_more(len(one.outputs), "output")
    return lines + _format_cause(one)


def _lay_out_metrics(metrics: Sequence[MetricDifference], to: Terminal) -> list[str]:
    rows = [
        (one.name, one.recorded, one.now, one.delta, one.step, "within tolerance" if one.within else "")
        for one in metrics[:_LISTED]
    ]
    table = lay_out_table(_HEADS, rows, to, right=[False, True, True, True, True, False])
    return table + [line.strip() for line in _tell_more(len(metrics), "metric")]


def _format_cause(one: CheckedJob) -> list[str]:
    """Return which facts differ beside the results; where none does, what is left to suspect."""
    if one.facts:
        told = [f"{each.name} {each.recorded or 'none'} → {each.now or 'none'}" for each in one.facts[:_LISTED]]
        return [f"  came from: {flatten_text(', '.join(told))}", *_tell_more(len(one.facts), "fact")]
    if one.facts_known:
        return ["  no recorded fact differs: look for a seed from the clock, the order of a hash, or threads"]
    return ["  what the results came from is not known"]


def _tell_more(count: int, noun: str) -> list[str]:
    return [f"  and {format_plural(count - _LISTED, f'more {noun}')}: `--json` lists all"] if count > _LISTED else []


def _cut(sha256: str) -> str:
    return sha256[:12] or "missing"


def serialize_checks(view: SweepView, checks: Sequence[CheckedJob]) -> dict[str, Any]:
    """Return the verdicts for programs."""
    name = parse_check_name(view.state.name)
    return {
        "check": view.state.name,
        "sweep": name.sweep if name else None,
        "ok": all(one.verdict.well for one in checks),
        "jobs": [
            {
                "job": one.job,
                "check": one.check,
                "verdict": str(one.verdict),
                "reason": one.reason or None,
                "metrics": [
                    {
                        "name": each.name,
                        "recorded": each.recorded,
                        "now": each.now,
                        "delta": each.delta,
                        "within": each.within,
                        "step": each.step,
                    }
                    for each in one.metrics
                ],
                "outputs": [
                    {"path": each.path, "recorded": each.recorded or None, "now": each.now or None}
                    for each in one.outputs
                ],
                "facts": [
                    {"name": each.name, "recorded": each.recorded or None, "now": each.now or None}
                    for each in one.facts
                ],
            }
            for one in checks
        ],
    }
