"""A plan as JSON: the document of `--json`, with which a saved plan begins.

The document is one object:

- `format`: 1. `changes`: whether there is anything to apply. `summary`: a sentence. `store`: the store's identity.
- `digest`: what `apply --expect` compares (`monkey.plan.digest`); null for `--no-store`
- `observed`: false for `--no-store`; then `changes` is null, `jobs` is {`unknown`}, `upload` is all of the code, and
  `agents` is null
- `sweeps`: a list of
  - `name`, `source` (the spec's path), `head` (last entry of its log, 0 for none), `revision` (the newest, or null),
    `changes`
  - `jobs`: {`new`, `stale`, `kept`, `removed`}, each a count
  - `states`: {`kept`, `removed`, `replaced`}, each {state: count}; replaced jobs are those that stale ones replace
  - `elsewhere`: {sweep or "": number of kept jobs that are finished there}
  - `failed_before`: {sweep or "": number of jobs that failed for good there, or were stopped}. They are new to the
    newest revision, and in none of the counts of `jobs`; an apply runs none of them
  - `reasons`: why jobs are stale, a list of {`kind`, `text`, `jobs`}; a job counts for each of its reasons
  - `lines`: the groups of jobs as people read them, a list of {`mark`, `text`}
  - `settings`: a list of {`name`, `before`, `after`}
  - `upload`: {`bytes`, `objects`} to send, code and datasets together
  - `code`: {`untracked`, `credentials`}
    - `untracked`: paths of files that are code, and that git does not track
    - `credentials`: a list of {`path`, `why`} of files that may hold credentials, and are no code
  - `datasets`: a list of {`name`, `hash`, `bytes` and `objects` to send, `here`: is it on the machine that plans?}
  - `adopted`: the number of jobs that take another's result
  - `adoptions`: those of them that this plan adds, a list of {`why`, `jobs`}, the latter a count
  - `dropped`: the number of jobs that lose an adopted result, and are run, unless they have failed before
  - `released`: the number of running jobs that an apply would stop
  - `expires`: when the sweep would expire if applied now, in seconds since the epoch; null for never
  - `refused`: null, or {`text`, `hint`}: why an apply leaves the sweep as it is, whatever it would change
  - `unmarked`: fleets whose queue lacks the sweep, as an apply was interrupted
  - `notes`, `warnings`: lists of sentences
- `gone`: sweeps of the store that have no spec here any more, a list of
  - `name`, `source` (the spec's path then), `revision`, `running`, `waiting` (numbers of jobs)
  - `pruned`: whether an apply cancels it; `kept`: why `--prune` would not, "" where it would
- `fleets`: a list of
  - `fleet` (its name), `type`, `jobs`, `agents`, `before` and `after` (numbers of machines), `changes`
  - `cost`: null, or the worst case of rented machines, with
    - `machines`, `kind`, `hours`, `until`, `price` (USD per hour of one, or null), `spot`, `limit` (max_cost, or null)
    - `rented` (until when today's machines are rented, or null), `unpriced` (kinds without a price)
    - `kept`: null, or {`machines`, `hours`, `until`} of those that stay for longer
    - `dearer` (whether it is dearer than what was applied), `total` (USD, or null)
  - `machines`: those that change, a list of {`op`, `machine`, `why`, `trouble`, `stops`, `part`}
    - `stops`: the number of jobs that run there, which are stopped and queued again
    - `part`: whether it is no machine, but a resource that machines come from
  - `notes`: a list of sentences
- `warnings`: sentences about none of these sweeps and fleets

A saved plan is the same object with more keys: see `monkey.plan.saved_plan`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.desired import UploadSize
from monkey.plan.digest import compute_plan_digest
from monkey.plan.text.lines import format_sweep_plan, summarize_plan

#: The format of the document, and of saved plans.
PLAN_FORMAT = 1


def serialize_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as the object described above, ready for `json.dumps`."""
    return {
        "format": PLAN_FORMAT,
        "changes": plan.changes if plan.observed else None,
        "observed": plan.observed,
        "summary": summarize_plan(plan),
        "digest": compute_plan_digest(plan) if plan.observed else None,
        "store": plan.store,
        "sweeps": [_serialize_sweep(sweep, plan.at) for sweep in plan.sweeps],
        "gone": [asdict(gone) for gone in plan.gone],
        "fleets": [_serialize_fleet(fleet) for fleet in plan.fleets],
        "warnings": list(plan.warnings),
    }


def _serialize_sweep(sweep: SweepPlan, now: float) -> dict[str, Any]:
    jobs = sweep.jobs
    reasons: Counter[tuple[str, str]] = Counter()
    for group in jobs.stale:
        reasons.update(dict.fromkeys(group.reasons, len(group.rows)))
    return {
        "name": sweep.name,
        "source": sweep.desired.source,
        "head": sweep.head,
        "revision": None if sweep.first or sweep.observed is None else sweep.observed.applied_at,
        "changes": sweep.changes,
        "jobs": jobs.counts,
        "states": {
            "kept": dict(jobs.kept_states),
            "removed": dict(jobs.removed_states),
            "replaced": dict(jobs.replaced_states),
        },
        "elsewhere": dict(jobs.elsewhere),
        "failed_before": dict(jobs.failed_in),
        "reasons": [{"kind": kind, "text": text, "jobs": count} for (kind, text), count in reasons.items()],
        "lines": [{"mark": line.mark, "text": line.text} for line in format_sweep_plan(sweep)],
        "settings": [change._asdict() for change in sweep.settings],
        "upload": sweep.upload._asdict(),
        "code": {
            "untracked": list(sweep.desired.untracked),
            "credentials": [{"path": path, "why": why} for path, why in sweep.desired.credentials.items()],
        },
        "datasets": [
            {"name": name, "hash": oid, "here": name in sweep.desired.datasets}
            | sweep.datasets.get(name, UploadSize())._asdict()
            for name, oid in sweep.desired.recipe.datasets.items()
        ],
        "adopted": len(sweep.adopted),
        "adoptions": [{"why": lot.why, "jobs": len(lot.results)} for lot in sweep.adoptions],
        "dropped": len(sweep.dropped),
        "released": sweep.released,
        "expires": sweep.expires(now),
        "refused": sweep.refusal._asdict() if sweep.refusal else None,
        "unmarked": list(sweep.unmarked),
        "notes": list(sweep.notes),
        "warnings": list(sweep.desired.warnings),
    }


def _serialize_fleet(fleet: FleetPlan) -> dict[str, Any]:
    return {
        "fleet": fleet.fleet,
        "type": fleet.type,
        "jobs": fleet.jobs,
        "agents": fleet.agents,
        "before": fleet.before,
        "after": fleet.after,
        "changes": fleet.changes,
        "cost": fleet.cost.to_json() if fleet.cost else None,
        "machines": [asdict(change) for change in fleet.machines],
        "notes": list(fleet.notes),
    }
