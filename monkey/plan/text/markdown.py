"""A plan as Markdown, for a comment on a pull request."""

from __future__ import annotations

import html
import re

from monkey.ci_run import CiRun
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.cost import format_total_cost
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.inert_markdown import cut_parts, format_code_block, format_inline_code, replace_hidden
from monkey.plan.text.lines import (
    LineMark,
    PlanLine,
    format_fleet_plan,
    format_gone_sweeps,
    format_sweep_plan,
    format_warnings,
    summarize_plan,
)

#: Changed sweeps that are shown open; each of more is folded under a line of its own.
_MAX_OPEN_SECTIONS = 5
#: An address that is nothing but one, whatever Markdown makes of it.
_LINK = re.compile(r"https?://[A-Za-z0-9.:/_~-]+")
#: Signs that ```diff colours: stale jobs have none of their own there, "!" is orange.
_SIGNS = {
    LineMark.NEW: "+",
    LineMark.REMOVED: "-",
    LineMark.STALE: "!",
    LineMark.MEND: "!",
    LineMark.KEPT: " ",
    LineMark.NOTE: "#",
}


def format_markdown(plan: Plan, run: CiRun | None = None) -> str:
    """Return the plan as Markdown, no longer than a comment may be; `run`: the CI run that made it."""
    changed = [sweep for sweep in plan.sweeps if sweep.changes or sweep.refusal]
    parts = [f"### monkey plan: {summarize_plan(plan)}\n", *_format_consequences(plan)]
    parts.append(_block([*format_warnings(plan), *_sort_lines(format_gone_sweeps(plan))]))
    parts += [_format_section(sweep, folded=len(changed) > _MAX_OPEN_SECTIONS) for sweep in changed]
    if unchanged := len(plan.sweeps) - len(changed):
        parts.append(f"{unchanged:,} unchanged sweep{'s' * (unchanged != 1)}\n")
    shown = [fleet for fleet in plan.fleets if fleet.jobs or fleet.changes or fleet.notes]
    parts.append(_block(_sort_lines([line for fleet in shown for line in format_fleet_plan(fleet)])))
    return cut_parts(parts, "`monkey plan` shows all", _format_origin(plan, run))


def _format_consequences(plan: Plan) -> list[str]:
    """Return the consequences, a paragraph each: what is stopped, run again, paid, not known."""
    told = []
    if plan.released:
        jobs = "1 running job" if plan.released == 1 else f"{plan.released:,} running jobs"
        told.append(f"**Applying stops {jobs}.**\n")
    if plan.uprooted:
        jobs = "1 running job" if plan.uprooted == 1 else f"{plan.uprooted:,} running jobs"
        told.append(f"**Applying takes machines away from {jobs}.**\n")
    if plan.redone:
        jobs = "1 finished job" if plan.redone == 1 else f"{plan.redone:,} finished jobs"
        told.append(f"**{jobs} will be run again.**\n")
    if costs := [fleet.cost for fleet in plan.rented if fleet.cost]:
        told.append(f"**Applying rents machines for {format_total_cost(costs)}.**\n")
    if not plan.observed:
        told.append("**The store was not asked: which jobs are new is unknown.**\n")
    return told


def _format_section(sweep: SweepPlan, *, folded: bool) -> str:
    """Return what changes of a sweep, or why it is refused; `folded`: under one line that opens it."""
    body = [_table(sweep), _block(_sort_lines(format_sweep_plan(sweep)))]
    if not folded:
        head = f"#### {format_inline_code(sweep.name)} ({format_inline_code(sweep.desired.source)})\n"
        return "\n".join([head, *body])
    counts = ", ".join(f"{count:,} {lot}" for lot, count in sweep.jobs.lots.items() if count) or "no jobs"
    head = f"<details><summary>{_format_code_tag(sweep.name)}: {counts}</summary>\n"
    return "\n".join([head, *body, "</details>\n"])


def _format_code_tag(text: str) -> str:
    """Return the text as code between tags, for a line of HTML, in which Markdown is not read."""
    return f"<code>{html.escape(replace_hidden(text).replace(chr(10), ' '))}</code>"


def _format_origin(plan: Plan, run: CiRun | None) -> str:
    """Return the last line: the digest, the commit, and where the run is seen."""
    git = next((sweep.desired.git for sweep in plan.sweeps if sweep.desired.git), None) or {}
    commit = (run.commit if run else "") or str(git.get("commit", ""))
    told = [f"Digest: {format_inline_code(compute_plan_digest(plan))}"] if plan.observed else []
    told += [f"commit {format_inline_code(commit)}"] if commit else []
    told += [f"[run]({run.url})"] if run and _LINK.fullmatch(run.url) else []
    return " · ".join(told) + "\n" if told else ""


def _sort_lines(lines: list[PlanLine]) -> list[PlanLine]:
    """Return the lines with problems first; the details of a line stay with it."""
    lots: list[list[PlanLine]] = []
    for line in lines:
        if line.detail and lots:
            lots[-1].append(line)
        else:
            lots.append([line])
    return [line for lot in sorted(lots, key=lambda lot: lot[0].mark is not LineMark.MEND) for line in lot]


def _table(sweep: SweepPlan) -> str:
    counts = sweep.jobs.lots
    head = "| " + " | ".join(counts) + " |"
    return f"{head}\n|{' --: |' * len(counts)}\n| {' | '.join(f'{count:,}' for count in counts.values())} |\n"


def _block(lines: list[PlanLine]) -> str:
    if not lines:
        return ""
    return format_code_block("\n".join(_diff_line(line) for line in lines), "diff")


def _diff_line(line: PlanLine) -> str:
    text = replace_hidden(line.text).replace("\n", " ")
    sign = _SIGNS.get(line.mark, " ")
    return f"{sign}     {text}" if line.detail else f"{sign} {text}"
