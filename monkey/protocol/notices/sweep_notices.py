"""Notices: the ends and stalls of sweeps, each under a name that all its senders give it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.status.agent_views import SweepView
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.protocol.sweeps.verdicts import Verdict, judge_job
from monkey.spec.yaml.units import format_duration

#: A notice as webhooks get it; "event" names it.
Notice = dict[str, Any]
#: Jobs that ended without success: the verdict on each, and the position of that in its log.
FinalJobs = Mapping[str, tuple[str, int]]


def make_notice(
    project: str, state: SweepState, kind: str, about: list[Any], reason: str, jobs: Mapping[str, int] | None = None
) -> Notice:
    """Return a notice; its name is a hash of its subject `about`, so that all give the same name to it alone."""
    name = hashlib.sha256(json.dumps([project, state.name, kind, about]).encode()).hexdigest()[:32]
    return {
        "event": name,
        "kind": kind,
        "project": project,
        "sweep": state.name,
        "revision": state.revision_at,
        "text": f"sweep {state.name} of {project} has {kind}: {reason}",
        "reason": reason,
        "jobs": jobs,
    }


def make_end_notice(project: str, state: SweepState, finals: FinalJobs | None) -> Notice | None:
    """Return the notice of a sweep that has ended; None for one that has not, or that a person cancelled.

    `finals`: None while jobs are left.
    """
    if state.revision is None:
        return None
    if state.cancelled is not None:
        kind = "finished" if state.goal else "failed"
        return make_notice(project, state, kind, list(state.cause), state.cancelled) if state.cause else None
    if finals is None:
        return None
    ended = sorted([job, *how] for job, how in finals.items())
    ids = state.revision.table.ids
    kinds = [how for _, how, _ in ended]
    counts = {"total": len(ids), "failed": kinds.count("failed"), "stopped": kinds.count("stopped")}
    counts["succeeded"] = len(ids) - len(ended)
    jobs = hashlib.sha256("".join(ids).encode()).hexdigest()
    told = ", ".join(f"{counts[how]:,} {how}" for how in ("succeeded", "stopped", "failed") if counts[how])
    kind = "failed" if counts["failed"] else "finished"
    return make_notice(project, state, kind, [jobs, ended], told, counts)


def make_expiry_notice(project: str, state: SweepState) -> Notice:
    """Return the notice of a sweep that has expired with jobs left."""
    why = f"it has expired with jobs left: `monkey extend {state.name} 6h` goes on"
    return make_notice(project, state, "stalled", [state.changed_at, "expired"], why)


def make_silence_notice(project: str, state: SweepState, after: float) -> Notice:
    """Return the notice of a sweep with jobs left, of which none has run for `after` seconds."""
    why = f"jobs are left, and no agent has run any for {format_duration(after)}"
    return make_notice(project, state, "stalled", [state.changed_at], why)


def find_final_jobs(view: SweepView) -> dict[str, tuple[str, int]] | None:
    """Return the sweep's jobs that ended without success, as its agents know them; None while jobs are left."""
    found: dict[str, tuple[str, int]] = {}
    adopted = view.state.revision.adopted if view.state.revision else {}
    for job in view.ids:
        if job in adopted:
            continue
        tally = view.tally(job)
        judged = judge_job(job, tally, view.state) if tally else Verdict.OPEN
        if tally is None or judged is Verdict.OPEN:
            return None
        if judged is Verdict.FAILED:
            found[job] = str(judged), tally.last_at
        elif judged is Verdict.STOPPED:
            found[job] = str(judged), max(tally.stopped)
    return found


def hash_way(kind: str, to: str) -> str:
    """Return the name of a channel in the keys of notices."""
    return hashlib.sha256(f"{kind} {to}".encode()).hexdigest()[:8]


def name_forge_way(repository: str) -> str:
    """Return the name of a forge's repository in the keys of notices, however its letters are written."""
    return hash_way("forge", repository.lower())


def is_told(log: EntryLog) -> bool:
    """Was the notice of this log sent, or given up?"""
    return isinstance(log.tail, EndEntry) and log.tail.outcome is not ClaimEnd.RELEASED


def is_posted(log: EntryLog) -> bool:
    """Was it sent? What agents gave up, `monkey notify` may still post: it has a token of its own."""
    return isinstance(log.tail, EndEntry) and log.tail.outcome is ClaimEnd.SUCCEEDED
