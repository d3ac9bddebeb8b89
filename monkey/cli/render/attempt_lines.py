"""The attempts of a job: who took it, and how each ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from monkey.apply.inspect.attempt_records import AttemptRecord
from monkey.cli.terminal.text import Terminal, flatten_text, format_elapsed, lay_out_table
from monkey.protocol.entries import ClaimEnd, EndEntry, TornEntry
from monkey.protocol.status.store_snapshot import JobState, JobView


def format_attempts(found: Sequence[AttemptRecord], seen: JobView, to: Terminal) -> list[str]:
    """Return a line an attempt; `seen`: the job, as the journals tell of it."""
    rows = [
        [one.number, one.claim.agent.rpartition("/")[0], one.claim.sweep, *_when(one, seen), format_ending(one, seen)]
        for one in found
    ]
    return lay_out_table(["ATTEMPT", "AGENT", "SWEEP", "ENDED", "TIME", "HOW"], rows, to)


def _when(one: AttemptRecord, seen: JobView) -> list[str]:
    if isinstance(one.after, EndEntry):
        return [_ago(one.after.at), format_elapsed(one.after.seconds)]
    return [_ago(seen.ended or 0.0), format_elapsed(seen.seconds)] if _journalled(one, seen) else ["", ""]


def format_ending(one: AttemptRecord, seen: JobView) -> str:
    """Return how an attempt ended, in a line."""
    if isinstance(one.after, EndEntry):
        return (
            "succeeded"
            if one.after.outcome is ClaimEnd.SUCCEEDED
            else flatten_text(f"{one.after.outcome}: {one.after.reason}")
        )
    if one.after is None:
        return "not ended"
    if not isinstance(one.after, TornEntry):
        return "lost with its agent"
    damaged = f"its end, {one.after.key}, was emptied or cut short"
    if not _journalled(one, seen):
        return f"not known: {damaged}"
    how = "succeeded" if seen.state is JobState.SUCCEEDED else flatten_text(seen.reason or "it ended")
    return f"{how}, says its agent's journal; {damaged}"


def _journalled(one: AttemptRecord, seen: JobView) -> bool:
    """Does a journal tell how an attempt ended whose own entry cannot be read? All counts go by the journal."""
    return isinstance(one.after, TornEntry) and seen.attempt == one.k and seen.ended is not None


def _ago(at: float) -> str:
    return f"{format_elapsed(time.time() - at)} ago" if at else ""


def serialize_attempts(found: Sequence[AttemptRecord]) -> list[dict[str, Any]]:
    """Return the attempts for programs; `claim` is the position in the job's log, which names files in the store."""
    return [
        {
            "attempt": one.number,
            "claim": one.k,
            "agent": one.claim.agent,
            "sweep": one.claim.sweep,
            **_ending_json(one.after),
            "damaged": one.after.key if isinstance(one.after, TornEntry) else None,
        }
        for one in found
    ]


def _ending_json(entry: object) -> dict[str, Any]:
    if not isinstance(entry, EndEntry):
        return dict.fromkeys(("outcome", "reason", "seconds", "started", "ended"))
    return {
        "outcome": str(entry.outcome),
        "reason": entry.reason,
        "seconds": entry.seconds,
        "started": round(entry.at - entry.seconds, 3) if entry.at else None,
        "ended": entry.at or None,
    }
