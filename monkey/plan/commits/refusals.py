"""Refusals: the sweeps of a plan that an apply leaves as they are, each with its reason. The others are applied."""

from __future__ import annotations

from dataclasses import replace

from monkey.errors import SweepRefused
from monkey.plan.change import Plan, SweepPlan


def refuse_sweep(sweep: SweepPlan, force: str = "") -> SweepPlan:
    """Return the plan of a sweep, refused where it would change what it must not; `force`: why it may, all the same."""
    refusal = sweep.desired.misplaced if sweep.revises else None
    if refusal is None:
        return sweep
    if force:
        return replace(sweep, forced=force, notes=(*sweep.notes, f"forced ({force}): {refusal.text}"))
    return replace(sweep, refusal=refusal)


def check_refusals(plan: Plan) -> None:
    """Raise SweepRefused, with a line for each sweep that is refused."""
    refused = [(sweep.name, sweep.refusal) for sweep in plan.sweeps if sweep.refusal is not None]
    if not refused:
        return
    texts = [f"sweep {name!r} is refused: {refusal.text}" for name, refusal in refused]
    hints = dict.fromkeys(refusal.hint for _, refusal in refused)
    raise SweepRefused("\n".join(texts), hint="; or: ".join(hints) if len(hints) > 1 else next(iter(hints)))
