"""A saved plan: what `plan -o` writes, and with which `apply plan.json` compares a new plan.

It is the document of `monkey.plan.text.plan_document` with more keys. `saved` is what the plan is bound to: the store,
and `collect_bound_values`. `specs`, `keep_stale` and `prune` are the arguments with which to plan again, to compare.
`unwanted` names the fleets of which an apply removes the rest; it binds nothing, as another apply may do the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import PlanError, StalePlan
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.digest import collect_bound_values, describe_sweep_changes, hash_job_ids, list_equivalences
from monkey.plan.explain import explain_recipe_changes, find_setting_changes, format_setting_change
from monkey.plan.text.plan_document import PLAN_FORMAT, serialize_plan
from monkey.spec.job.recipe import Recipe, SweepSettings


@dataclass(frozen=True)
class SavedPlan:
    """A saved plan as it was read: the arguments to plan again with, and what the new plan must be bound to."""

    specs: tuple[str, ...]
    keep_stale: tuple[str, ...]
    prune: bool
    unwanted: frozenset[str]
    project: str
    store: str
    sweeps: Mapping[str, Mapping[str, Any]]
    pruned: Mapping[str, int]
    fleets: Mapping[str, Mapping[str, Any]]


def dump_saved_plan(plan: Plan, specs: Sequence[str], *, prune: bool = False) -> str:
    """Return the text of a saved plan.

    It is bound to the store, and to what its digest is made from. So it is not bound to sweeps that it does not change,
    nor to progress: jobs may begin and end between plan and apply.
    """
    bound = {"store": plan.store, **collect_bound_values(plan)}
    asked = {"specs": list(specs), "keep_stale": list(plan.keep_stale), "prune": prune, "saved": bound}
    asked["unwanted"] = [fleet.fleet for fleet in plan.unwanted]
    return json.dumps({**serialize_plan(plan), **asked}, indent=2, ensure_ascii=False) + "\n"


def parse_saved_plan(text: str, source: str = "the saved plan") -> SavedPlan:
    """Return the saved plan that `dump_saved_plan` wrote as `text`. Raises PlanError for anything else."""
    hint = "make it again: `monkey plan -o FILE`"
    try:
        data = json.loads(text)
        if isinstance(data, dict) and type(data.get("format")) is int and data["format"] > PLAN_FORMAT:
            raise PlanError(
                f"{source}: saved by a newer monkey (format {data['format']}, known is {PLAN_FORMAT})", hint=hint
            )
        bound = data["saved"]
        saved = SavedPlan(
            tuple(map(str, data["specs"])),
            tuple(map(str, data["keep_stale"])),
            data["prune"] is True,
            frozenset(map(str, data.get("unwanted", ()))),
            str(bound["project"]),
            str(bound["store"]),
            {str(name): dict(of) for name, of in bound["sweeps"].items()},
            {str(name): int(at) for name, at in bound["pruned"].items()},
            {str(name): dict(of) for name, of in bound["fleets"].items()},
        )
        for sweep in saved.sweeps.values():
            _check_binding(sweep)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise PlanError(f"{source} is not a saved plan: expected what `monkey plan -o` writes", hint=hint) from exc
    return saved


def check_saved_project(saved: SavedPlan, project: str) -> None:
    """Raise PlanError for a plan that was saved in another project."""
    if saved.project != project:
        raise PlanError(
            f"this plan is of project {saved.project!r}, here is {project!r}",
            hint="apply it in a clone of its project, or plan here: `monkey plan -o FILE`",
        )


def verify_saved_plan(saved: SavedPlan, fresh: Plan) -> None:
    """Raise StalePlan, with all differences, unless the plan `fresh`, made now, is the one that was saved."""
    bound, moved = collect_bound_values(fresh), list[str]()
    # One that was first made by this plan, or since, had no identity when the plan was saved.
    if saved.store and saved.store != fresh.store:
        moved.append("the store is another one")
    sweeps = {sweep.name: sweep for sweep in fresh.sweeps}
    moved += [f"sweep {name}: its spec is gone" for name in saved.sweeps if name not in sweeps]
    changed = [sweeps[name] for name in bound["sweeps"] if name not in saved.sweeps]
    moved += [f"sweep {sweep.name}: it changes now ({describe_sweep_changes(sweep)})" for sweep in changed]
    for name, then in saved.sweeps.items():
        if name in sweeps:
            moved += [f"sweep {name}: {what}" for what in _list_differences(then, sweeps[name])]
    for name in sorted(saved.pruned.keys() | bound["pruned"].keys()):
        if saved.pruned.get(name) != bound["pruned"].get(name):
            moved.append(f"sweep {name}: whether it is cancelled, as its spec is gone, or its newest revision changed")
    for fleet in sorted(saved.fleets.keys() | bound["fleets"].keys()):
        if saved.fleets.get(fleet) != bound["fleets"].get(fleet):
            moved.append(f"provider {fleet}: what its machines are made from, or cost at most, changed")
    if moved:
        lines = "\n".join(f"  {what}" for what in moved)
        raise StalePlan(
            f"since this plan was saved, something moved:\n{lines}", hint="plan again, look, and apply that"
        )


def _check_binding(bound: Mapping[str, Any]) -> None:
    """Raise an error that `parse_saved_plan` translates, unless `bound` is what a sweep is bound to."""
    Recipe.from_json(bound["recipe"])
    SweepSettings.from_json(bound["settings"])
    kinds = {"revision": int, "before": str, "reopened": bool, "equivalences": list}
    kinds |= {"jobs": int, "table": str, "code_files": dict, "adopted": dict}
    for name, kind in kinds.items():
        if type(bound[name]) is not kind:
            raise TypeError(name)


def _is_applied(bound: Mapping[str, Any], sweep: SweepPlan) -> bool:
    """Return whether the newest revision is the one that the saved plan would have appended."""
    seen = sweep.observed
    if seen is None or seen.applied is None or seen.applied_at <= bound["revision"]:
        return False
    applied = seen.applied
    return (
        applied.recipe.to_json() == Recipe.from_json(bound["recipe"]).to_json()
        and applied.settings.to_json() == SweepSettings.from_json(bound["settings"]).to_json()
        and hash_job_ids(applied.table.ids) == bound["table"]
    )


def _list_differences(bound: Mapping[str, Any], sweep: SweepPlan) -> list[str]:
    """Return the differences of one sweep from the saved plan, in words."""
    want = sweep.desired
    moved = _list_store_differences(bound, sweep)
    recipe = Recipe.from_json(bound["recipe"])
    reasons = explain_recipe_changes(recipe, want.recipe, bound["code_files"], want.code_files)
    moved += [reason.text for reason in reasons]
    if not reasons and bound["table"] != hash_job_ids(want.table.ids):
        moved.append(f"its parameters changed: {bound['jobs']:,} → {len(want.table):,} jobs")
    moved += [
        format_setting_change(change)
        for change in find_setting_changes(SweepSettings.from_json(bound["settings"]), want.settings)
    ]
    if bound["equivalences"] != json.loads(json.dumps(list_equivalences(want))):
        moved.append("its equivalences changed")
    # More may have finished since; fewer would run jobs again that the plan promised to keep.
    lost = sum(sweep.adopted.get(job) != result for job, result in bound["adopted"].items())
    if lost:
        moved.append(f"{lost:,} results that it would have adopted are no longer to be had")
    return moved or ([] if sweep.revises else ["nothing of it would change any more"])


def _list_store_differences(bound: Mapping[str, Any], sweep: SweepPlan) -> list[str]:
    """Return what others did to the sweep since: orders that change no revision, and reopen nothing, are none."""
    seen = sweep.observed
    revision, applied = (seen.applied_at, seen.applied) if seen else (0, None)
    if bound["revision"] != revision:
        why = "this plan was applied already" if _is_applied(bound, sweep) else "it was changed meanwhile"
        return [f"its newest revision went from {bound['revision']} to {revision}: {why}"]
    if bound["before"] != (hash_job_ids(applied.table.ids) if applied else ""):
        return [f"its revision {revision} is another one"]
    if bound["reopened"] != (seen is not None and seen.cancelled is not None):
        return ["it was opened again" if bound["reopened"] else "it was cancelled, and this plan would open it again"]
    return []
