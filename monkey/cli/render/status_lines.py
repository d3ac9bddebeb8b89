"""How sweeps and agents are doing."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from monkey.apply.inspect.departed_machines import explain_departures
from monkey.apply.watch.sweep_progress import SweepProgress, WaitOutcome, judge_counts
from monkey.cli.render.apply_outcome import explain_expiry, explain_hold
from monkey.cli.render.failure_groups import format_failures
from monkey.cli.render.machine_usage import format_departed_telemetry, format_telemetry
from monkey.cli.render.syncs.sync_lines import format_syncs, serialize_syncs
from monkey.cli.terminal.text import Terminal, flatten_text, format_elapsed, format_plural, lay_out_table
from monkey.fleet.boot_failures import BootFailure
from monkey.fleet.boot_failures import format_boot_failures as given_up
from monkey.plan.advice import suggest_extension
from monkey.protocol.status.store_snapshot import AgentView, JobState, JobView, StoreSnapshot, SweepView
from monkey.protocol.status.sync_beat import SyncBeat
from monkey.spec.job.expires import format_utc_time
from monkey.spec.machines.fleet_name import find_provider_name
from monkey.spec.sweep.sweep_names import make_check_name, parse_check_name

#: Metrics that are named where values of them were no numbers.
METRICS = 3
#: Seconds before a sweep expires in which the command is named that gives it more time.
SOON = 3600.0
#: Columns of the table: state of jobs by heading. Frozen jobs run, as far as these counts go.
_COUNTED = {
    "DONE": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "RUNNING": JobState.RUNNING,
    "QUEUED": JobState.QUEUED,
}
#: Checks that are named once they have ended.
_CHECKS = 5
_UNENDED = (WaitOutcome.WORKING, WaitOutcome.PAUSED)
_COLOURS = {
    WaitOutcome.FAILED: "red",
    WaitOutcome.PAUSED: "yellow",
    WaitOutcome.CANCELLED: "yellow",
    WaitOutcome.EXPIRED: "yellow",
    WaitOutcome.SUCCEEDED: "green",
    WaitOutcome.STOPPED: "green",
}


def format_status(
    store: str,
    snapshot: StoreSnapshot,
    views: Sequence[SweepView],
    to: Terminal,
    boots: Sequence[BootFailure] = (),
    rented: Collection[str] = (),
    syncs: Sequence[SyncBeat] = (),
    queued: Collection[str] = (),
) -> list[str]:
    """Return sweeps with their counts, agents with when they were heard of last, and what needs attention.

    `boots`: machines that gave up; `rented`: providers whose machines need a while to come; `syncs`: their beats.
    `queued`: providers whose pilots wait in a queue.
    """
    counts = {view.state.name: view.counts for view in views}
    lines = [f"store {flatten_text(store)}", *format_syncs(syncs, to), ""]
    if views:
        lines += _sweeps(views, counts, to)
    else:
        lines.append("No sweep was applied yet; `monkey apply` does.")
    lines += ["", *_agents(snapshot, views, counts, rented, queued, to)]
    lines += [line for view in views for line in _time_left(view, counts[view.state.name])]
    lines += [line for view in views for line in _rolled_back(view)]
    lines += _told(views, counts, to)
    lines += [line for view in views for line in _nonfinite(view)]
    shared = _shared(views) if len(snapshot.sweeps) > 1 else {}
    lines += [
        flatten_text(f"{name}: {format_plural(count, 'job')} shared with other sweeps")
        for name, count in shared.items()
    ]
    wrong = [*map(flatten_text, [*snapshot.problems, *given_up(boots)]), *format_telemetry(snapshot.agents)]
    wrong += format_departed_telemetry(snapshot.agents)
    left = [view.state for view in views if judge_counts(counts[view.state.name]) is WaitOutcome.WORKING]
    wrong += map(flatten_text, explain_departures(snapshot.agents, {state.name: state for state in left}))
    if wrong:
        lines += ["", to.paint("Needs attention:", "yellow"), *(f"  {line}" for line in wrong)]
    return lines


def _told(views: Sequence[SweepView], counts: Mapping[str, Mapping[JobState, int]], to: Terminal) -> list[str]:
    """Return of one sweep what keeps it and what failed, as `apply` says it; of many, who tells that."""
    if len(views) == 1:
        one = SweepProgress(views[0], counts[views[0].state.name])
        kept = explain_hold(one)
        return (["", *kept] if kept else []) + format_failures(one, to)
    names = {view.state.name: explain_expiry(view, counts[view.state.name]) for view in views}
    over = [f"{name}: {left}; {suggest_extension(name)}." for name, left in names.items() if left]
    failed = [(name, seen[JobState.FAILED]) for name, seen in counts.items() if seen.get(JobState.FAILED)]
    lines = [f"{name}: {format_plural(jobs, 'job')} failed; `monkey status {name}` says why." for name, jobs in failed]
    return ["", *map(flatten_text, over + lines)] if over or lines else []


def _time_left(view: SweepView, counts: Mapping[JobState, int]) -> list[str]:
    """Return when a sweep that is worked on expires, and what gives it more time where that is soon."""
    ends = view.state.expires
    if ends is None or not view.active or judge_counts(counts) is not WaitOutcome.WORKING:
        return []
    left = ends - time.time()
    more = f"; {suggest_extension(view.state.name)} for longer" if left < SOON else ""
    return [flatten_text(f"{view.state.name}: expires at {format_utc_time(ends)}, in {format_elapsed(left)}{more}.")]


def _rolled_back(view: SweepView) -> list[str]:
    """Return to which revision a sweep was rolled back, if that is in force: commits of before do not undo it."""
    now = view.state.revision
    if now is None or not now.restores:
        return []
    why = f": {now.force}" if now.force else ""
    held = "sync and `monkey apply` leave it so until a commit changes its spec"
    return [flatten_text(f"{view.state.name}: rolled back to revision {now.restores} by {now.author}{why}; {held}.")]


def _nonfinite(view: SweepView) -> list[str]:
    name, found = view.state.name, view.nonfinite
    told = [f"{metric} in {format_plural(jobs, 'job')}" for metric, jobs in sorted(found.items())]
    more = f", and {format_plural(len(told) - METRICS, 'more metric')}" if len(told) > METRICS else ""
    if not told:
        return []
    return [
        flatten_text(
            f"{name}: NaN or infinite values of {', '.join(told[:METRICS])}{more}; `monkey info JOB` counts them."
        )
    ]


def _sweeps(views: Sequence[SweepView], counts: Mapping[str, Mapping[JobState, int]], to: Terminal) -> list[str]:
    rows, colours, columns = [], {}, dict(_COUNTED)
    if any(seen.get(JobState.STOPPED) for seen in counts.values()):
        columns["STOPPED"] = JobState.STOPPED
    for i, view in enumerate(views):
        seen = counts[view.state.name]
        told = [seen.get(state, 0) for state in columns.values()]
        told[2] += seen.get(JobState.FROZEN, 0)
        rows.append([view.state.name, sum(seen.values()), *told, name_standing(view, seen)])
        colours[i] = _COLOURS.get(judge_counts(seen), "")
    return lay_out_table(["SWEEP", "JOBS", *columns, "STATE"], rows, to, colours)


def take_ended_checks(views: Sequence[SweepView]) -> tuple[list[SweepView], list[str]]:
    """Return the sweeps without the checks that have ended, and what is to be said of these."""
    checks = {check: view for view in views if (check := parse_check_name(view.state.name))}
    ended = [make_check_name(*check) for check in sorted(checks) if judge_counts(checks[check].counts) not in _UNENDED]
    if not ended:
        return list(views), []
    earlier = f" and {len(ended) - _CHECKS:,} earlier ones" if len(ended) > _CHECKS else ""
    note = f"Checks that have ended: {', '.join(ended[-_CHECKS:])}{earlier}"
    shown = [view for view in views if view.state.name not in ended]
    return shown, ["", f"{note}; `monkey rerun --show NAME` has their verdicts."]


def name_standing(view: SweepView, counts: Mapping[JobState, int]) -> str:
    """Return the sweep's state in a word or two."""
    if view.state.cancelled is not None:
        what = "stopped" if view.state.goal else "cancelled"
        return f"{what}: {flatten_text(view.state.cancelled)}" if view.state.cancelled != "cancelled" else what
    if view.state.paused:
        return "paused"
    if counts.get(JobState.EXPIRED):
        return "expired"
    if counts.get(JobState.FROZEN):
        return "frozen: its agent cannot reach the store"
    return str(judge_counts(counts))


