"""Announcing a new revision of a sweep to InfluxDB: the newest point of each of its jobs becomes one of the revision.

Agents write the number of the newest revision into the points of jobs that begin and end. `apply` writes it into those
of jobs that have ended before. `monkey.metrics.influx.state_points` says what the numbers are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from monkey.apply.inspect.job_history import read_job_points
from monkey.apply.world.world import World
from monkey.errors import FleetError
from monkey.fleet.secret_values import SecretValues
from monkey.metrics.influx.state_points import write_membership_point, write_revision_point
from monkey.protocol.journal import LOST, SAVED, JournalRecord
from monkey.protocol.journal_index import JournalIndex
from monkey.protocol.sweeps.revision import NumberedRevision, Revision

if TYPE_CHECKING:
    from monkey.metrics.influx.influx_client import InfluxClient

#: Points in one request.
_BATCH = 5_000


async def announce_revision(world: World, number: int, revision: Revision) -> str:
    """Announce the revision to its InfluxDB, if it names one. Return why that failed, or ""."""
    from monkey.metrics.influx.influx_client import InfluxClient, InfluxDenied, InfluxUnavailable, LinesRefused

    influx = revision.settings.influx
    if influx is None:
        return ""
    try:
        client = await asyncio.to_thread(InfluxClient, influx, SecretValues().get(influx.secrets))
        try:
            await _send(world, NumberedRevision(number, revision), client)
        finally:
            client.close()
    except (FleetError, InfluxDenied, InfluxUnavailable, LinesRefused) as exc:
        return str(exc)
    return ""


async def _send(world: World, applied: NumberedRevision, client: InfluxClient) -> None:
    index = JournalIndex(world.at, world.keys)
    await index.refresh()
    revision, known = applied.revision, {}
    for job in revision.table.ids:
        if record := index.record(revision.adopted.get(job, job)):
            known[job] = record
    own = {job: record for job, record in known.items() if _has_point(revision, job, record)}
    waiting: list[bytes] = list(_write_members(applied, own))
    # Adopted, or run for another sweep: what InfluxDB has of it is of that one.
    for job in known.keys() - own.keys():
        waiting.append(await read_job_points(world, job, [applied]))
    while waiting:
        await asyncio.to_thread(client.write, b"".join(waiting[:_BATCH]))
        del waiting[:_BATCH]
    await asyncio.to_thread(client.write, write_applied_revision(applied))


def _has_point(revision: Revision, job: str, record: JournalRecord) -> bool:
    return job not in revision.adopted and record.sweep == revision.sweep


def _write_members(applied: NumberedRevision, known: Mapping[str, JournalRecord]) -> Iterator[bytes]:
    for job, record in known.items():
        if record.outcome not in (LOST, SAVED):
            yield write_membership_point(applied.revision.sweep, job, record.at, record.k, applied.number)


def write_applied_revision(applied: NumberedRevision) -> bytes:
    """Return the line that says that all jobs of the revision have points of it."""
    revision = applied.revision
    at = revision.at_seconds
    return write_revision_point(revision.sweep, applied.number, at, len(revision.table))
