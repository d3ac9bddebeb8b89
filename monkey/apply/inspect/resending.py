"""Making InfluxDB's copy of a sweep's metrics again, from the store: the same points as its agents sent.

What a job logged lies in the store with what else its attempts left; when they were claimed and ended stands in its
log. Both make the points that agents made of them, so that those which InfluxDB has are written again, and are no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from monkey.apply.inspect.job_history import (
    cut_history,
    read_attempts,
    read_job_points,
    write_states,
)
from monkey.apply.inspect.revision_points import write_applied_revision
from monkey.apply.world.world import World
from monkey.errors import CorruptObject, KeyMissing, MonkeyError, NotFound
from monkey.metrics.influx.influx_points import make_metric_tags, parse_agent_machine, write_system_point
from monkey.metrics.records import RecordCut, Records
from monkey.metrics.usage import USAGE_FILE
from monkey.protocol.entries import EndEntry
from monkey.protocol.record.end_files_reading import read_end_files
from monkey.protocol.record.history_parts import HistoryPart, is_file_name, restore_end_files, restore_history
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.record.shipment import METRICS
from monkey.protocol.sweeps.sweep_log import list_revisions

if TYPE_CHECKING:
    from monkey.metrics.influx.influx_client import InfluxClient
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


async def backfill_sweep(world: World, sweep: str, influx: InfluxSettings, client: InfluxClient) -> BackfillResult:
    """Send all points of a sweep to `influx`, by this client; those that are there are written over.

    Raises NotFound, StoreError, and MonkeyError where InfluxDB does not take them.
    """
    revisions = await list_revisions(world.at, world.keys, world.signers, sweep)
    if not revisions:
        raise NotFound(f"there is no sweep {sweep!r} in the store", hint="`monkey list sweeps` names them")
    ids = list(dict.fromkeys(job for applied in revisions for job in applied.revision.table.ids))
    done = BackfillResult()
    sender = _Sender(influx, client, done)
    told = world.bars(f"metrics of {sweep}", 0, len(ids))
    gate = asyncio.Semaphore(READERS)
    newest = revisions[-1].revision

    async def send(job: str) -> None:
        async with gate:
            if job in newest.adopted:
                await sender.add(await read_job_points(world, job, revisions))
            attempts = await read_attempts(world, job)
            mine = [each for each in attempts if each.claim.sweep == sweep]
            done.attempts += len(mine)
            await sender.add(write_states(job, mine, revisions))
            if job in newest.rows and job not in newest.adopted and mine != attempts:
                await sender.add(await read_job_points(world, job, revisions))
            if mine:
                await _send_files(world, job, attempts, sender, done)
            told(1, 0)

    await asyncio.gather(*map(send, ids))
    await sender.add(write_applied_revision(revisions[-1]))
    await sender.flush()
    return done


async def _send_files(
    world: World, job: str, attempts: Sequence[AttemptRecord], sender: _Sender, done: BackfillResult
) -> None:
    """Send what the attempts logged, whichever sweep they ran for, and samples of what they used."""
    with tempfile.TemporaryDirectory(prefix="monkey-") as name:
        directory = Path(name).resolve()  # noqa: ASYNC240 - a link above it, as /tmp of macOS is, is no job's
        for each in attempts:
            await _fetch(world, job, each, directory)
        cuts = await asyncio.to_thread(cut_history, attempts, directory)
        for each in attempts:
            for path in sorted((directory / str(each.k)).iterdir()):
                await _send_file(path, job, each, cuts[each.k, path.name], sender, done)
            await _send_samples(world, job, each, sender)


async def _fetch(world: World, job: str, attempt: AttemptRecord, directory: Path) -> None:
    """Bring the metrics files of an attempt to `directory`/K."""
    if not isinstance(attempt.after, EndEntry):
        # What its agent brought to the store before it was killed, or lost its machine.
        await restore_history(world.at, world.keys, job, [HistoryPart(attempt.k, attempt.claim.agent, {})], directory)
        return
    place, prefix = directory / str(attempt.k), world.keys.out(job, attempt.k) + METRICS
    place.mkdir()
    if restore_end_files(await read_end_files(world.at, world.keys, job, attempt.k), place):
        return
    for item in await world.at.list(prefix):
        if is_file_name(name := item.key.removeprefix(prefix)):
            with contextlib.suppress(KeyMissing):  # removed since it was listed
                await world.at.get_file(item.key, place / name)


async def _send_file(
    path: Path, job: str, attempt: AttemptRecord, cut: RecordCut, sender: _Sender, done: BackfillResult
) -> None:
    claim = attempt.claim
    host = parse_agent_machine(claim.agent)
    records = Records(make_metric_tags(claim.sweep, job, attempt.number, host, path.name, claim.user), cut=cut)
    with path.open("rb") as file:
        while lines := await asyncio.to_thread(file.readlines, _PIECE):
            await sender.add(await asyncio.to_thread(records.convert, b"".join(lines)))
    done.garbage += records.garbage


async def _send_samples(world: World, job: str, attempt: AttemptRecord, sender: _Sender) -> None:
    with contextlib.suppress(KeyMissing, CorruptObject):
        data = (await read_end_files(world.at, world.keys, job, attempt.k)).samples
        if data is None:
            data = await world.at.get(f"{world.keys.out(job, attempt.k)}{USAGE_FILE}")
        await sender.add(b"".join(_sample(line, job, attempt.claim.agent) for line in data.splitlines()))


def _sample(line: bytes, job: str, agent: str) -> bytes:
    """Return the point of a sample; b"" for a line that is none."""
    fleet, host, *_ = [*agent.split("/"), "", ""]
    try:
        record = json.loads(line, parse_float=Decimal)
        fields = {str(name): float(value) for name, value in record["m"].items()}
        at = int(record["t"].scaleb(9))
        return write_system_point(fields, at, host=host, fleet=fleet, agent=f"{fleet}/{host}", job=job)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return b""


class _Sender:
    """Sends points in batches, one after the other."""

    def __init__(self, influx: InfluxSettings, client: InfluxClient, done: BackfillResult) -> None:
        self._influx, self._client, self._done = influx, client, done
        self._waiting: list[bytes] = []
        self._size, self._lock = 0, asyncio.Lock()

    async def add(self, lines: bytes) -> None:
        self._waiting.append(lines)
        self._size += len(lines)
        if self._size >= _BATCH:
            await self.flush()

    async def flush(self) -> None:
        parts = [b"".join(self._waiting)] if self._size else []
        self._waiting, self._size = [], 0
        async with self._lock:
            while parts:
                parts += await self._send(parts.pop())

    async def _send(self, lines: bytes) -> list[bytes]:
        """Send lines; returns the halves of what is to be sent in parts, since something in it is refused."""
        from monkey.metrics.influx.influx_client import InfluxDenied, InfluxUnavailable, LinesRefused

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
