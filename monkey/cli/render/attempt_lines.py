"""The attempts of a job: who took it, and how each ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from monkey.cli.terminal.text import Terminal, flatten_text, format_elapsed, lay_out_table
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, TornEntry
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.status.store_snapshot import JobState, JobView


def format_attempts(found: Sequence[AttemptRecord], seen: JobView, applied: float, to: Terminal) -> list[str]:
    """Return a line an attempt; `seen`: the job, as the journals tell of it, `applied`: when its sweep was applied.

    QUEUED is the time until an agent claimed the job, PREPARED that until its process began, RAN that of its process.
    """
    free = [applied, *(one.after.at for one in found if isinstance(one.after, Claim | EndEntry)), 0.0]
    rows = [
        [
            one.number,
            one.claim.agent.rpartition("/")[0],
            one.claim.sweep,
            format_elapsed(one.claim.at - since) if 0 < since < one.claim.at else "",
            *_when(one, seen),
            format_ending(one, seen),
        ]
        for one, since in zip(found, free, strict=False)
    ]
    return lay_out_table(["ATTEMPT", "AGENT", "SWEEP", "QUEUED", "PREPARED", "RAN", "ENDED", "HOW"], rows, to)


def parse_applied(at: str) -> float:
    """Return the time of a revision, which has it as ISO 8601, in seconds since the epoch; 0 where it has none."""
    return datetime.fromisoformat(at).timestamp() if at else 0.0


def _when(one: AttemptRecord, seen: JobView) -> list[str]:
    if isinstance(one.after, EndEntry):
        return [format_elapsed(one.after.prepared), format_elapsed(one.after.seconds), _ago(one.after.at)]
    if _journalled(one, seen):
        return ["", format_elapsed(seen.seconds), _ago(seen.ended or 0.0)]
    return ["", format_elapsed(one.lost_seconds) if one.lost_seconds else "", ""]


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
            "claimed": one.claim.at or None,
            **_ending_json(one.after),
            **({"seconds": one.lost_seconds} if one.lost_seconds else {}),
            "damaged": one.after.key if isinstance(one.after, TornEntry) else None,
        }
        for one in found
    ]


def _ending_json(entry: object) -> dict[str, Any]:
    if not isinstance(entry, EndEntry):
        return dict.fromkeys(("outcome", "reason", "prepared", "seconds", "started", "ended"))
    return {
        "outcome": str(entry.outcome),
        "reason": entry.reason,
        "prepared": entry.prepared,
        "seconds": entry.seconds,
        "started": round(entry.at - entry.seconds, 3) if entry.at else None,
        "ended": entry.at or None,
    }
