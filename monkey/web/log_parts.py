"""Parts of a job's log, from a byte on: of a running attempt what came so far, of one that has ended its file."""

from __future__ import annotations

from typing import NamedTuple

from monkey.apply.inspect.attempt_records import find_attempt, find_owner, read_attempts
from monkey.errors import KeyMissing
from monkey.protocol.record.end_files_reading import read_end_files
from monkey.protocol.record.packed_segments import read_log_segment
from monkey.protocol.record.shipment import LOG
from monkey.protocol.record.shipment_reading import TAIL_BYTES, ShippedFile
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.web.live_store import LiveStore

#: Segments that are read at most: agents write none below `TAIL_BYTES` but the last, and a stranger may write any.
_MOST_SEGMENTS = 16


class LogPart(NamedTuple):
    """Bytes of a log, the place where they begin, and whether more may come."""

    data: bytes
    start: int
    growing: bool

    def cut(self, at: int) -> LogPart:
        """Return what follows byte `at`; of a log that grows only whole lines."""
        skipped = max(0, at - self.start)
        data, start = self.data[skipped:], self.start + min(skipped, len(self.data))
        end = data.rfind(b"\n") + 1 if self.growing else len(data)
        return LogPart(data[: end or len(data)], start, self.growing)


async def read_log_part(live: LiveStore, view: SweepView, job: str, attempt: int, at: int) -> LogPart:
    """Return the log of a job from byte `at` on, at most its last mebibyte; `attempt`: its number, 0 for the newest.

    Raises NotFound, StoreError.
    """
    seen, owner = view.view(job), find_owner(view, job)
    k, agent = seen.attempt, seen.agent or ""
    if attempt:
        claimed = find_attempt(await read_attempts(live.world, view, job), attempt, job)
        k, agent = claimed.k, claimed.claim.agent
    if not k:
        return LogPart(b"", 0, growing=True)
    if k == seen.attempt and seen.state in (JobState.RUNNING, JobState.FROZEN):
        return (await _read_shipped(live, agent, owner, k, growing=True)).cut(at)
    ended = await read_end_files(live.world.at, live.world.keys, owner, k)
    if ended.log is not None:
        return LogPart(ended.log, 0, growing=False).cut(at)
    part = await _read_file(live, owner, k, at)
    if not part.data and not part.start:  # its agent may have been killed before it could bring it there
        part = await _read_shipped(live, agent, owner, k, growing=False)
    return part.cut(at)


async def _read_shipped(live: LiveStore, agent: str, job: str, k: int, *, growing: bool) -> LogPart:
    files = await live.shipped.read(agent, job, k) if agent else {}
    tail = files.get(LOG, ShippedFile())
    return LogPart(bytes(tail.data), tail.start, growing)


async def _read_file(live: LiveStore, job: str, k: int, at: int) -> LogPart:
    store, keys = live.world.at, live.world.keys
    segments = await store.list(f"{keys.out(job, k)}log/")
    start, place, parts = 0, sum(item.size for item in segments), list[bytes]()
    # Backwards: only a packed segment itself tells where it begins.
    for item in reversed(segments[-_MOST_SEGMENTS:]):
        place -= item.size
        try:
            segment = await read_log_segment(store, item.key)
        except KeyMissing:  # removed since it was listed
            continue
        begin = place if segment.at is None else segment.at
        if parts and segment.at is not None and begin + len(segment.data) < start:
            break  # words for what was left out are before the others
        start = begin
        parts.insert(0, segment.data)
        if start <= at or sum(map(len, parts)) >= TAIL_BYTES:
            break
    return LogPart(b"".join(parts), start, growing=False)
