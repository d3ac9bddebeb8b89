"""The digest of a plan: a short name for what it changes, that stays as long as a plan made again changes the same.

A saved plan is bound to the same values, which are

- the project's name
- of each sweep that gets a new revision: the revision that it starts from, and all that the new one will be
- of each sweep that is cancelled, as its spec is gone: its newest revision
- of each fleet that gets new or stale jobs of them, rents machines, or changes some: what monkey.yaml says of it

All that changes by itself is left out:

- the store: one that is not there yet has no identity, and is the same one once it is there
- the commit's name, versions of monkey and of the agent, the newest image, zones that a cloud adds, signers, times
- the progress of jobs, and with it the results that finished jobs leave to adopt
- pauses, retries and extensions
- uploads, which an apply repeats where they are missing
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from monkey.errors import UnexpectedPlan
from monkey.plan.change import FleetPlan, Plan, SweepPlan
from monkey.plan.cost import FleetCost
from monkey.plan.desired import DesiredSweep
from monkey.spec.job.job_id import dump_canonical_json

#: Hexadecimal digits of a digest.
DIGEST_DIGITS = 16
#: What a saved plan has besides, to say in words what moved.
_ONLY_SAVED = ("jobs", "code_files", "adopted")


def compute_plan_digest(plan: Plan) -> str:
    """Return the digest, 16 hexadecimal digits. A plan that changes nothing has one, too: that of nothing."""
    bound = collect_bound_values(plan)
    sweeps = {
        name: {key: value for key, value in of.items() if key not in _ONLY_SAVED}
        for name, of in bound["sweeps"].items()
    }
    text = dump_canonical_json({**bound, "sweeps": sweeps})
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:DIGEST_DIGITS]


def find_applied_sweeps(plan: Plan, digest: str) -> list[str]:
    """Return the sweeps, each with its newest revision, that a plan of this digest has revised, and no other since."""
    seen = [(sweep.name, sweep.observed) for sweep in plan.sweeps if sweep.observed and sweep.observed.applied]
    return [f"{name} (revision {one.applied_at})" for name, one in seen if one.applied and one.applied.plan == digest]


def is_done(plan: Plan, digest: str) -> bool:
    """Tell whether the plan of this digest was applied already, and nothing is left to be changed."""
    nothing = compute_plan_digest(Plan((), project=plan.project))
    return compute_plan_digest(plan) == nothing and bool(find_applied_sweeps(plan, digest))


def check_plan_digest(plan: Plan, expected: str) -> None:
    """Raise UnexpectedPlan unless the plan has the digest `expected`."""
    found = compute_plan_digest(plan)
    if found == expected:
        return
    bound = collect_bound_values(plan)
    changed = [f"sweep {sweep.name}: {describe_sweep_changes(sweep)}" for sweep in plan.sweeps if sweep.revises]
    changed += [f"sweep {name}: cancelled, as its spec is gone" for name in bound["pruned"]]
    changed += [f"provider {name}: its machines" for name in bound["fleets"]]
    lines = "\n".join(f"  {what}" for what in changed) or "  nothing"
    done = ", ".join(find_applied_sweeps(plan, expected))
    lines += f"\na part of the expected plan was applied already: {done}" if done else ""
    raise UnexpectedPlan(
        f"expected a plan with digest {expected}, found {found}, which changes:\n{lines}",
        hint="`monkey plan` shows it all: look, and agree to that"
        if changed
        else "nothing is left to agree to: `monkey plan` shows how things stand",
    )


def describe_sweep_changes(sweep: SweepPlan) -> str:
    """Return in a few words what a sweep would become, and from which revision."""
    lots = [f"{count:,} {lot}" for lot, count in sweep.jobs.lots.items() if count]
    settings = [change.name for change in sweep.settings]
    said = ", ".join([*lots, *settings]) or "no jobs"
    return said + (f", from revision {sweep.observed.applied_at}" if sweep.observed and sweep.observed.applied else "")


def collect_bound_values(plan: Plan) -> dict[str, Any]:
    """Return what the plan is bound to, as JSON has it: tuples are lists, and keys are strings."""
    changed = [sweep for sweep in plan.sweeps if sweep.revises]
    bound = {
        "project": plan.project,
        "sweeps": {sweep.name: _collect_of_sweep(sweep) for sweep in changed},
        "fleets": {fleet.fleet: _collect_of_fleet(fleet) for fleet in plan.fleets if is_counted(fleet, plan)},
        "pruned": {gone.name: gone.revision for gone in plan.gone if gone.pruned},
        "keep_stale": list(plan.keep_stale) if changed else [],
    }
    known: dict[str, Any] = json.loads(json.dumps(bound))
    return known


def is_counted(fleet: FleetPlan, plan: Plan) -> bool:
    """Tell whether the plan is bound to a fleet.

    A fleet that gets jobs counts although its machines may not change: another apply may have made them meanwhile.
    """
    if not fleet.inputs and fleet.cost is None:
        return False
    gets = any(
        fleet.fleet in sweep.desired.settings.providers
        for sweep in plan.sweeps
        if sweep.revises and (sweep.jobs.new or sweep.jobs.stale)
    )
    return gets or fleet.rents or any(not change.trouble for change in fleet.machines)


def hash_job_ids(ids: Sequence[str]) -> str:
    """Return the hash of a job table by the ids of its jobs."""
    return hashlib.sha256("".join(ids).encode()).hexdigest()


def list_equivalences(want: DesiredSweep) -> list[tuple[dict[str, str], str, dict[str, Any]]]:
    """Return what the spec declares to be no change, wherever in it that stands."""
    return [(dict(one.renamed), one.code, dict(one.default)) for one in want.equivalences]


def _collect_of_sweep(sweep: SweepPlan) -> dict[str, Any]:
    want, seen = sweep.desired, sweep.observed
    applied = seen.applied if seen else None
    return {
        "revision": seen.applied_at if seen else 0,
        # A number alone could be another store's. With the new table, these jobs also say which are removed.
        "before": hash_job_ids(applied.table.ids) if applied else "",
        "recipe": want.recipe.to_json(),
        "settings": want.settings.to_json(),
        "table": hash_job_ids(want.table.ids),
        "equivalences": list_equivalences(want),
        "reopened": seen is not None and seen.cancelled is not None,
        "jobs": len(want.table),
        "code_files": dict(want.code_files),
        "adopted": dict(sweep.adopted),
    }


def _collect_of_fleet(fleet: FleetPlan) -> dict[str, Any]:
    return {"type": fleet.type, "inputs": dict(fleet.inputs), "cost": _collect_of_cost(fleet.cost)}


def _collect_of_cost(cost: FleetCost | None) -> dict[str, Any] | None:
    """Return what bounds the cost; for how long machines are rented is said by the sweeps' `expires`."""
    if cost is None:
        return None
    return {
        "machines": cost.machines,
        "kind": cost.kind,
        "price": cost.price,
        "spot": cost.spot,
        "limit": cost.limit,
    }
