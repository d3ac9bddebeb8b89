"""What a job's log and files make in InfluxDB, from the store alone: the points that its agents sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monkey.apply.world.world import World
from monkey.metrics.history_summary import find_cuts
from monkey.metrics.influx.influx_points import parse_agent_machine
from monkey.metrics.influx.state_points import JobAttempt, SweepJob, write_beginning_point, write_end_point
from monkey.metrics.records import ALL_KEPT, NOTHING_KEPT, RecordCut
from monkey.protocol.entries import EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.record.history_parts import HistoryPart, parse_parts
from monkey.protocol.record.job_attempts import AttemptRecord, list_attempts
from monkey.protocol.sweeps.revision import NumberedRevision


async def read_attempts(world: World, job: str) -> list[AttemptRecord]:
    """Return the attempts at a job that began, the first one first. Raises StoreError."""
    log = EntryLog(world.keys.job_log(job))
    await log.refresh(world.at)
    return [each for each in list_attempts(log) if each.begun]


async def read_job_points(world: World, job: str, revisions: Sequence[NumberedRevision]) -> bytes:
    """Return the points of a job's last end, as a sweep that adopts it, or shares it, has them. Raises StoreError."""
    revision = revisions[-1].revision
    attempts = await read_attempts(world, revision.adopted.get(job, job))
    ended = [each for each in attempts if isinstance(each.after, EndEntry)]
    return write_states(job, ended[-1:], revisions)


def write_states(job: str, attempts: Sequence[AttemptRecord], revisions: Sequence[NumberedRevision]) -> bytes:
    """Return the points of the beginnings and ends of attempts, as the newest revision that had the job makes them."""
    applied = [each for each in revisions if job in each.revision.rows][-1]
    revision = applied.revision
    of = SweepJob(revision.sweep, applied.number, revision.table, revision.rows[job], revision.settings)
    lines = []
    for each in attempts:
        claim, end = each.claim, each.after if isinstance(each.after, EndEntry) else None
        whose = JobAttempt(each.number, parse_agent_machine(claim.agent), claim.user)
        if claim.at and each.after is not None:  # what runs is told by its agent
            began, logged = (claim.at + end.prepared, end.metrics) if end else (claim.at, {})
            lines.append(write_beginning_point(of, whose, began, each.k, logged))
        if end is not None:
            lines.append(write_end_point(of, whose, end, each.end_k))
    return b"".join(lines)


def cut_history(attempts: Sequence[AttemptRecord], directory: Path) -> dict[tuple[int, str], RecordCut]:
    """Return where each metrics file in `directory`/K is cut, by K and its name. Slow.

    What the newest attempt that has ended continues, and what it logged itself, is kept; all before it is not.
    """
    ended = [each for each in attempts if isinstance(each.after, EndEntry)]
    cuts = {}
    for each in attempts:
        over = bool(ended) and each.k < ended[-1].k
        for path in (directory / str(each.k)).glob("*"):
            cuts[each.k, path.name] = NOTHING_KEPT if over else ALL_KEPT
    if ended and isinstance(ended[-1].after, EndEntry):
        last, end = ended[-1], ended[-1].after
        places = {path.name: path.stat().st_size for path in (directory / str(last.k)).glob("*")}
        parts = [*parse_parts(end.history), HistoryPart(last.k, last.claim.agent, places)]
        cuts |= {place: cut for place, cut in find_cuts(parts, directory, None).items() if place[0] != last.k}
    return cuts
