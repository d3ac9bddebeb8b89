"""Jobs, sweeps, providers, machines, in tables and for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from monkey.apply.inspect.instances import InstanceRow
from monkey.cli.render.parameter_text import format_parameters
from monkey.cli.render.status_lines import explain_state, name_standing, serialize_sweep
from monkey.cli.terminal.text import Terminal, flatten_text, format_elapsed, format_plural, lay_out_table
from monkey.fleet.fleet_records import AuditFinding, TaggedResource
from monkey.plan.cost import format_dollars
from monkey.protocol.status.store_snapshot import JobState, JobView, SweepView
from monkey.results.failure_kinds import find_last_line
from monkey.spec.job.job_table import ParameterValue

#: Columns of how busy machines are; left out where no agent tells of one.
_LOAD = ("CPU", "MEMORY", "GPUS")
_COLOURS = {JobState.FAILED: "red", JobState.RUNNING: "cyan", JobState.FROZEN: "yellow", JobState.SUCCEEDED: "green"}


def _jobs(
    views: Sequence[SweepView], states: Collection[str]
) -> Iterator[tuple[SweepView, JobView, dict[str, ParameterValue]]]:
    for view in views:
        if view.state.revision is None:
            continue
        for job, parameters in view.state.revision.table.rows():
            if not states or view.where(job) in states:
                yield view, view.view(job), parameters


def format_jobs(views: Sequence[SweepView], states: Collection[str], to: Terminal) -> list[str]:
    """Return a line a job: which sweep's, how it is, with which parameters."""
    found = list(_jobs(views, states))
    if not found:
        return ["No such job."]
    many = len({view.state.name for view, _, _ in found}) > 1
    rows = [
        [
            *([view.state.name] if many else []),
            job.job,
            str(job.state) + (" (shared)" if job.shared else ""),
            job.failures or "",
            format_elapsed(job.seconds),
            format_parameters(parameters),
            ": ".join(filter(None, (explain_state(view, job), flatten_text(find_last_line(job))))),
        ]
        for view, job, parameters in found
    ]
    headers = [*(["SWEEP"] if many else []), "JOB", "STATE", "FAILURES", "TIME", "PARAMETERS", "REASON"]
    used = [i for i, head in enumerate(headers) if head in ("JOB", "STATE") or any(row[i] for row in rows)]
    colours = {i: _COLOURS.get(job.state, "") for i, (_, job, _) in enumerate(found)}
    return lay_out_table([headers[i] for i in used], [[row[i] for i in used] for row in rows], to, colours)


def serialize_job(view: SweepView, job: JobView, parameters: dict[str, ParameterValue]) -> dict[str, Any]:
    """Return one job for programs."""
    return {
        "sweep": view.state.name,
        "job": job.job,
        "state": str(job.state),
        "parameters": parameters,
        "attempt": job.number,
        "claim": job.attempt,
        "failures": job.failures,
        "agent": job.agent,
        "host": job.host,
        "ran_for": job.sweep,
        "shared": list(job.shared),
        "exit_code": job.exit_code,
        "reason": explain_state(view, job) if job.state in (JobState.CANCELLED, JobState.STOPPED) else job.reason,
        "seconds": job.seconds,
        "started": job.started,
        "ended": job.ended,
        "metrics": job.metrics,
        "outputs": job.outputs,
        "usage": job.usage,
    }


