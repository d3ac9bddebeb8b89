"""Orders that the page gives: the same functions as the verbs call, signed with the key of the user who serves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monkey.apply.cost_limits import Agree
from monkey.apply.orders import OrderOutcome, cancel_sweep, pause_sweep, resume_sweep, retry_jobs
from monkey.apply.world.world import World
from monkey.errors import MonkeyError
from monkey.plan.cost import FleetCost, format_rentals

#: What an order does to a sweep, in the past.
ORDERS = {"pause": "paused", "resume": "resumed", "cancel": "cancelled", "retry": "tried again"}
#: Characters of a reason to cancel.
_REASON = 1000


class CostQuestion(MonkeyError):
    """The order would rent machines, and the user has not agreed to that."""


def make_agreement(agreed: object) -> Agree:
    """Return what agrees to exactly the rentals that the user was shown, in the same words."""

    def agree(costs: dict[str, FleetCost]) -> None:
        asked = format_rentals(costs)
        if agreed != asked:
            raise CostQuestion(asked)

    return agree


async def send_order(world: World, order: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Give an order to a sweep, and return what came of it. Raises NotFound, CostQuestion, MonkeyError."""
    sweep, agree = str(body.get("sweep", "")), make_agreement(body.get("agreed"))
    if order == "pause":
        done = await pause_sweep(world, sweep)
    elif order == "cancel":
        done = await cancel_sweep(world, sweep, str(body.get("reason", ""))[:_REASON])
    elif order == "resume":
        done = await resume_sweep(world, sweep, agree)
    else:
        jobs = body.get("jobs", [])
        chosen = [str(job) for job in jobs] if isinstance(jobs, list) else []
        done = await retry_jobs(world, sweep, chosen, agree=agree)
    return {"changed": done.changed, "jobs": done.jobs, "said": _describe_outcome(done, order)}


def _describe_outcome(done: OrderOutcome, order: str) -> str:
    name = done.view.state.name
    if not done.changed:
        return f"{name}: nothing to {order}"
    running = f", {done.running:,} of them running" if done.running else ""
    return f"{name}: {ORDERS[order]} ({done.jobs:,} job{'s' * (done.jobs != 1)}{running})"
