"""GPUs of machines that the jobs of a first apply would not see: a job sees those alone that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from monkey.apply.world.world import World
from monkey.fleet.fleet_port import Fleet
from monkey.fleet.gpus import list_gpus
from monkey.fleet.machine_capacity import format_count
from monkey.plan.change import Plan, SweepPlan
from monkey.spec.job.recipe import JobResources
from monkey.spec.yaml.document import parse_document
from monkey.spec.yaml.mistakes import Mistake


def add_gpu_warnings(plan: Plan, world: World) -> Plan:
    """Return the plan with a warning for each sweep that is new, and whose spec says nothing of the GPUs there.

    Each provider is looked at once: that takes seconds where this machine has many GPUs, and no time where it has none.
    """
    describe = cache(lambda name: _describe_gpus(world.fleet(name)))
    sweeps = [replace(sweep, notes=(*sweep.notes, *_warn(sweep, describe))) for sweep in plan.sweeps]
    return replace(plan, sweeps=tuple(sweeps))


def _warn(sweep: SweepPlan, describe: Callable[[str], str]) -> Iterator[str]:
    desired = sweep.desired
    begins = sweep.first and sweep.jobs.unfinished and sweep.refusal is None
    there = next(filter(None, map(describe, desired.settings.providers)), "") if begins else ""
    if not (there and desired.spec_text):
        return
    document = parse_document(desired.spec_text, desired.source)
    asked = document.data.get("resources", {})
    if "gpus" in asked:
        return
    line = document.place(Mistake(("resources" if asked else "command",), "", on_key=True)).line
    what = "`gpus: 1` in `resources:`" if asked else "`resources: {gpus: 1}`"
    yield (
        f"warning: {desired.source}:{line}: {there}, and no job asks for any, so jobs see none: write {what}; "
        "or `gpus: 0`, if they need none"
    )


def _describe_gpus(fleet: Fleet) -> str:
    """Say that machines of the fleet have GPUs; "" where they have none, or where only the machines know."""
    if fleet.type == "local":
        count = len(list_gpus())
        return f"this machine has {format_count(count, 'GPU')}" if count else ""
    if fleet.type == "ssh" or fleet.describe_shortage(JobResources(gpus=1)):
        return ""
    return f"machines of {fleet.name} have GPUs"
