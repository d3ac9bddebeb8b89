"""The plan on a terminal: marks and colours for the lines that `monkey.plan.text.lines` writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from monkey.cli.terminal.text import Terminal, flatten_text
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
from monkey.plan.text.short_texts import shorten_texts

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
        lines += [to.paint("gone", "bold"), *_lay_out(format_gone_sweeps(plan), to), ""]
    asked = plan.observed and not everything
    shown = [fleet for fleet in plan.fleets if fleet.changes or fleet.notes or (fleet.jobs and not asked)]
    fleets = [*(line for fleet in shown for line in format_fleet_plan(fleet)), *format_warnings(plan)]
    if fleets:
        lines += [to.paint("machines", "bold"), *_lay_out(fleets, to), ""]
    digest = [f"Digest: {compute_plan_digest(plan)}"] if plan.observed else []
    return [*lines, to.paint(format_verdict(plan), "bold"), *digest]


def _sweep(sweep: SweepPlan, to: Terminal) -> list[str]:
    name, source = flatten_text(sweep.name), flatten_text(sweep.desired.source)
    head = f"{to.paint(name, 'bold')} {to.paint(f'({source})', 'dim')}"
    return [head, *_lay_out(format_sweep_plan(sweep), to), ""]


def _lay_out(lines: Sequence[PlanLine], to: Terminal) -> list[str]:
    """Return the lines in colours; those that are too long are cut, and stay distinct."""
    starts = ["     " if line.detail else f"  {line.mark}" for line in lines]
    texts = [f"{start} {flatten_text(line.text)}" for start, line in zip(starts, lines, strict=True)]
    if to.width is not None:
        cut = [not line.detail and line.mark is not LineMark.COST for line in lines]
        short = shorten_texts(compress(texts, cut), to.width)
        texts = [short[text] if is_cut else text for text, is_cut in zip(texts, cut, strict=True)]
    colours = ["dim" if line.detail else _COLOURS[line.mark] for line in lines]
    return list(map(to.paint, texts, colours))
