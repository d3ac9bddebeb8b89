"""A plan as lines for people: a mark and a sentence each. Whoever prints them adds colour, or Markdown.

The sentences hold values that users wrote; nothing in them is escaped yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.cost import total_text
from monkey.plan.explain import setting_text
from monkey.plan.sizes import size_text
from monkey.plan.text.describe import describe


class Mark(StrEnum):
    """What a line is about, and the sign in front of it."""

    NEW = "+"
    STALE = "~"
    KEPT = "="
    REMOVED = "-"
    SETTING = "*"
    MEND = "!"
    UPLOAD = "↑"
    FLEET = "@"
    COST = "$"
    NOTE = " "


class Line(NamedTuple):
    """One line; `detail` continues the line above it, and may be left out."""

    mark: Mark
    text: str
    detail: bool = False


#: What becomes of a job's old state when nobody wants it any more; in the order of telling.
_FATES = {
    "running": "{} running: stopped and released",
    "queued": "{} queued: dropped",
    "failed": "{} failed",
    "stopped": "{} stopped: results stay in the store",
    "succeeded": "{} finished: results stay in the store",
}
_MACHINES = {"create": Mark.NEW, "update": Mark.STALE, "replace": Mark.STALE, "delete": Mark.REMOVED}
_STATES = ("succeeded", "running", "queued", "stopped", "failed", "adopted")


def sweep_lines(sweep: SweepPlan, limit: int = 8) -> list[Line]:
    """Return the lines of one sweep; `limit` bounds those that list the jobs of one lot."""
    lines = []
    table = sweep.desired.table
    lines += [Line(Mark.NEW, text) for text in describe(table, sweep.jobs.new, limit)]
    for group in sweep.jobs.stale:
        lines += [Line(Mark.STALE, text) for text in describe(table, group.rows, limit)]
        lines.append(Line(Mark.STALE, f"because {group.why}", detail=True))
    if fate := _fates(sweep.jobs.replaced_states):
        lines.append(Line(Mark.STALE, f"in place of {fate}", detail=True))
    if sweep.jobs.kept:
        lines.append(Line(Mark.KEPT, _kept(sweep)))
    if sweep.jobs.removed and sweep.observed and sweep.observed.applied:
        old = sweep.observed.applied.table
        lines += [Line(Mark.REMOVED, text) for text in describe(old, sweep.jobs.removed, limit)]
        lines.append(Line(Mark.REMOVED, _fates(sweep.jobs.removed_states), detail=True))
    return lines + _other_lines(sweep)


def _other_lines(sweep: SweepPlan) -> list[Line]:
    lines = [Line(Mark.SETTING, setting_text(change)) for change in sweep.settings]
    lines += _uploads(sweep)
    for fleet in sweep.unmarked:
        lines.append(Line(Mark.MEND, f"an apply was cut short: {fleet} was never told of this work"))
    lines += [Line(Mark.NOTE, note) for note in sweep.notes]
    return lines + [Line(Mark.NOTE, f"warning: {warning}") for warning in sweep.desired.warnings]


def _uploads(sweep: SweepPlan) -> list[Line]:
    size = sweep.upload.bytes - sum(of.bytes for of in sweep.datasets.values())
    code = sweep.upload.objects - sum(of.objects for of in sweep.datasets.values())
    lines = [Line(Mark.UPLOAD, f"code: {size_text(size)} to upload")] if code else []
    for name, of in sweep.datasets.items():
        objects = "1 object" if of.objects == 1 else f"{of.objects:,} objects"
        lines.append(Line(Mark.UPLOAD, f"dataset {name}: {size_text(of.bytes)} in {objects} to upload"))
    return lines


def fleet_lines(fleet: FleetPlan) -> list[Line]:
    """Return the lines of a fleet: its own, one for each machine that changes, and what should be known before."""
    lines = [_fleet_line(fleet)]
    for change in fleet.machines:
        mark = Mark.MEND if change.trouble else _MACHINES[change.op]
        stops = f"{_count(change.stops)} running there: stopped and queued again" if change.stops else ""
        why = "; ".join(filter(None, (change.why, stops)))
        said = ": ".join(filter(None, ("replaced" if change.op == "replace" and not change.trouble else "", why)))
        lines.append(Line(mark, f"{fleet.fleet}/{change.machine}" + (f": {said}" if said else "")))
        lines += [Line(mark, text, detail=True) for text in change.trouble.splitlines()]
    if fleet.cost is not None:
        lines.append(Line(Mark.COST, f"{fleet.fleet}: {fleet.cost.words()}"))
    return lines + [Line(Mark.NOTE, note) for note in fleet.notes]


def _fleet_line(fleet: FleetPlan) -> Line:
    work = (
        f"{fleet.fleet}: {_count(fleet.jobs)} to run, {fleet.agents or 'no'} agent{'s' * (fleet.agents != 1)} at work"
    )
    if fleet.after is None:
        return Line(Mark.FLEET, work + (", to be started" if fleet.changes else ""))
    if fleet.before == fleet.after:
        return Line(Mark.FLEET, f"{work}, machines stay {fleet.after}")
    return Line(Mark.FLEET, f"{work}, machines {fleet.before} → {fleet.after}")


def warning_lines(plan: Plan) -> list[Line]:
    """Return what should be known before applying, and is of none of its sweeps and fleets."""
    return [Line(Mark.MEND, warning) for warning in plan.warnings]


def summary(plan: Plan) -> str:
    """Return the plan in one sentence: "24 new, 12 stale, 6 kept, 3 removed; 1.2 KiB to upload"."""
    totals = {"new": 0, "stale": 0, "kept": 0, "removed": 0}
    for sweep in plan.sweeps:
        for lot, count in sweep.jobs.counts.items():
            totals[lot] += count
    parts = [", ".join(f"{count:,} {lot}" for lot, count in totals.items() if count) or "no jobs"]
    settings = sum(len(sweep.settings) for sweep in plan.sweeps)
    if settings:
        parts.append("1 setting changes" if settings == 1 else f"{settings} settings change")
    parts += _changing(plan)
    if size := sum(sweep.upload.bytes for sweep in plan.sweeps):
        parts.append(f"{size_text(size)} to upload")
    if costs := [fleet.cost for fleet in plan.rented if fleet.cost]:
        parts.append(f"machines are rented for {total_text(costs)}")
    return "; ".join(parts) if plan.changes else "nothing to do: " + parts[0]


def _changing(plan: Plan) -> list[str]:
    """Return how many machines change, how many cannot, and how many other parts of fleets change."""
    changes = [change for fleet in plan.fleets for change in fleet.machines]
    fleets = sum(any(change.part for change in fleet.machines) for fleet in plan.fleets)
    hindered = sum(bool(change.trouble) for change in changes)
    pieces = sum(change.part and not change.trouble for change in changes)
    told = []
    if machines := len(changes) - hindered - pieces:
        told.append("1 machine changes" if machines == 1 else f"{machines} machines change")
    if pieces:
        whose = "a fleet" if fleets == 1 else "fleets"
        told.append(f"1 part of {whose} changes" if pieces == 1 else f"{pieces} parts of {whose} change")
    if hindered:
        told.append("1 machine cannot be used now" if hindered == 1 else f"{hindered} machines cannot be used now")
    return told


def _kept(sweep: SweepPlan) -> str:
    states = dict(sweep.jobs.kept_states)
    if "succeeded" in states:
        states["succeeded"] -= sum(sweep.jobs.elsewhere.values())
    told = [f"{states[state]:,} {state}" for state in _STATES if states.get(state)]
    if sweep.keeping:
        told = [part.replace("adopted", f"adopted though {', '.join(sweep.keeping)} changed") for part in told]
    for name, count in sweep.jobs.elsewhere.items():
        told.append(f"{count:,} finished in sweep {name}" if name else f"{count:,} finished before")
    return _count(len(sweep.jobs.kept)) + (f" ({', '.join(told)})" if told else "")


def _fates(states: Mapping[str, int]) -> str:
    return ", ".join(text.format(f"{states[state]:,}") for state, text in _FATES.items() if states.get(state))


def _count(jobs: int) -> str:
    return "1 job" if jobs == 1 else f"{jobs:,} jobs"
