"""How syncs are doing: which commit of which branch was applied, and what hinders the next one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from monkey.cli.terminal.text import Terminal, flatten_text, format_elapsed
from monkey.protocol.status.sync_beat import SyncBeat, drop_past_beats

#: Characters of a commit that people see, and of a problem.
_COMMIT, _PROBLEM = 10, 500


def format_syncs(beats: Sequence[SyncBeat], to: Terminal, now: float | None = None) -> list[str]:
    """Return a line for each sync; `now` (default: this moment) in seconds since the epoch."""
    at = time.time() if now is None else now
    shown = drop_past_beats(beats, at)
    several = len({beat.remote for beat in shown}) > 1
    lines = []
    for beat in shown:
        remote = f" {beat.remote}" if several else ""
        text = f"git{remote}: {'; '.join([_applied(beat, at), *_newest(beat, at), *_previews(beat), *_life(beat, at)])}"
        stopped = beat.left and beat.interval > 0
        well = beat.outcome in ("applied", "applying", "started") and not beat.is_dead(at) and not stopped
        lines.append(to.paint(flatten_text(text), "" if well else "yellow"))
    return lines


def _applied(beat: SyncBeat, now: float) -> str:
    """Return "main abc1234567 applied 3m04s ago by sync on head1"."""
    if not beat.applied:
        return f"{beat.branch}: nothing was applied yet by sync on {beat.host}"
    ago = format_elapsed(now - beat.applied_at)
    return f"{beat.branch} {beat.applied[:_COMMIT]} applied {ago} ago by sync on {beat.host}"


def _newest(beat: SyncBeat, now: float) -> list[str]:
    """Return what became of the newest look, where that is more than that the commit was applied."""
    since = format_elapsed(now - beat.since)
    problem = _shorten(beat.problem)
    if beat.outcome == "away":
        return [f"the remote is away for {since}: {problem}"]
    if beat.outcome == "gone":
        return [f"branch {beat.branch} is gone for {since}: what was applied stays"]
    if beat.outcome == "applying":
        return [f"{beat.seen[:_COMMIT]} is being applied for {since}"]
    if not problem:
        return []
    if beat.outcome == "rewritten":
        return [f"{beat.seen[:_COMMIT]} refused for {since}: {problem}"]
    which = "" if beat.seen == beat.applied else f"{beat.seen[:_COMMIT]} "
    what = "" if beat.outcome == "applied" else f"{beat.outcome}: "
    return [f"{which}{what}{problem}"]


def _previews(beat: SyncBeat) -> list[str]:
    return [f"previews: {_shorten(beat.previews)}"] if beat.previews else []


def _shorten(text: str) -> str:
    """Return as many whole parts of a text as there is room for: half a hint says nothing."""
    if len(text) <= _PROBLEM:
        return text
    whole, _, rest = text[:_PROBLEM].rpartition("; ")
    return f"{whole}; …" if whole else f"{rest}…"


def _life(beat: SyncBeat, now: float) -> list[str]:
    """Return that a sync has ended, is dead, or hangs; nothing for one that lives."""
    if beat.left:
        what = "it was stopped" if beat.interval else "it looked once, and ended"
        return [f"{what} {format_elapsed(now - beat.at)} ago"]
    if beat.is_dead(now):
        return [f"it is dead: no heartbeat for {format_elapsed(now - beat.at)} (`monkey sync --forget` forgets it)"]
    if (
        beat.interval
        and beat.outcome not in ("applying", "away")
        and beat.at - max(beat.looked, beat.since) > 3 * beat.period
    ):
        return [f"its last look was {format_elapsed(now - max(beat.looked, beat.since))} ago"]
    return []


def serialize_syncs(beats: Sequence[SyncBeat], now: float | None = None) -> list[dict[str, Any]]:
    """Return the same for programs: all fields of each beat, and whether its sync is dead."""
    at = time.time() if now is None else now
    return [{**asdict(beat), "dead": beat.is_dead(at)} for beat in drop_past_beats(beats, at)]
