"""A plan as lines for people: a mark and a sentence each. The caller adds colour, or Markdown.

The sentences hold values that users wrote; nothing in them is escaped yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from monkey.plan.adoption.adopted_jobs import AdoptedJobs
from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.cost import format_total_cost
from monkey.plan.explain import KEEP_NOTHING, format_setting_change
from monkey.plan.sizes import format_size
from monkey.plan.text.describe import describe_jobs
from monkey.plan.text.folding import fold_paths


class LineMark(StrEnum):
    """What a line is about, and the sign in front of it."""

    NEW = "+"
    UNKNOWN = "?"
    STALE = "~"
    KEPT = "="
    REMOVED = "-"
    SETTING = "*"
    MEND = "!"
    UPLOAD = "↑"
    FLEET = "@"
    COST = "$"
    NOTE = " "


class PlanLine(NamedTuple):
    """One line; `detail` continues the line above it, and may be left out."""

    mark: LineMark
    text: str
    detail: bool = False


#: What becomes of a job's old state when nobody wants it any more; in the order of telling.
_REPLACED_STATE_TEXTS = {
    "running": "{} running: stopped and released",
    "queued": "{} queued: dropped",
    "failed": "{} failed",
    "stopped": "{} stopped: results stay in the store",
    "succeeded": "{} finished: results stay in the store",
}
_MACHINE_MARKS = {
    "create": LineMark.NEW,
    "update": LineMark.STALE,
    "replace": LineMark.STALE,
    "delete": LineMark.REMOVED,
}
_CREDENTIALS_HINT = "if jobs need one that holds no real credential, `git add` it, or name it in full in code.include"
#: Words for a lot whose name does not say enough.
_LOTS = {"unknown": "jobs, new or not"}
_KEPT_STATES = ("succeeded", "running", "queued", "stopped", "failed", "adopted")


def format_sweep_plan(sweep: SweepPlan, limit: int = 8) -> list[PlanLine]:
    """Return the lines of one sweep; `limit` bounds those that list the jobs of one lot."""
    table, about = sweep.desired.table, sweep.desired.about
    lines = [PlanLine(LineMark.NOTE, about)] if about else []
    applied = sweep.observed.applied if sweep.observed else None
    before = applied.table if applied else None
    for mark, rows in ((LineMark.NEW, sweep.jobs.new), (LineMark.UNKNOWN, sweep.jobs.unknown)):
        lines += [PlanLine(mark, text) for text in describe_jobs(table, rows, limit, before=before)]
    if sweep.dropped:
        lost = f"{_format_job_count(len(sweep.dropped))} had adopted a result, given up by --keep-stale {KEEP_NOTHING}"
        lines.append(PlanLine(LineMark.NEW, lost, detail=True))
    for group in sweep.jobs.stale:
        lines += [PlanLine(LineMark.STALE, text) for text in describe_jobs(table, group.rows, limit, before=before)]
        lines.append(PlanLine(LineMark.STALE, f"because {group.why}", detail=True))
    if fate := _describe_replaced_states(sweep.jobs.replaced_states):
        lines.append(PlanLine(LineMark.STALE, f"in place of {fate}", detail=True))
    if sweep.jobs.kept:
        lines.append(PlanLine(LineMark.KEPT, _describe_kept_jobs(sweep)))
        lines += [PlanLine(LineMark.KEPT, _describe_adoption(lot), detail=True) for lot in sweep.adoptions]
    if sweep.jobs.failed:
        lines.append(PlanLine(LineMark.KEPT, _describe_failed_jobs(sweep)))
        failed = describe_jobs(table, sweep.jobs.failed, limit, before=before)
        lines += [PlanLine(LineMark.KEPT, text, detail=True) for text in failed]
    if sweep.jobs.removed and before is not None:
        gone = describe_jobs(before, sweep.jobs.removed, limit, before=table)
        lines += [PlanLine(LineMark.REMOVED, text) for text in gone]
        lines.append(PlanLine(LineMark.REMOVED, _describe_replaced_states(sweep.jobs.removed_states), detail=True))
    return lines + _format_other_lines(sweep)


def _format_other_lines(sweep: SweepPlan) -> list[PlanLine]:
    lines = [PlanLine(LineMark.SETTING, format_setting_change(change)) for change in sweep.settings]
    lines += [*_format_uploads(sweep), *_format_credentials(sweep.desired.credentials)]
    if sweep.refusal is not None:
        lines.append(PlanLine(LineMark.MEND, sweep.refusal.text))
        lines.append(PlanLine(LineMark.MEND, sweep.refusal.hint, detail=True))
    for fleet in sweep.unmarked:
        lines.append(PlanLine(LineMark.MEND, f"an apply was cut short: {fleet} was never told of this work"))
    lines += [PlanLine(LineMark.NOTE, note) for note in sweep.notes]
    return lines + [PlanLine(LineMark.NOTE, f"warning: {warning}") for warning in sweep.desired.warnings]


def _format_uploads(sweep: SweepPlan) -> list[PlanLine]:
    size = sweep.upload.bytes - sum(of.bytes for of in sweep.datasets.values())
    code = sweep.upload.objects - sum(of.objects for of in sweep.datasets.values())
    count = len(sweep.desired.code_files)
    where = f"in {count:,} file{'s' * (count != 1)}" if sweep.jobs.unknown else "to upload"
    lines = [PlanLine(LineMark.UPLOAD, f"code: {format_size(size)} {where}")] if code else []
    if code and (untracked := sweep.desired.untracked):
        names = f"with {_format_file_count(len(untracked))} that git does not track: {fold_paths(untracked)}"
        lines.append(PlanLine(LineMark.UPLOAD, names, detail=True))
    for name, of in sweep.datasets.items():
        objects = "1 object" if of.objects == 1 else f"{of.objects:,} objects"
        lines.append(PlanLine(LineMark.UPLOAD, f"dataset {name}: {format_size(of.bytes)} in {objects} to upload"))
    return lines


def _format_credentials(credentials: Mapping[str, str]) -> list[PlanLine]:
    """Return lines that name files that are no code because they may hold credentials."""
    if not credentials:
        return []
    files = _format_file_count(len(credentials))
    head = f"warning: {files} may hold credentials, and {'is' if len(credentials) == 1 else 'are'} no part of the code:"
    return [
        PlanLine(LineMark.NOTE, head),
        PlanLine(LineMark.NOTE, fold_paths([f"{path} ({why})" for path, why in credentials.items()]), detail=True),
        PlanLine(LineMark.NOTE, _CREDENTIALS_HINT, detail=True),
    ]


def _format_file_count(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"


def format_fleet_plan(fleet: FleetPlan) -> list[PlanLine]:
    """Return the lines of a fleet: its own, one for each machine that changes, and what should be known before."""
    lines = [_format_fleet_summary(fleet)]
    for change in fleet.machines:
        mark = LineMark.MEND if change.trouble else _MACHINE_MARKS[change.op]
        stops = f"{_format_job_count(change.stops)} running there: stopped and queued again" if change.stops else ""
        why = "; ".join(filter(None, (change.why, stops)))
        said = ": ".join(filter(None, ("replaced" if change.op == "replace" and not change.trouble else "", why)))
        lines.append(PlanLine(mark, f"{fleet.fleet}/{change.machine}" + (f": {said}" if said else "")))
        lines += [PlanLine(mark, text, detail=True) for text in change.trouble.splitlines()]
    if fleet.cost is not None:
        lines.append(PlanLine(LineMark.COST, f"{fleet.fleet}: {fleet.cost.words()}"))
    return lines + [PlanLine(LineMark.NOTE, note) for note in fleet.notes]


def _format_fleet_summary(fleet: FleetPlan) -> PlanLine:
    if fleet.agents is None:
        work = f"{fleet.fleet}: at most {_format_job_count(fleet.jobs)} to run"
        return PlanLine(LineMark.FLEET, f"{work}; agents and machines were not looked at")
    agents = f"{fleet.agents or 'no'} agent{'s' * (fleet.agents != 1)}"
    work = f"{fleet.fleet}: {_format_job_count(fleet.jobs)} to run, {agents} at work"
    if fleet.after is None:
        return PlanLine(LineMark.FLEET, work + (", to be started" if fleet.changes else ""))
    if fleet.before == fleet.after:
        return PlanLine(LineMark.FLEET, f"{work}, machines stay {fleet.after}")
    return PlanLine(LineMark.FLEET, f"{work}, machines {fleet.before} → {fleet.after}")


def format_gone_sweeps(plan: Plan) -> list[PlanLine]:
    """Return the lines of sweeps that have no spec any more: what runs of them, and what becomes of it."""
    lines = []
    for gone in plan.gone:
        counts = [
            f"{count:,} {what}" for count, what in ((gone.running, "running"), (gone.waiting, "waiting")) if count
        ]
        said = f"sweep {gone.name}: its spec is gone ({', '.join(counts)})"
        lines.append(PlanLine(LineMark.REMOVED, f"{said}: cancelled" if gone.pruned else said))
        if gone.kept:
            lines.append(PlanLine(LineMark.MEND, f"sweep {gone.name} continues: {gone.kept}; `monkey cancel` ends it"))
        elif not gone.pruned:
            lines.append(PlanLine(LineMark.MEND, f"sweep {gone.name} continues: --prune cancels it"))
    return lines


def format_warnings(plan: Plan) -> list[PlanLine]:
    """Return what should be known before applying, and is of none of its sweeps and fleets."""
    return [PlanLine(LineMark.MEND, warning) for warning in plan.warnings]


def format_verdict(plan: Plan) -> str:
    """Return the last line: what applying would do, in a sentence."""
    if not plan.changes:
        return "No changes: " + summarize_plan(plan).removeprefix("nothing to do: ") + "."
    if not plan.observed:
        return f"Without the store: {summarize_plan(plan)}. Which jobs are new is unknown."
    stops = f" {_count_jobs(plan.released, 'running')} will be stopped." if plan.released else ""
    if plan.uprooted:
        stops += f" {_count_jobs(plan.uprooted, 'running')} on machines that go will be stopped and queued again."
    again = f" {_count_jobs(plan.redone, 'finished')} will be run again: see why above." if plan.redone else ""
    return f"Plan: {summarize_plan(plan)}.{again}{stops}"


def _count_jobs(count: int, state: str) -> str:
    return f"{count:,} {state} job{'s' * (count != 1)}"


def summarize_plan(plan: Plan) -> str:
    """Return the plan in one sentence: "24 new, 12 stale, 6 kept, 3 removed; 1.2 KiB to upload"."""
    totals = Counter[str]()
    for sweep in plan.accepted:
        totals.update(sweep.jobs.lots)
    parts = [", ".join(f"{count:,} {_LOTS.get(lot, lot)}" for lot, count in totals.items() if count) or "no jobs"]
    settings = sum(len(sweep.settings) for sweep in plan.accepted)
    if settings:
        parts.append("1 setting changes" if settings == 1 else f"{settings} settings change")
    if refused := len(plan.sweeps) - len(plan.accepted):
        parts.append("1 sweep is refused" if refused == 1 else f"{refused} sweeps are refused")
    if pruned := sum(gone.pruned for gone in plan.gone):
        parts.append("1 sweep is cancelled" if pruned == 1 else f"{pruned} sweeps are cancelled")
    for previews, end, ends in (
        (plan.ended, "is cancelled", "are cancelled"),
        (plan.continued, "continues", "continue"),
    ):
        if previews:
            parts.append(f"1 preview {end}" if len(previews) == 1 else f"{len(previews)} previews {ends}")
    parts += _count_machine_changes(plan)
    if size := sum(sweep.upload.bytes for sweep in plan.sweeps):
        parts.append(f"{format_size(size)} to upload" if plan.observed else f"{format_size(size)} of code")
    if costs := [fleet.cost for fleet in plan.rented if fleet.cost]:
        parts.append(f"machines are rented for {format_total_cost(costs)}")
    return "; ".join(parts) if plan.changes else "nothing to do: " + "; ".join(parts[: 1 + bool(refused)])


def _count_machine_changes(plan: Plan) -> list[str]:
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


def _describe_kept_jobs(sweep: SweepPlan) -> str:
    states = dict(sweep.jobs.kept_states)
    if "succeeded" in states:
        states["succeeded"] -= sum(sweep.jobs.elsewhere.values())
    told = [f"{states[state]:,} {state}" for state in _KEPT_STATES if states.get(state)]
    for name, count in sweep.jobs.elsewhere.items():
        told.append(f"{count:,} finished in sweep {name}" if name else f"{count:,} finished before")
    return _format_job_count(len(sweep.jobs.kept)) + (f" ({', '.join(told)})" if told else "")


def _describe_failed_jobs(sweep: SweepPlan) -> str:
    homes = sweep.jobs.failed_in.items()
    told = ", ".join(f"{count:,} in {f'sweep {name}' if name else 'an earlier revision'}" for name, count in homes)
    count = len(sweep.jobs.failed)
    runs = "apply does not run it" if count == 1 else "apply runs none"
    return f"{_format_job_count(count)} {sweep.jobs.ended_before} ({told}): {runs}"


def _describe_adoption(lot: AdoptedJobs) -> str:
    return f"{_format_job_count(len(lot.results))} adopted: {lot.why}"


def _describe_replaced_states(states: Mapping[str, int]) -> str:
    return ", ".join(
        text.format(f"{states[state]:,}") for state, text in _REPLACED_STATE_TEXTS.items() if states.get(state)
    )


def _format_job_count(jobs: int) -> str:
    return "1 job" if jobs == 1 else f"{jobs:,} jobs"