def explain_state(view: SweepView, job: JobView) -> str:
    """Return why a job stands where it does: the sweep's reason where that was cancelled, else its last attempt's."""
    if job.state is JobState.CANCELLED or (job.state is JobState.STOPPED and view.met(job.job) is None):
        return name_standing(view, {})
    return flatten_text((job.reason or "").partition("\n")[0])


def _agents(
    snapshot: StoreSnapshot,
    views: Sequence[SweepView],
    counts: Mapping[str, Mapping[JobState, int]],
    rented: Collection[str],
    queued: Collection[str],
    to: Terminal,
) -> list[str]:
    alive = [agent for agent in snapshot.agents if agent.alive]
    if not alive:
        left = [view.state.revision for view in views if judge_counts(counts[view.state.name]) is WaitOutcome.WORKING]
        if not left:
            return ["No agent is at work."]
        named = {find_provider_name(fleet) for of in left if of for fleet in of.settings.providers}
        if not named.isdisjoint(queued):
            told = "pilots may wait for a node, `monkey list instances` shows them; `monkey apply` asks for them"
            return [to.paint(f"No agent is at work; {told}.", "yellow")]
        if not named.isdisjoint(rented):
            told = "rented machines take minutes to come, `monkey list instances` shows them; `monkey apply` rents them"
            return [to.paint(f"No agent is at work; {told}.", "yellow")]
        return [to.paint("No agent is at work; `monkey apply` starts one.", "yellow")]
    rows = [[agent.id.rpartition("/")[0], format_last_heard(agent), agent.jobs] for agent in alive]
    return lay_out_table(["AGENT", "HEARD OF", "JOBS"], rows, to)


