"""Refusals: the sweeps of a plan that an apply leaves as they are, each with its reason. The others are applied."""

from __future__ import annotations

from dataclasses import replace

from monkey.errors import SweepRefused
from monkey.plan.change import Plan, SweepPlan
from monkey.plan.commits.place import Refusal
from monkey.plan.explain import find_setting_changes
from monkey.plan.observed import AppliedRevision
from monkey.plan.preview.preview_ends import is_preview_end
from monkey.plan.text.sweep_notes import STAYS_CANCELLED

_FORCE = "`monkey apply --force REASON`"


def refuse_sweep(sweep: SweepPlan, force: str = "", *, unattended: bool = False) -> SweepPlan:
    """Return the plan of a sweep, refused where it would change what it must not.

    `force`: why it may, all the same. `unattended`: CI or sync applies, and what a person ended stays so.
    """
    if not sweep.revises:
        return sweep
    if sweep.desired.restores:
        return replace(sweep, forced=force)
    refusal = sweep.desired.misplaced or _hold_rollback(sweep) or (_hold_cancelled(sweep) if unattended else None)
    if refusal is None:
        return sweep
    if force:
        return replace(sweep, forced=force, notes=(*sweep.notes, f"forced ({force}): {refusal.text}"))
    return replace(sweep, refusal=refusal)


def _hold_cancelled(sweep: SweepPlan) -> Refusal | None:
    seen = sweep.observed
    if seen is None or seen.cancelled is None or seen.pruned or not seen.cancelled_by_person:
        return None
    if is_preview_end(sweep.name, seen.cancelled):
        return None
    by = f" by {seen.cancelled_by}" if seen.cancelled_by else ""
    why = "" if seen.cancelled == "cancelled" else f": {seen.cancelled}"  # what it is where no reason was given
    return Refusal(f"{STAYS_CANCELLED}{by}{why}", f"`monkey resume {sweep.name}`, or {_FORCE}")


def _hold_rollback(sweep: SweepPlan) -> Refusal | None:
    """Return a refusal where a rollback is in force, and the spec wants what it took back."""
    seen = sweep.observed
    if seen is None or seen.applied is None or not seen.applied.restores or seen.undone is None:
        return None
    if not _wants(sweep, seen.undone):
        return None
    why = f": {seen.applied.force}" if seen.applied.force else ""
    text = f"rolled back to revision {seen.applied.restores} by {seen.applied.author}{why}"
    return Refusal(text, f"that holds until a commit changes this spec; or {_FORCE}")


def _wants(sweep: SweepPlan, revision: AppliedRevision) -> bool:
    """Does the spec want what the revision wanted? What monkey.yaml adds to all specs makes no difference."""
    both = sweep.desired.settings, revision.settings
    ours, theirs = (replace(each, influx=None, notify=[], log_limit=0) for each in both)
    return sweep.desired.table.ids == revision.table.ids and not find_setting_changes(theirs, ours)


def check_refusals(plan: Plan, *, shown: bool = False) -> None:
    """Raise SweepRefused, with a line for each sweep that is refused; `shown`: the user has read why in the plan."""
    refused = [(sweep.name, sweep.refusal) for sweep in plan.sweeps if sweep.refusal is not None]
    if not refused:
        return
    if shown:
        names = ", ".join(repr(name) for name, _ in refused)
        raise SweepRefused(f"left as they are: {names}", hint="lines with `!` in the plan above say why")
    texts = [f"sweep {name!r}: {refusal.text}" for name, refusal in refused]
    raise SweepRefused("\n".join(texts), hint="; ".join(dict.fromkeys(refusal.hint for _, refusal in refused)))
