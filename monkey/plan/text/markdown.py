"""A plan as Markdown, for a comment on a pull request.

Whatever users wrote stands in code, where nothing is a link, a mention, HTML or an order to the bot that reads it.
"""

from __future__ import annotations

import re

from monkey.plan.change import Plan, SweepPlan
from monkey.plan.cost import format_total_cost
from monkey.plan.text.lines import (
    LineMark,
    PlanLine,
    format_fleet_plan,
    format_sweep_plan,
    format_warnings,
    summarize_plan,
)

#: A forge refuses longer comments (GitHub: 65,536 characters).
_MAX_COMMENT_CHARACTERS = 60_000
#: Signs that ```diff colours: stale jobs have none of their own there, "!" is orange.
_SIGNS = {
    LineMark.NEW: "+",
    LineMark.REMOVED: "-",
    LineMark.STALE: "!",
    LineMark.MEND: "!",
    LineMark.KEPT: " ",
    LineMark.NOTE: "#",
}
#: What would show as something else than it is: controls, bidi marks, zero-width characters.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def format_markdown(plan: Plan) -> str:
    """Return the plan as Markdown, no longer than a comment may be."""
    parts = [f"### monkey plan: {summarize_plan(plan)}\n"]
    for sweep in plan.sweeps:
        parts += [
            f"#### {format_inline_code(sweep.name)} ({format_inline_code(sweep.desired.source)})\n",
            _table(sweep),
            _block(format_sweep_plan(sweep)),
        ]
    shown = [fleet for fleet in plan.fleets if fleet.jobs or fleet.changes or fleet.notes]
    if fleets := [*(line for fleet in shown for line in format_fleet_plan(fleet)), *format_warnings(plan)]:
        parts.append(_block(fleets))
    if plan.released:
        jobs = "1 running job" if plan.released == 1 else f"{plan.released:,} running jobs"
        parts.append(f"**Applying stops {jobs}.**\n")
    if plan.uprooted:
        jobs = "1 running job" if plan.uprooted == 1 else f"{plan.uprooted:,} running jobs"
        parts.append(f"**Applying takes machines away from {jobs}.**\n")
    if plan.redone:
        jobs = "1 finished job" if plan.redone == 1 else f"{plan.redone:,} finished jobs"
        parts.append(f"**{jobs} will be run again.**\n")
    if costs := [fleet.cost for fleet in plan.rented if fleet.cost]:
        parts.append(f"**Applying rents machines for {format_total_cost(costs)}.**\n")
    if not plan.observed:
        parts.append("**The store was not asked: which jobs are new is unknown.**\n")
    return _cut_parts(parts)


def format_inline_code(text: str) -> str:
    """Return the text as inline code, whatever backticks it has."""
    text = _replace_hidden(text).replace("\n", " ")
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if not text or text[0] in "` " or text[-1] in "` " else ""
    # A table's cells end at every bar, even in code.
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("|", "\\|")


def _table(sweep: SweepPlan) -> str:
    counts = sweep.jobs.counts
    head = "| " + " | ".join(counts) + " |"
    return f"{head}\n|{' --: |' * len(counts)}\n| {' | '.join(f'{count:,}' for count in counts.values())} |\n"


def _block(lines: list[PlanLine]) -> str:
    if not lines:
        return ""
    text = "\n".join(_diff_line(line) for line in lines)
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}diff\n{text}\n{fence}\n"


def _diff_line(line: PlanLine) -> str:
    text = _replace_hidden(line.text).replace("\n", " ")
    sign = _SIGNS.get(line.mark, " ")
    return f"{sign}     {text}" if line.detail else f"{sign} {text}"


def _cut_parts(parts: list[str]) -> str:
    kept, size = [], 0
    for at, part in enumerate(parts):
        size += len(part) + 1
        if size > _MAX_COMMENT_CHARACTERS:
            kept.append(f"… and {len(parts) - at} more parts; `monkey plan` shows all.\n")
            break
        kept.append(part)
    return "\n".join(part for part in kept if part)


def _replace_hidden(text: str) -> str:
    return _HIDDEN.sub("\ufffd", text.replace("\t", " "))


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
