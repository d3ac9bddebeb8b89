"""The plan on a terminal: marks and colours for the lines that `monkey.plan.text.lines` writes."""

from __future__ import annotations

from monkey.cli.terminal.text import Terminal, cut_text, flatten_text
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.lines import (
    LineMark,
    PlanLine,
    format_fleet_plan,
    format_gone_sweeps,
    format_sweep_plan,
    format_verdict,
    format_warnings,
)

_COLOURS = {
    LineMark.NEW: "green",
    LineMark.UNKNOWN: "yellow",
    LineMark.STALE: "yellow",
    LineMark.KEPT: "dim",
    LineMark.REMOVED: "red",
    LineMark.SETTING: "cyan",
    LineMark.MEND: "yellow",
    LineMark.UPLOAD: "cyan",
    LineMark.FLEET: "cyan",
    LineMark.COST: "yellow",
    LineMark.NOTE: "",
}


def format_plan(plan: Plan, to: Terminal, *, everything: bool = False) -> list[str]:
    """Return the plan as lines; sweeps in which nothing changes are left out unless `everything` is asked for."""
    lines: list[str] = []
    for sweep in plan.sweeps:
        if sweep.changes or sweep.notes or sweep.refusal or everything:
            lines += _sweep(sweep, to)
    hidden = sum(not (sweep.changes or sweep.notes or sweep.refusal) for sweep in plan.sweeps)
    if hidden and not everything and lines:
        lines += [to.paint(f"({hidden} unchanged {'sweep is' if hidden == 1 else 'sweeps are'} not shown)", "dim"), ""]
    if plan.gone:
        lines += [to.paint("gone", "bold"), *(_line(line, to) for line in format_gone_sweeps(plan)), ""]
    asked = plan.observed and not everything
    shown = [fleet for fleet in plan.fleets if fleet.changes or fleet.notes or (fleet.jobs and not asked)]
    fleets = [*(line for fleet in shown for line in format_fleet_plan(fleet)), *format_warnings(plan)]
    if fleets:
        lines += [to.paint("machines", "bold"), *(_line(line, to) for line in fleets), ""]
    digest = [f"Digest: {compute_plan_digest(plan)}"] if plan.observed else []
    return [*lines, to.paint(format_verdict(plan), "bold"), *digest]


def _sweep(sweep: SweepPlan, to: Terminal) -> list[str]:
    name, source = flatten_text(sweep.name), flatten_text(sweep.desired.source)
    head = f"{to.paint(name, 'bold')} {to.paint(f'({source})', 'dim')}"
    return [head, *(_line(line, to) for line in format_sweep_plan(sweep)), ""]


def _line(line: PlanLine, to: Terminal) -> str:
    text = f"      {flatten_text(line.text)}" if line.detail else f"  {line.mark} {flatten_text(line.text)}"
    if to.width is not None and not line.detail and line.mark is not LineMark.COST:
        text = cut_text(text, to.width)
    return to.paint(text, _COLOURS[line.mark] if not line.detail else "dim")
