"""A plan as JSON: the `--json` document, and the saved plan, with which `apply plan.json` compares a new plan.

The document is one object:

- `format`: 1. `changes`: whether there is anything to apply. `summary`: a sentence. `store`: the store's identity.
- `observed`: false for `--no-store`; then `changes` is null, `jobs` is {`unknown`}, `upload` is all of the code, and
  `agents` is null
- `sweeps`: a list of
  - `name`, `source` (the spec's path), `head` (last entry of its log, 0 for none), `revision` (the newest, or null),
    `changes`
  - `jobs`: {`new`, `stale`, `kept`, `removed`}, each a count
  - `states`: {`kept`, `removed`, `replaced`}, each {state: count}; replaced jobs are those that stale ones replace
  - `elsewhere`: {sweep or "": number of kept jobs that are finished there}
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
  - `dropped`: the number of jobs that lose an adopted result, and are run
  - `released`: the number of running jobs that an apply would stop
  - `expires`: when the sweep would expire if applied now, in seconds since the epoch; null for never
  - `refused`: null, or {`text`, `hint`}: why an apply leaves the sweep as it is, whatever it would change
  - `unmarked`: fleets whose queue lacks the sweep, as an apply was interrupted
  - `notes`, `warnings`: lists of sentences
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

The saved plan is the same object with three more keys. `saved` is what the plan is bound to: see `dump_saved_plan`.
`specs` and `keep_stale` are the arguments with which to plan again, to compare.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from monkey.errors import PlanError, StalePlan
from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.desired import UploadSize
from monkey.plan.explain import explain_recipe_changes, find_setting_changes, format_setting_change
from monkey.plan.text.lines import format_sweep_plan, summarize_plan
from monkey.spec.job.recipe import Recipe, SweepSettings

_SAVED_PLAN_FORMAT = 1


def serialize_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan as the object described above, ready for `json.dumps`."""
    return {
        "format": _SAVED_PLAN_FORMAT,
        "changes": plan.changes if plan.observed else None,
        "observed": plan.observed,
        "summary": summarize_plan(plan),
        "store": plan.store,
        "sweeps": [_serialize_sweep(sweep, plan.at) for sweep in plan.sweeps],
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


@dataclass(frozen=True)
class SavedPlan:
    """A saved plan as it was read: the arguments to plan again with, and what the new plan must be bound to."""

    specs: tuple[str, ...]
    keep_stale: tuple[str, ...]
    store: str
    sweeps: Mapping[str, Mapping[str, Any]]
    fleets: Mapping[str, Mapping[str, Any]]


def dump_saved_plan(plan: Plan, specs: Sequence[str], keep_stale: Collection[str] = ()) -> str:
    """Return the text of a saved plan.

    It is bound to the store, and to each sweep's log head, recipe, job table, settings, adopted results and hashes of
    code. It is bound to the inputs of machines, too. It is not bound to progress: jobs may begin and end between plan
    and apply.
    """
    bound = {
        "store": plan.store,
        "sweeps": {sweep.name: _bind_sweep(sweep) for sweep in plan.sweeps},
        "fleets": {fleet.fleet: _bind_machines(fleet) for fleet in plan.fleets},
    }
    head = {"specs": list(specs), "keep_stale": sorted(keep_stale), "saved": bound}
    return json.dumps({**serialize_plan(plan), **head}, indent=2, ensure_ascii=False) + "\n"


def parse_saved_plan(text: str, source: str = "the saved plan") -> SavedPlan:
    """Return the saved plan that `dump_saved_plan` wrote as `text`. Raises PlanError for anything else."""
    hint = "make it again: `monkey plan -o FILE`"
    try:
        data = json.loads(text)
        if isinstance(data, dict) and type(data.get("format")) is int and data["format"] > _SAVED_PLAN_FORMAT:
            raise PlanError(
                f"{source}: saved by a newer monkey (format {data['format']}, known is {_SAVED_PLAN_FORMAT})", hint=hint
            )
        bound = data["saved"]
        saved = SavedPlan(
            tuple(map(str, data["specs"])),
            tuple(map(str, data["keep_stale"])),
            str(bound["store"]),
            {str(name): dict(of) for name, of in bound["sweeps"].items()},
            {str(name): dict(of) for name, of in bound["fleets"].items()},
        )
        for sweep in saved.sweeps.values():
            _check_binding(sweep)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise PlanError(f"{source} is not a saved plan: expected what `monkey plan -o` writes", hint=hint) from exc
    return saved


def verify_saved_plan(saved: SavedPlan, fresh: Plan) -> None:
    """Raise StalePlan, with all differences, unless the plan `fresh`, made now, is the one that was saved."""
    moved = []
    if saved.store != fresh.store:
        moved.append("the store is another one")
    sweeps = {sweep.name: sweep for sweep in fresh.sweeps}
    moved += [f"sweep {name}: its spec is gone" for name in saved.sweeps if name not in sweeps]
    moved += [f"sweep {name}: its spec is not in the saved plan" for name in sweeps if name not in saved.sweeps]
    for name, bound in saved.sweeps.items():
        if name in sweeps:
            moved += [f"sweep {name}: {what}" for what in _list_differences(bound, sweeps[name])]
    fleets = {fleet.fleet: _bind_machines(fleet) for fleet in fresh.fleets}
    for fleet in sorted(saved.fleets.keys() | fleets.keys()):
        if saved.fleets.get(fleet) != fleets.get(fleet):
            moved.append(f"provider {fleet}: what its machines are made from changed")
    if moved:
        lines = "\n".join(f"  {what}" for what in moved)
        raise StalePlan(
            f"since this plan was saved, something moved:\n{lines}", hint="plan again, look, and apply that"
        )


def _bind_sweep(sweep: SweepPlan) -> dict[str, Any]:
    want = sweep.desired
    return {
        "head": sweep.head,
        "recipe": want.recipe.to_json(),
        "settings": want.settings.to_json(),
        "jobs": len(want.table),
        "table": _digest_ids(want.table.ids),
        "code_files": dict(want.code_files),
        "adopted": dict(sweep.adopted),
    }


def _bind_machines(fleet: FleetPlan) -> dict[str, Any]:
    # Through JSON, because that is what it is compared with: tuples become lists, numbers as keys strings.
    machines: dict[str, Any] = json.loads(json.dumps({"type": fleet.type, "inputs": dict(fleet.inputs)}))
    return machines


def _check_binding(bound: Mapping[str, Any]) -> None:
    """Raise an error that `parse_saved_plan` translates, unless `bound` is what `_bind_sweep` makes."""
    Recipe.from_json(bound["recipe"])
    SweepSettings.from_json(bound["settings"])
    kinds = {"head": int, "jobs": int, "table": str, "code_files": dict, "adopted": dict}
    for name, kind in kinds.items():
        if type(bound[name]) is not kind:
            raise TypeError(name)


def _digest_ids(ids: Sequence[str]) -> str:
    return hashlib.sha256("".join(ids).encode()).hexdigest()


def _is_applied(bound: Mapping[str, Any], sweep: SweepPlan) -> bool:
    """Return whether the newest revision is the one that the saved plan would have appended."""
    seen = sweep.observed
    if seen is None or seen.applied is None or seen.applied_at <= bound["head"]:
        return False
    applied = seen.applied
    return (
        applied.recipe.to_json() == Recipe.from_json(bound["recipe"]).to_json()
        and applied.settings.to_json() == SweepSettings.from_json(bound["settings"]).to_json()
        and _digest_ids(applied.table.ids) == bound["table"]
    )


def _list_differences(bound: Mapping[str, Any], sweep: SweepPlan) -> list[str]:
    """Return the differences of one sweep from the saved plan, in words."""
    want = sweep.desired
    moved = []
    recipe = Recipe.from_json(bound["recipe"])
    if bound["head"] != sweep.head:
        why = "this plan was applied already" if _is_applied(bound, sweep) else "it was changed meanwhile"
        moved.append(f"its log went on from entry {bound['head']} to {sweep.head}: {why}")
    reasons = explain_recipe_changes(recipe, want.recipe, bound["code_files"], want.code_files)
    moved += [reason.text for reason in reasons]
    if not reasons and bound["table"] != _digest_ids(want.table.ids):
        moved.append(f"its parameters changed: {bound['jobs']:,} → {len(want.table):,} jobs")
    moved += [
        format_setting_change(change)
        for change in find_setting_changes(SweepSettings.from_json(bound["settings"]), want.settings)
    ]
    # More may have finished since; fewer would run jobs again that the plan promised to keep.
    lost = sum(sweep.adopted.get(job) != result for job, result in bound["adopted"].items())
    if lost:
        moved.append(f"{lost:,} results that it would have adopted are no longer to be had")
    return moved
