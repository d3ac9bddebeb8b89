"""Orders that the page gives: the same functions as the verbs call, signed with the key of the user who serves it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from monkey.apply.cost_limits import Agree
from monkey.apply.orders import OrderOutcome, cancel_sweep, pause_sweep, resume_sweep, retry_jobs
from monkey.apply.world.lookup import find_sweep
from monkey.apply.world.world import World
from monkey.concurrency import run_in_lanes
from monkey.errors import MonkeyError
from monkey.plan.cost import FleetCost, format_rentals
from monkey.plan.explain import format_seconds
from monkey.protocol.entry_log import find_newest_checkpoint
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.results.curves.curve_reader import READERS

#: What an order does to a sweep, in the past.
ORDERS = {"pause": "paused", "resume": "resumed", "cancel": "cancelled", "retry": "tried again"}
#: Characters of a reason to cancel.
_REASON = 1000


class OrderQuestion(MonkeyError):
    """The order would rent machines or stop jobs, and the user has not agreed to that; the message asks."""


def make_agreement(agreed: object) -> Agree:
    """Return what agrees to exactly the rentals that the user was shown, in the same words."""

    def agree(costs: dict[str, FleetCost]) -> None:
        asked = f"Rent {format_rentals(costs)}?"
        if agreed != asked:
            raise OrderQuestion(asked)

    return agree


async def send_order(world: World, order: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Give an order to a sweep, and return what came of it. Raises NotFound, OrderQuestion, MonkeyError."""
    sweep, agree = str(body.get("sweep", "")), make_agreement(body.get("agreed"))
    if order == "pause":
        if not body.get("agreed"):
            await _ask_before_pause(world, sweep)
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


async def _ask_before_pause(world: World, sweep: str) -> None:
    """Raise OrderQuestion where a pause would stop jobs, with what is lost of these."""
    view = find_sweep(await world.reader().read(), sweep)
    running = [job for job in view.ids if view.where(job) in (JobState.RUNNING, JobState.FROZEN)]
    unsaved: list[str] = []

    async def look(job: str) -> None:
        if not await find_newest_checkpoint(world.at, world.keys.checkpoints(job)):
            unsaved.append(job)

    await run_in_lanes(running, look, READERS)
    if running and view.state.active:
        raise OrderQuestion(_describe_pause(view, len(running), unsaved))


def _describe_pause(view: SweepView, running: int, unsaved: Sequence[str]) -> str:
    asked = f"Pause {view.state.name}? Running jobs that stop: {running:,}. Without a checkpoint in the store:"
    if not unsaved:
        return f"{asked} none."
    now = time.time()
    lost = sum(max(0.0, now - (view.view(job).started or now)) for job in unsaved)
    did = f"What those did so far ({format_seconds(round(lost))})"
    return f"{asked} {len(unsaved):,}. {did} is lost, unless they saved it to MONKEY_CHECKPOINT_DIR."


def _describe_outcome(done: OrderOutcome, order: str) -> str:
    name = done.view.state.name
    if not done.changed:
        return f"{name}: nothing to {order}"
    running = f", {done.running:,} of them running" if done.running else ""
    return f"{name}: {ORDERS[order]} ({done.jobs:,} job{'s' * (done.jobs != 1)}{running})"
