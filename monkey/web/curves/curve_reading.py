"""Curves of jobs: all values of a metric over its steps, from files of ended attempts and shipments of running ones."""

from __future__ import annotations

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from monkey.apply.inspect.attempt_records import find_owner, read_attempts
from monkey.errors import KeyMissing
from monkey.metrics.summary import MetricSummary
from monkey.protocol.entries import EndEntry
from monkey.protocol.record.history_parts import is_file_name, parse_parts
from monkey.protocol.record.shipment import METRICS
from monkey.protocol.record.shipment_reading import ShipmentReader, join_pieces
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.web.live_shipments import LiveShipments
from monkey.web.live_store import LiveStore

#: Jobs whose files are read at once.
READERS = 16
#: Points that are kept of attempts that have ended: 16 bytes each.
_KEPT_POINTS = 8_000_000


class Curve(NamedTuple):
    """One metric of one attempt, in the order of logging; a value without a step has its number as step."""

    steps: array[float]
    values: array[float]


class AttemptCurves(NamedTuple):
    """All curves of one attempt, and the first step that it logged."""

    curves: Mapping[str, Curve]
    first_step: int | None

    @property
    def points(self) -> int:
        """How many points they have."""
        return sum(len(curve.steps) for curve in self.curves.values())


def parse_curves(files: Mapping[str, bytes]) -> AttemptCurves:
    """Return the curves in the metrics files of one attempt. Slow."""
    found: dict[str, Curve] = {}

    def note(name: str, value: float, step: int | None) -> None:
        curve = found.get(name)
        if curve is None:
            curve = found[name] = Curve(array("d"), array("d"))
        with suppress(OverflowError):  # a whole number beyond floats: no place in a picture
            curve.values.append(float(value))
            curve.steps.append(len(curve.steps) if step is None else float(step))

    summary = MetricSummary(watch=note)
    for name, data in sorted(files.items()):
        summary.feed(data, name)
    summary.finish()
    return AttemptCurves(found, summary.first_step)


def join_curves(attempts: Sequence[AttemptCurves]) -> dict[str, Curve]:
    """Return the curves over attempts, the first one first: a later one takes the place of steps from its first on."""
    joined: dict[str, Curve] = {}
    until = float("inf")
    for each in reversed(attempts):
        for name, curve in each.curves.items():
            kept = [(step, value) for step, value in zip(*curve, strict=True) if step < until]
            after = joined.get(name, Curve(array("d"), array("d")))
            steps, values = array("d", (step for step, _ in kept)), array("d", (value for _, value in kept))
            joined[name] = Curve(steps + after.steps, values + after.values)
        until = min(until, float("inf") if each.first_step is None else each.first_step)
    return joined


class CurveReader:
    """The reader of a project's curves; what an attempt that has ended logged is read once."""

    def __init__(self, live: LiveStore, shipments: LiveShipments) -> None:
        """Have read nothing yet."""
        self._live, self._shipments = live, shipments
        self._gate = asyncio.Semaphore(READERS)
        self._ended: OrderedDict[tuple[str, int], AttemptCurves] = OrderedDict()
        self._points = 0

    async def read(self, view: SweepView, job: str) -> tuple[dict[str, Curve], bool]:
        """Return the curves of a job's newest attempt, with what it continues, and whether more may come."""
        seen, owner = view.view(job), find_owner(view, job)
        running = seen.state in (JobState.RUNNING, JobState.FROZEN)
        async with self._gate:
            earlier = await self._list_earlier(view, job, seen.attempt) if seen.number > 1 else []
            attempts = [await self._read_ended(owner, k, agent) for k, agent in earlier]
            if running:
                files = await self._shipments.read_metrics(seen.agent or "", owner, seen.attempt)
                attempts.append(await asyncio.to_thread(parse_curves, files))
            elif seen.attempt:
                attempts.append(await self._read_ended(owner, seen.attempt, seen.agent or ""))
        if len(attempts) == 1:
            return dict(attempts[0].curves), running
        return await asyncio.to_thread(join_curves, attempts), running

    async def _list_earlier(self, view: SweepView, job: str, k: int) -> list[tuple[int, str]]:
        """Return the attempts that attempt `k` continues, each with its agent; of a running one, all before it."""
        found = await read_attempts(self._live.world, view, job)
        mine = next((each for each in found if each.k == k), None)
        if mine is not None and isinstance(mine.after, EndEntry):
            with suppress(ValueError, TypeError, AttributeError):
                return [(part.k, part.agent) for part in parse_parts(mine.after.history)]
        return [(each.k, each.claim.agent) for each in found if each.k < k]

    async def _read_ended(self, job: str, k: int, agent: str) -> AttemptCurves:
        known = self._ended.get((job, k))
        if known is not None:
            self._ended.move_to_end((job, k))
            return known
        curves = await asyncio.to_thread(parse_curves, await self._read_files(job, k, agent))
        self._ended[job, k] = curves
        self._points += curves.points
        while self._points > _KEPT_POINTS and len(self._ended) > 1:
            self._points -= self._ended.popitem(last=False)[1].points
        return curves

    async def _read_files(self, job: str, k: int, agent: str) -> dict[str, bytes]:
        store, keys = self._live.world.at, self._live.world.keys
        prefix, files = keys.out(job, k) + METRICS, dict[str, bytes]()
        for item in await store.list(prefix):
            if is_file_name(name := item.key.removeprefix(prefix)):
                with suppress(KeyMissing):  # removed since it was listed
                    files[name] = await store.get(item.key)
        if not files and agent:  # its agent was killed before it could bring them there
            pieces = await ShipmentReader(store, keys, agent).read_all()
            found = join_pieces(pieces, job, k)
            files = {name: data for name, data in found.items() if name.startswith(METRICS)}
        return files
