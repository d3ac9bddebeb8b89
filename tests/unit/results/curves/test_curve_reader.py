"""Curves from a store: of ended, running and lost attempts, in the order of jobs, with few requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from monkey.protocol.clock import MachineClock
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart
from monkey.protocol.record.shipment import METRICS, Piece
from monkey.results.curves.curve_reader import READERS, CurveReader
from monkey.store.create import create_object
from monkey.store.memory import MemoryStore
from tests.loops import Run

KEYS, AGENT = Keys("shop"), "local/m/1"


def line(step: int | None, at: float = 0.0, **metrics: Any) -> bytes:
    return json.dumps({"t": at, "step": step, "m": metrics}).encode() + b"\n"


class Counted(MemoryStore):
    """A store that counts what is read of it, and how much at once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def get(self, key: str) -> bytes:
        self.asked[key] += 1
        return await super().get(key)


class Job:
    """A job whose log a test writes."""

    def __init__(self, store: MemoryStore, job: str) -> None:
        self.store, self.job, self.log = store, job, EntryLog(KEYS.job_log(job))

    async def claim(self, agent: str = AGENT) -> int:
        assert await self.log.append(self.store, create_object, self.log.head + 1, Claim(agent, self.log.head, 1, "s"))
        return self.log.head

    async def end(self, files: Mapping[str, bytes], outcome: ClaimEnd = ClaimEnd.FAILED, **about: Any) -> None:
        k = self.log.head
        for name, data in files.items():
            await self.store.put(f"{KEYS.out(self.job, k)}{METRICS}{name}", data)
        end = EndEntry(outcome, AGENT, k - 1, "s", seconds=1.0, out=k, **about)
        assert await self.log.append(self.store, create_object, k + 1, end)

    async def points(self, metric: str = "loss") -> list[tuple[int | None, float]]:
        curve = (await CurveReader(self.store, KEYS).read(self.job))[metric]
        return list(zip(curve.steps, curve.values, strict=True))


async def ship(store: MemoryStore, *pieces: Piece, agent: str = AGENT) -> HeartbeatWriter:
    heart = HeartbeatWriter(store, KEYS.beat(agent), MachineClock())
    for piece in pieces:
        heart.shipment.add(piece)
    await heart.beat()
    return heart


def test_later_values_of_a_step_win_and_what_was_resumed_continues(run: Run) -> None:
    async def main() -> None:
        job = Job(MemoryStore(), "a" * 16)
        k = await job.claim()
        first = line(None, loss=9.0) + b"".join(line(step, loss=step) for step in (1, 2, 2, 3, 4))
        await job.end({"0.jsonl": first + line(2, loss=2.5) + line(None, loss=8.0)})
        await job.claim()
        parts = [HistoryPart(k, AGENT, {"0.jsonl": len(line(None, loss=9.0))}).to_json()]
        await job.end({"0.jsonl": line(3, loss=30.0) + line(5, loss="nan")}, ClaimEnd.SUCCEEDED, history=parts)
        *points, diverged, free = await job.points()
        assert points == [(1, 1), (2, 2.5), (3, 30.0)] and diverged[0] == 5 and diverged[1] != diverged[1]
        assert free == (None, 9.0), "8.0 was logged after the checkpoint"

    run(main())


def test_what_continued_nothing_has_only_its_own(run: Run) -> None:
    async def main() -> None:
        job = Job(MemoryStore(), "a" * 16)
        await job.claim()
        await job.end({"0.jsonl": line(1, loss=1.0) + line(None, loss=4.0)})
        await job.claim()
        await job.end({"0.jsonl": line(2, loss=2.0)}, ClaimEnd.SUCCEEDED)
        assert await job.points() == [(2, 2.0)]

    run(main())


def test_of_two_processes_the_later_value_by_the_clock_is_that_of_the_step(run: Run) -> None:
    async def main() -> None:
        job = Job(MemoryStore(), "a" * 16)
        await job.claim()
        files = {"0.jsonl": line(1, 20.0, loss=1.0) + line(2, 10.0, loss=3.0), "1.jsonl": line(1, 5.0, loss=2.0)}
        await job.end({**files, "2.jsonl": line(2, 30.0, loss=4.0)}, ClaimEnd.SUCCEEDED)
        assert await job.points() == [(1, 1.0), (2, 4.0)]

    run(main())


@pytest.mark.parametrize("history", [[[1]], "x", [[1, "../../x", {}]], [[1, "a/b/c", {"../x": 1}]]])
def test_a_history_that_is_none_leaves_the_attempts_own_curve(run: Run, history: Any) -> None:
    async def main() -> None:
        job = Job(MemoryStore(), "a" * 16)
        await job.claim()
        await job.end({"0.jsonl": b"no record\n" + line(1, loss=1.0)}, ClaimEnd.SUCCEEDED, history=history)
        assert await job.points() == [(1, 1.0)]

    run(main())


def test_a_running_job_has_what_was_shipped_after_what_it_resumed(run: Run) -> None:
    async def main() -> None:
        store = MemoryStore()
        job = Job(store, "a" * 16)
        await job.claim("local/gone/1")  # killed: it left pieces only
        await ship(
            store,
            Piece(job.job, 1, f"{METRICS}0.jsonl", 0, line(1, loss=1.0) + line(2, loss=2.0)),
            agent="local/gone/1",
        )
        k = await job.claim()
        heart = await ship(
            store, Piece(job.job, k, f"{METRICS}0.jsonl", 0, line(2, loss=20.0) + line(3, loss=3.0)[:-9])
        )
        reader = CurveReader(store, KEYS)
        assert (await reader.read(job.job))["loss"].values == [1.0, 20.0]
        begun = len(line(2, loss=20.0) + line(3, loss=3.0)) - 9
        heart.shipment.add(Piece(job.job, k, f"{METRICS}0.jsonl", begun, line(3, loss=3.0)[-9:] + line(4, loss=4.0)))
        await heart.beat()
        assert (await reader.read(job.job))["loss"].values == [1.0, 20.0], "an agent is looked at once"
        reader.shipped.refresh()
        assert (await reader.read(job.job))["loss"].values == [1.0, 20.0, 3.0, 4.0]

    run(main())


def test_many_jobs_come_in_their_order_and_an_agent_is_read_once(run: Run) -> None:
    async def main() -> None:
        store = Counted()
        jobs = [Job(store, f"{n:016x}") for n in range(3 * READERS)]
        for n, job in enumerate(jobs):
            await job.claim()
            if n % 2:
                await job.end({"0.jsonl": line(1, loss=n, acc=-n)}, ClaimEnd.SUCCEEDED)
        await ship(store, *(Piece(job.job, 1, f"{METRICS}0.jsonl", 0, line(1, loss=n)) for n, job in enumerate(jobs)))
        ids = [job.job for job in jobs]
        found = [each async for each in CurveReader(store, KEYS).read_many(ids, ["loss"])]
        assert [job for job, _ in found] == ids
        assert [curves["loss"].values for _, curves in found] == [[n] for n in range(len(jobs))]
        assert all(curves.keys() == {"loss"} for _, curves in found)
        assert store.asked[KEYS.beat(AGENT)] == 1
        # Whoever stops listening leaves nothing that reads on.
        async for job, _ in CurveReader(store, KEYS).read_many(ids):
            assert job == ids[0]
            break

    run(main())


def test_a_job_that_nobody_began_has_no_curves(run: Run) -> None:
    assert run(CurveReader(MemoryStore(), KEYS).read("a" * 16)) == {}