def serialize_jobs(views: Sequence[SweepView], states: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the jobs for programs, a dict each."""
    return (serialize_job(view, job, parameters) for view, job, parameters in _jobs(views, states))


def format_sweeps(views: Sequence[SweepView], to: Terminal) -> list[str]:
    """Return a line a sweep: its revision, who applied it when, how it stands."""
    if not views:
        return ["No sweep was applied yet; `monkey apply` does."]
    rows = []
    for view in views:
        revision, counts = view.state.revision, view.counts
        assert revision is not None  # sweeps without one were never applied
        rows.append(
            [
                view.state.name,
                view.state.revision_at,
                sum(counts.values()),
                name_standing(view, counts),
                revision.source,
                revision.at.replace("T", " ").removesuffix("+00:00"),
                revision.author,
            ]
        )
    return lay_out_table(["SWEEP", "REVISION", "JOBS", "STATE", "SPEC", "APPLIED (UTC)", "BY"], rows, to)


def serialize_sweeps(views: Sequence[SweepView]) -> list[dict[str, Any]]:
    """Return the sweeps for programs."""
    found = []
    for view in views:
        revision = view.state.revision
        assert revision is not None  # sweeps without one were never applied
        about = {"source": revision.source, "applied": revision.at, "author": revision.author, "git": revision.git}
        found.append({**serialize_sweep(view), **about})
    return found


def format_providers(counted: Sequence[tuple[str, str, int]], to: Terminal) -> list[str]:
    """Return a line a provider: its name, its type, how many agents of it live."""
    rows = [[name, kind, format_plural(count, "agent") if count else "none"] for name, kind, count in counted]
    return lay_out_table(["PROVIDER", "TYPE", "AGENTS"], rows, to)


def serialize_providers(counted: Sequence[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """Return the providers for programs."""
    return [{"name": name, "type": kind, "agents": count} for name, kind, count in counted]


def format_instances(found: Sequence[InstanceRow], to: Terminal) -> list[str]:
    """Return a line an agent, and one for each machine without any."""
    if not found:
        return ["There are no machines, and no agents; `monkey apply` starts them."]
    rows = [
        [
            row.fleet,
            row.machine,
            row.agent or "none",
            row.state,
            str(row.jobs),
            *(_percent(row.load.get(name)) for name in ("cpu", "memory")),
            " ".join(map(_percent, row.load.get("gpus", ()))),
            _heard(row.heard),
            row.about,
        ]
        for row in found
    ]
    colours = {i: "yellow" for i, row in enumerate(found) if row.state != "alive"}
    heads = ["PROVIDER", "MACHINE", "AGENT", "STATE", "JOBS", *_LOAD, "HEARD OF", "ABOUT"]
    used = [i for i, head in enumerate(heads) if head not in _LOAD or any(row[i] for row in rows)]
    return lay_out_table([heads[i] for i in used], [[row[i] for i in used] for row in rows], to, colours)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}%"


def _heard(seconds: float | None) -> str:
    return "" if seconds is None else f"{format_elapsed(seconds)} ago"


def serialize_instances(found: Sequence[InstanceRow]) -> list[dict[str, Any]]:
    """Return machines and agents for programs."""
    return [asdict(row) for row in found]


def format_findings(found: Sequence[tuple[str, AuditFinding]], to: Terminal) -> list[str]:
    """Return what an audit found, each with what to do."""
    if not found:
        return ["Nothing is astray."]
    lines = []
    for fleet, finding in found:
        lines.append(
            to.paint(f"! {flatten_text(fleet)}/{flatten_text(finding.machine)}: {flatten_text(finding.text)}", "yellow")
        )
        lines.append(to.paint(f"      {flatten_text(finding.hint)}", "dim"))
    return lines


def serialize_findings(found: Sequence[tuple[str, AuditFinding]]) -> list[dict[str, Any]]:
    """Return what an audit found for programs."""
    return [{"provider": fleet, **asdict(finding)} for fleet, finding in found]


def format_holdings(found: Sequence[tuple[str, TaggedResource]], to: Terminal) -> list[str]:
    """Return what clouds have of ours, by regions, with what it costs an hour: once by itself, and in all."""
    lines: list[str] = []
    for region in sorted({holding.region for _, holding in found}):
        here = [(fleet, holding) for fleet, holding in found if holding.region == region]
        unknown = any(holding.price is None for _, holding in here)
        known = format_dollars(sum(holding.price or 0.0 for _, holding in here))
        cost = f"{known} an hour" + (", and what nobody knows the price of" if unknown else "")
        lines.append(to.paint(f"{flatten_text(region)}: {format_plural(len(here), 'thing')}, {cost}", "bold"))
        rows = [[_whose(fleet, holding), holding.kind, holding.id, _price(holding.price)] for fleet, holding in here]
        lines += [*lay_out_table(["PROVIDER", "WHAT", "ID", "AN HOUR"], rows, to), ""]
    return lines


def _whose(fleet: str, holding: TaggedResource) -> str:
    """Return its provider; and its stack, where that is none of this project's here."""
    of = holding.of
    return fleet if of is None else f"{of.provider or '?'} (stack {of.stack or '?'})"


def _price(price: float | None) -> str:
    if price is None:
        return "not known"
    return format_dollars(price) if price else "nothing"


def serialize_holdings(found: Sequence[tuple[str, TaggedResource]]) -> list[dict[str, Any]]:
    """Return what clouds have of ours for programs."""
    return [{"provider": fleet, **asdict(holding)} for fleet, holding in found]
