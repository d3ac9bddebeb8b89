"""Making InfluxDB's copy of a sweep's metrics again, from the store: the same points as its agents sent.

What a job logged lies in the store with what else its attempts left; when they were claimed and ended stands in its
log. Both make the points that agents made of them, so that those which InfluxDB has are written again, and are no more.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from monkey.apply.world.world import World
from monkey.errors import KeyMissing, MonkeyError, NotFound
from monkey.metrics import names
from monkey.metrics.influx_points import make_metric_tags, parse_agent_machine, write_job_point, write_system_point
from monkey.metrics.records import Records
from monkey.metrics.usage import USAGE_FILE
from monkey.protocol.entries import Claim, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import spell_number
from monkey.protocol.sweeps.revision import Revision, decode_order

if TYPE_CHECKING:
    from monkey.metrics.influx_client import InfluxClient
    from monkey.spec.project.influx_settings import InfluxSettings

#: Jobs whose logs are read at once.
READERS = 16
#: Bytes of a file that are converted at once, and of points in one request.
_PIECE, _BATCH = 1 << 20, 1 << 20
#: Seconds after which it is tried again while InfluxDB does not answer, at most; tries before that is an error.
_MOST, _MAX_TRIES = 10.0, 8


@dataclass
class BackfillResult:
    """What was sent."""

    attempts: int = 0
    points: int = 0
    #: Points that InfluxDB will not have, and why the first of them.
    refused: int = 0
    why: str = ""
    #: Lines of metrics files that were no records.
    garbage: int = 0


class _File(NamedTuple):
    """A file that an attempt left: of what it logged, or of samples of what it used."""

    key: str
    size: int
    job: str
    agent: str
    #: Of what it logged; {} for samples.
    tags: dict[str, str]


@dataclass(frozen=True)
class _Job:
    """A job of the sweep: the points of its states, and the files that make others."""

    states: bytes
    attempts: int
    files: Sequence[_File]


async def backfill_sweep(world: World, sweep: str, influx: InfluxSettings, client: InfluxClient) -> BackfillResult:
    """Send all points of a sweep to `influx`, by this client; those that are there are written over.

    Raises NotFound, StoreError, and MonkeyError where InfluxDB does not take them.
    """
    revisions = await _revisions(world, sweep)
    if not revisions:
        raise NotFound(f"there is no sweep {sweep!r} in the store", hint="`monkey list sweeps` names them")
    jobs = await _jobs(world, sweep, revisions)
    done = BackfillResult(attempts=sum(job.attempts for job in jobs))
    sender = _Sender(influx, client, done)
    total = sum(file.size for job in jobs for file in job.files)
    told = world.bars(f"metrics of {sweep}", total, len(jobs))
    for job in jobs:
        await sender.add(job.states)
        for file in job.files:
            async for points in _points(world, file, done):
                await sender.add(points)
            told(1, file.size)
    await sender.flush()
    return done


async def _revisions(world: World, sweep: str) -> list[tuple[float, Revision]]:
    """Return all revisions of a sweep and when they were applied, the first one first."""
    found: list[tuple[float, Revision]] = []
    k = 0
    while True:
        k += 1
        key = world.keys.sweep_log(sweep) + spell_number(k)
        try:
            order = decode_order(key, await world.at.get(key))
        except KeyMissing:
            return found
        if order["kind"] == "revision":
            revision = Revision.from_json(order)
            found.append((datetime.fromisoformat(revision.at).timestamp() if revision.at else 0.0, revision))


async def _jobs(world: World, sweep: str, revisions: Sequence[tuple[float, Revision]]) -> list[_Job]:
    """Read the logs of all jobs that the sweep ever had, and list what they logged."""
    ids = list(dict.fromkeys(job for _, revision in revisions for job in revision.table.ids))
    gate = asyncio.Semaphore(READERS)
    told = world.bars(f"logs of {sweep}", 0, len(ids))

    async def one(job: str) -> _Job:
        async with gate:
            found = await _job(world, sweep, job, revisions)
            told(1, len(found.states))
            return found

    return list(await asyncio.gather(*map(one, ids)))


async def _job(world: World, sweep: str, job: str, revisions: Sequence[tuple[float, Revision]]) -> _Job:
    log = EntryLog(world.keys.job_log(job))
    await log.refresh(world.at)
    ours = [(at, revision) for at, revision in revisions if job in revision.rows]
    states, files = b"", list[_File]()
    attempts, mine, claim = 0, 0, None
    for k, entry in enumerate(log.entries, 1):
        if isinstance(entry, Claim):
            claim = entry
            attempts += not entry.continues
            if entry.continues or entry.sweep != sweep:
                continue
            mine += 1
            files += await _files(world, job, k, entry, attempts)
            states += _state(sweep, job, attempts, k, entry, entry, ours) if entry.at else b""
        elif isinstance(entry, EndEntry) and claim is not None and (entry.sweep or claim.sweep) == sweep:
            states += _state(sweep, job, attempts, k, claim, entry, ours)
    return _Job(states, mine, files)


async def _files(world: World, job: str, k: int, claim: Claim, attempt: int) -> list[_File]:
    found, prefix = [], world.keys.out(job, k)
    for item in await world.at.list(f"{prefix}metrics/"):
        name = item.key.removeprefix(f"{prefix}metrics/")
        if "/" not in name:
            tags = make_metric_tags(claim.sweep, job, attempt, parse_agent_machine(claim.agent), name)
            found.append(_File(item.key, item.size, job, claim.agent, tags))
    samples = await world.at.list(f"{prefix}{USAGE_FILE}")
    return found + [_File(item.key, item.size, job, claim.agent, {}) for item in samples]


def _state(
    sweep: str,
    job: str,
    attempt: int,
    k: int,
    claim: Claim,
    entry: Claim | EndEntry,
    revisions: Sequence[tuple[float, Revision]],
) -> bytes:
    """Return the point of a claim, or of the end of one, by the revision that there was then."""
    before = [revision for at, revision in revisions if at <= entry.at]
    revision = before[-1] if before else revisions[0][1]
    end = entry if isinstance(entry, EndEntry) else None
    return write_job_point(
        sweep,
        job,
        str(end.outcome) if end else names.RUNNING,
        entry.at,
        k,
        attempt=attempt,
        host=parse_agent_machine(claim.agent),
        parameters=revision.table.parameters(revision.rows[job]),
        reason=end.reason if end else "",
        exit_code=end.exit_code if end else None,
        seconds=end.total_seconds if end else None,
        summary=end.metrics if end else None,
        metric=revision.settings.metric,
        maximize=revision.settings.maximize,
        take=revision.settings.take,
        count=len(revision.table),
    )


async def _points(world: World, file: _File, done: BackfillResult) -> AsyncIterator[bytes]:
    """Yield the points of a file that an attempt left, piece by piece."""
    try:
        data = await world.at.get(file.key)
    except KeyMissing:  # removed since it was listed
        return
    if not file.tags:
        yield b"".join(_sample(line, file) for line in data.splitlines())
        return
    records, at = Records(file.tags), 0
    while at < len(data):
        end = data.find(b"\n", at + _PIECE) + 1 or len(data)
        yield await asyncio.to_thread(records.convert, data[at:end])
        at = end
    done.garbage += records.garbage


def _sample(line: bytes, file: _File) -> bytes:
    """Return the point of a sample; b"" for a line that is none."""
    fleet, host, *_ = [*file.agent.split("/"), "", ""]
    try:
        record = json.loads(line, parse_float=Decimal)
        fields = {str(name): float(value) for name, value in record["m"].items()}
        at, agent = int(record["t"].scaleb(9)), f"{fleet}/{host}"
        return write_system_point(fields, at, host=host, fleet=fleet, agent=agent, job=file.job)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return b""


class _Sender:
    """Sends points in batches, one after the other."""

    def __init__(self, influx: InfluxSettings, client: InfluxClient, done: BackfillResult) -> None:
        self._influx, self._client, self._done = influx, client, done
        self._waiting: list[bytes] = []
        self._size = 0

    async def add(self, lines: bytes) -> None:
        self._waiting.append(lines)
        self._size += len(lines)
        if self._size >= _BATCH:
            await self.flush()

    async def flush(self) -> None:
        parts = [b"".join(self._waiting)] if self._size else []
        self._waiting, self._size = [], 0
        while parts:
            parts += await self._send(parts.pop())

    async def _send(self, lines: bytes) -> list[bytes]:
        """Send lines; returns the halves of what is to be sent in parts, since something in it is refused."""
        from monkey.metrics.influx_client import InfluxDenied, InfluxUnavailable, LinesRefused

        count = lines.count(b"\n")
        for tries in range(1, _MAX_TRIES + 1):
            try:
                await asyncio.to_thread(self._client.write, lines)
                self._done.points += count
                return []
            except LinesRefused as exc:
                if count > 1 and exc.dropped < count:
                    return _halves(lines)
                self._done.refused += count
                self._done.why = self._done.why or str(exc)
                return []
            except InfluxDenied as exc:
                raise MonkeyError(f"{self._influx.url} does not take them: {exc}", hint="`monkey doctor`") from exc
            except InfluxUnavailable as exc:
                if tries == _MAX_TRIES:
                    hint = "`monkey doctor` tells more; what was sent is there, and the next backfill sends all again"
                    raise MonkeyError(f"{self._influx.url} does not answer: {exc}", hint=hint) from exc
                await asyncio.sleep(min(2.0**tries / 4, _MOST) * random.uniform(0.5, 1))
        return []


def _halves(lines: bytes) -> list[bytes]:
    middle = lines.find(b"\n", len(lines) // 2) + 1
    if middle in (0, len(lines)):
        middle = lines.rfind(b"\n", 0, len(lines) - 1) + 1
    return [lines[middle:], lines[:middle]]
