"""What a report holds: the answers that the page's server would give for some sweeps, of one reading of the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.concurrency import run_in_lanes
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.results.curves.curve_reader import READERS
from monkey.web.curve_cache import CurveCache, DrawnCurve
from monkey.web.job_data import serialize_job_page
from monkey.web.live_store import LiveStore
from monkey.web.page_data import serialize_failure_kinds, serialize_progress, serialize_project
from monkey.web.report.packed_curves import limit_points, pack_curves
from monkey.web.sweep_table import SweepTable

#: Metrics of one job whose curves are kept.
_METRICS = 200
#: Digits of a hash that the page shows.
_SHOWN = 12


@dataclass
class ReportData:
    """The answers, by the page's path, and the curves of each sweep."""

    answers: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: int = 0
    #: Points that each curve has at most.
    points: int = 0

    def count_curves(self) -> int:
        """Return the number of curves of all sweeps."""
        return sum(len(packed["of"]) for packed in self.curves.values())


async def gather_report(world: World, sweeps: Iterable[str]) -> ReportData:
    """Read the sweeps with all their jobs and curves. Raises NotFound, StoreError, OSError.

    Of the store, one state is read: of jobs that still run, what there is. Nothing depends on the clock.
    """
    live = LiveStore(world)
    snapshot = await live.snapshot()
    views = {name: find_sweep(snapshot, name) for name in sweeps}
    counted = sum(len(row.metrics) for name in views for row in live.tables[name].read_all())
    found = ReportData(points=limit_points(counted))
    project = serialize_project(live, snapshot, read_only=True)
    for view in views.values():
        await _add_sweep(found, live, view)
    shown = {name: project[name] for name in ("project", "read_only", "problems")}
    ends = (one["ended"] for one in found.answers.values() if isinstance(one, dict) and one.get("ended"))
    chosen = [one for one in project["sweeps"] if one["name"] in views]
    found.answers["sweeps"] = {**shown, "sweeps": chosen, "newest": max(ends, default=None)}
    return found


async def _add_sweep(found: ReportData, live: LiveStore, view: SweepView) -> None:
    name, table = view.state.name, live.tables[view.state.name]
    found.answers[f"sweep/{name}"] = _serialize_sweep(view, table, live.world.project.grafana)
    if table.counts.get(JobState.FAILED):
        found.answers[f"failures/{name}"] = serialize_failure_kinds(view)
    cache, read = CurveCache(live), dict[str, tuple[dict[str, Any], Mapping[str, DrawnCurve]]]()

    async def read_job(job: str) -> None:
        page, (curves, _) = await serialize_job_page(live.world, view, job), await cache.read(view, job)
        read[job] = _shorten_page(page), {metric: curves[metric] for metric in sorted(curves)[:_METRICS]}

    jobs = list(view.ids)
    await run_in_lanes(jobs, read_job, READERS)
    found.answers |= {f"job/{name}/{job}": read[job][0] for job in jobs}
    found.curves[name] = pack_curves({job: read[job][1] for job in jobs if read[job][1]}, found.points)
    found.jobs += len(jobs)


def _shorten_page(page: dict[str, Any]) -> dict[str, Any]:
    """Return a job's page without what a report does not show: the table has the metrics, and no hash is whole."""
    told = {name: value for name, value in page.items() if name != "metrics"}
    outputs = [{**one, "sha256": str(one["sha256"])[:_SHOWN]} for one in page["outputs"]]
    # From its start a page counts the seconds until now; a report has no now.
    return {**told, "outputs": outputs, "started": None}


def _serialize_sweep(view: SweepView, table: SweepTable, grafana: str) -> dict[str, Any]:
    rows = json.loads(table.encode_rows(0))
    rows["columns"]["started"] = [None] * len(rows["columns"]["started"])
    return {**serialize_progress(view, table, grafana), **rows}
