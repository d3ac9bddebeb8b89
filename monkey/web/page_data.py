"""What the page shows of the project, its sweeps, machines and failures."""

from __future__ import annotations

import time
from typing import Any

from monkey.apply.watch.sweep_progress import count_unfinished, judge_counts
from monkey.plan.text.terminal_codes import read_log_line
from monkey.protocol.status.store_snapshot import AgentView, StoreSnapshot, SweepView
from monkey.results.causes.failure_report import serialize_failures
from monkey.spec.project.grafana_links import make_grafana_link
from monkey.web.live_store import LiveStore
from monkey.web.safe_json import make_json_number
from monkey.web.sweep_table import SweepTable

#: Seconds for which a machine that has gone is still shown.
_GONE = 24 * 3600.0
#: Kinds of failure that are shown.
_KINDS = 20


def serialize_project(live: LiveStore, snapshot: StoreSnapshot, *, read_only: bool) -> dict[str, Any]:
    """Return the project: sweeps with their counts, and what needs attention."""
    found = [
        serialize_progress(view, live.tables[name], live.world.project.grafana)
        for name, view in snapshot.sweeps.items()
        if view.state.revision is not None and name in live.tables
    ]
    return {
        "project": live.world.project.name,
        "store": live.world.at.url,
        "read_only": read_only,
        "version": live.version,
        "trouble": live.trouble,
        "problems": snapshot.problems,
        "agents": sum(agent.alive for agent in snapshot.agents),
        "sweeps": sorted(found, key=lambda one: str(one["applied"]), reverse=True),
    }


def serialize_progress(view: SweepView, table: SweepTable, grafana: str) -> dict[str, Any]:
    """Return how far a sweep is, and who applied it; `grafana`: the URL of Grafana, or ""."""
    state, revision = view.state, view.state.revision
    assert revision is not None  # only sweeps with one have a table
    counts, rate = table.counts, table.pace.rate
    left = count_unfinished(counts)
    settings, git = revision.settings, revision.git or {}
    since = revision.at_seconds
    return {
        "name": state.name,
        "standing": str(judge_counts(counts)),
        "counts": counts,
        "jobs": sum(counts.values()),
        "paused": state.paused,
        "cancelled": state.cancelled,
        "cancelled_by": state.cancelled_by,
        "goal": state.goal,
        "expires": state.expires,
        "over": view.over,
        "rate": rate,
        "eta": left / rate if rate and left else None,
        "revision": state.revision_at,
        "applied": revision.at,
        "author": revision.author,
        "source": revision.source,
        "commit": str(git.get("commit", ""))[:12],
        "dashboard": make_grafana_link(grafana, state.name, since=since),
        "metric": settings.metric,
        "maximize": settings.maximize,
        "providers": settings.providers,
        "fail_fast": settings.fail_fast,
    }


def serialize_machines(snapshot: StoreSnapshot) -> list[dict[str, Any]]:
    """Return the agents that live, and those that went lately, with how busy their machines are."""
    now = time.time()
    shown = [agent for agent in snapshot.agents if agent.alive or now - agent.at < _GONE]
    return [_serialize_agent(agent) for agent in sorted(shown, key=lambda one: (not one.alive, one.id))]


def _serialize_agent(agent: AgentView) -> dict[str, Any]:
    system, running = agent.system, agent.vitals.get("running", ())
    gpus = system.get("gpus")
    return {
        "id": agent.id,
        "fleet": agent.fleet,
        "machine": agent.machine,
        "alive": agent.alive,
        "left": agent.left,
        "heard": make_json_number(agent.at),
        "jobs": agent.jobs,
        "alert": "; ".join(filter(None, (agent.alert, agent.trouble))),
        "cpu": make_json_number(system.get("cpu")),
        "memory": make_json_number(system.get("memory")),
        "gpus": [make_json_number(percent) for percent in (gpus if isinstance(gpus, list) else ())],
        "running": [
            {"job": one.get("job"), "sweep": one.get("sweep")}
            for one in (running if isinstance(running, list) else ())
            if isinstance(one, dict)
        ],
    }


def serialize_failure_kinds(view: SweepView) -> list[dict[str, Any]]:
    """Return the kinds of failure of a sweep, the commonest first, each with its first job and the end of its log.

    Slow: it looks at each failed job.
    """
    found = serialize_failures(view, _KINDS)
    return [{**kind, "jobs": len(kind["jobs"]), **_serialize_first(view, kind["jobs"][0])} for kind in found]


def _serialize_first(view: SweepView, job: str) -> dict[str, Any]:
    return {"job": job, "tail": [read_log_line(line) for line in view.view(job).log_tail[-10:]]}
