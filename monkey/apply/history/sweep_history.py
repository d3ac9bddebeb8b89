"""The history of a sweep for people: what was done to it, when, by whom, and from which commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monkey.apply.world.world import World
from monkey.plan.commits.job_counts import JobCounts, count_changed_jobs
from monkey.protocol.sweeps.log_entries import HistoryEntry, read_history
from monkey.protocol.sweeps.sweep_state import SweepState, make_missing_sweep
from monkey.spec.job.expires import format_utc_time


@dataclass(frozen=True)
class HistoryLine:
    """One entry of a sweep's log."""

    number: int
    #: "revision", "pause", "resume", "cancel", "retry", "extend" or "seen".
    kind: str
    #: ISO 8601, and a name; "" where the entry does not say.
    at: str = ""
    author: str = ""
    #: What `GitInfo` has; None for orders.
    git: Mapping[str, Any] | None = None
    #: Jobs that a revision changes; None for all else.
    jobs: JobCounts | None = None
    #: The revision whose content this one brings back; 0 for none.
    restores: int = 0
    #: Why, or what, in a few words.
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        about: dict[str, Any] = {"number": self.number, "kind": self.kind, "at": self.at, "author": self.author}
        about |= {"git": dict(self.git) if self.git else None, "jobs": self.jobs._asdict() if self.jobs else None}
        return about | {"restores": self.restores or None, "text": self.text}


async def list_history(world: World, name: str) -> list[HistoryLine]:
    """Return the entries of a sweep's log, the first one first. Raises NotFound, StoreError."""
    entries = await read_history(world.at, world.keys, world.signers, name)
    if not any(entry.after.revision for entry in entries):
        raise make_missing_sweep(entries[-1].after if entries else SweepState(name))
    return [_make_line(entry) for entry in entries]


def _make_line(entry: HistoryEntry) -> HistoryLine:
    order, revision = entry.order, entry.after.revision
    kind, at, author = order["kind"], order.get("at", ""), order.get("author", "")
    if kind == "revision" and revision is not None:
        counts = count_changed_jobs(entry.before.revision, revision)
        restores, why = revision.restores, revision.force
        return HistoryLine(entry.number, kind, at, author, revision.git, counts, restores, why)
    if kind == "seen":
        return HistoryLine(entry.number, kind, at, author, order["git"])
    text = order.get("reason", "")
    if kind == "retry":
        jobs = len(order.get("jobs", {}))
        text = "1 job" if jobs == 1 else f"{jobs:,} jobs"
    if kind == "extend":
        text = f"until {format_utc_time(order['until'])}"
    return HistoryLine(entry.number, kind, at, author, text=text)