def format_last_heard(agent: AgentView) -> str:
    """Return how long ago the agent was heard of, by its clock and ours."""
    return f"{format_elapsed(time.time() - agent.at)} ago"


def _shared(views: Sequence[SweepView]) -> dict[str, int]:
    """Count the jobs of each sweep that another one wants too."""
    ids = {view.state.name: set(view.ids) for view in views}
    shared = {}
    for name, own in ids.items():
        others: set[str] = set().union(*(theirs for other, theirs in ids.items() if other != name))
        if count := len(own & others):
            shared[name] = count
    return shared


def serialize_status(
    store: str,
    snapshot: StoreSnapshot,
    views: Sequence[SweepView],
    boots: Sequence[BootFailure] = (),
    syncs: Sequence[SyncBeat] = (),
) -> dict[str, Any]:
    """Return the same for programs: `sweeps`, `agents`, `problems`, `boots`, `syncs`."""
    shared = _shared(views)
    return {
        "store": store,
        "sweeps": [serialize_sweep(view, shared.get(view.state.name, 0)) for view in views],
        "agents": [
            {
                "id": agent.id,
                "fleet": agent.fleet,
                "alive": agent.alive,
                "at": agent.at,
                "jobs": agent.jobs,
                "alert": agent.alert,
                "metrics": agent.vitals.get("metrics", []),
            }
            for agent in snapshot.agents
        ],
        "problems": snapshot.problems,
        "boots": [asdict(boot) for boot in boots],
        "syncs": serialize_syncs(syncs),
    }


def serialize_sweep(view: SweepView, shared: int = 0) -> dict[str, Any]:
    """Return one sweep as `status` and `list sweeps` tell it to programs."""
    counts = view.counts
    return {
        "name": view.state.name,
        "revision": view.state.revision_at,
        "restores": view.state.revision.restores if view.state.revision is not None else 0,
        "jobs": sum(counts.values()),
        "states": {str(state): counts.get(state, 0) for state in JobState},
        "state": str(judge_counts(counts)),
        "paused": view.state.paused,
        "cancelled": view.state.cancelled,
        "expires": view.state.expires,
        "shared": shared,
        "nonfinite": dict(sorted(view.nonfinite.items())),
    }
