"""Reading what jobs wrote: in order, once, on from one attempt to the next, until the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.apply.execute import execute_plan
from monkey.apply.inspect.attempt_records import read_attempts
from monkey.apply.inspect.log_reading import LogFollower
from monkey.apply.planning import make_plan
from monkey.apply.world.lookup import find_sweep_or_job
from monkey.errors import NotFound
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.layout import spell_segment_key
from monkey.protocol.record.end_files import EndFiles
from monkey.protocol.record.packed_segments import pack_log_segment
from monkey.protocol.record.shipment import LOG, Piece, name_limited_log
from monkey.web.live_store import LiveStore
from monkey.web.log_parts import read_log_part
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_project(tmp_path, SPEC + "max_retries: 1\n")
    return tmp_path


def test_follow_goes_on_through_attempts_to_the_end(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            pen = Pen(world)

            async def life() -> None:
                yield_ = asyncio.sleep
                k = await pen.begin(job)
                await pen.write(job, k, b"one ")
                await yield_(0)
                await pen.write(job, k, b"two ")
                await pen.end(job, ClaimEnd.FAILED)
                k = await pen.begin(job)
                await pen.write(job, k, b"three ")
                await pen.write(job, k, b"\xff\x00four")
                await pen.end(job)

            task: asyncio.Task[None] | None = None

            async def sleep(seconds: float) -> None:
                nonlocal task
                task = task or asyncio.create_task(life())
                await asyncio.sleep(0.001)

            got = b"".join([data async for _, data in LogFollower(world, "small", [job], sleep).chunks(follow=True)])
            assert got.endswith(b"three \xff\x00four")
            assert got in (b"one two three \xff\x00four", b"three \xff\x00four")

    asyncio.run(main())


def test_a_log_that_is_in_an_end_comes_once_and_whole(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            pen, got = Pen(world), bytearray()
            k = await pen.begin(job)
            await pen.write(job, k, b"one\n")

            async def sleep(seconds: float) -> None:
                if got and pen.logs[job].head == k:
                    await pen.end(job, files=EndFiles(log=b"one\ntwo\n").to_json())
                await asyncio.sleep(0.001)

            async for _, data in LogFollower(world, "small", [job], sleep).chunks(follow=True):
                got += data
            assert got == b"one\ntwo\n"
            again = LogFollower(world, "small", [job], sleep, k).chunks(follow=False)
            assert [data async for _, data in again] == [b"one\ntwo\n"]
            live = LiveStore(world)
            await live.refresh()
            view, _ = await live.find_sweep("small")
            for at, data in ((0, b"one\ntwo\n"), (4, b"two\n"), (99, b"")):
                assert (await read_log_part(live, view, job, 0, at)).data == data

    asyncio.run(main())


def test_without_follow_what_is_there_is_all(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world)
            for job in jobs[:2]:
                k = await pen.begin(job)
                await pen.write(job, k, job.encode())

            async def never(seconds: float) -> None:
                raise AssertionError("waited without being asked to follow")

            got = [chunk async for chunk in LogFollower(world, "small", None, never).chunks(follow=False)]
            assert got == [(job, job.encode()) for job in jobs[:2]]

    asyncio.run(main())


def test_one_attempt_is_followed_to_its_own_end(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            pen = Pen(world)
            first = await pen.begin(job)
            await pen.write(job, first, b"one")

            waits = 0

            async def sleep(seconds: float) -> None:
                nonlocal waits
                waits += 1
                assert waits == 1, "waited for more when that attempt was over"
                await pen.write(job, first, b" two")
                await pen.end(job, ClaimEnd.FAILED)

            async def read(k: int) -> bytes:
                chunks = LogFollower(world, "small", [job], sleep, k).chunks(follow=True)
                return b"".join([data async for _, data in chunks])

            assert await read(first) == b"one two"
            second = await pen.begin(job)
            await pen.write(job, second, b"three")
            assert await read(first) == b"one two", "though the job runs again"
            await pen.end(job)
            assert await read(second) == b"three"

    asyncio.run(main())


def test_a_job_that_adopts_a_result_has_its_log(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            before = (await apply(world)).wanted[0].desired.table.ids
            pen = Pen(world)
            for job in before:
                await pen.write(job, await pen.begin(job), job.encode())
                await pen.end(job)
            (root / "train.py").write_text("print('changed')\n")
            planned = await make_plan(world, [], ["code"])
            await execute_plan(world, planned.plan, planned.wanted, lambda what, done: None)
            jobs = planned.wanted[0].desired.table.ids
            assert not set(jobs) & set(before)
            got = dict.fromkeys(jobs, b"")
            async for job, data in LogFollower(world, "small", None, asyncio.sleep).chunks(follow=False):
                got[job] += data
            assert got == {job: old.encode() for job, old in zip(jobs, before, strict=True)}
            view = (await world.reader().read()).sweeps["small"]
            assert [one.number for one in await read_attempts(world, view, jobs[0])] == [1]

    asyncio.run(main())


def test_names_and_beginnings_of_ids(root: Path) -> None:
    async def main() -> None:
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            snapshot = await world.reader().read()
            assert find_sweep_or_job(snapshot, "small").job is None
            assert find_sweep_or_job(snapshot, jobs[1]).job == jobs[1]
            assert find_sweep_or_job(snapshot, jobs[1][:10]).job == jobs[1]
            assert find_sweep_or_job(snapshot, f"small/{jobs[1]}").job == jobs[1]
            for wrong in (f"none/{jobs[1]}", "small/0000000000000000", "small/"):
                with pytest.raises(NotFound):
                    find_sweep_or_job(snapshot, wrong)
            with pytest.raises(NotFound, match="there is no sweep or job 'smalll'") as caught:
                find_sweep_or_job(snapshot, "smalll")
            assert caught.value.hint == "did you mean 'small'?"
            with pytest.raises(NotFound):
                find_sweep_or_job(snapshot, "")

    asyncio.run(main())


def test_a_segment_that_went_as_its_attempt_ended_costs_a_follower_nothing(root: Path) -> None:
    """The agent removes what it shipped when the log is a file; a heartbeat from before still has the newest piece."""
    name, half = name_limited_log(1 << 20), b"1" * (1 << 19)
    between, newest, last = b"2" * 5000, b"3" * 500, b"4" * 50

    async def main() -> None:
        async with opened(root) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            pen, got = Pen(world), bytearray()
            k = await pen.begin(job)
            shipment, log = pen.heart.shipment, f"{world.keys.out(job, k)}log/"
            shipment.add(Piece(job, k, LOG, 0, half))
            number, segment = shipment.pending()
            await world.at.put(world.keys.shipped_segment(pen.agent, number), segment)
            shipment.seal()
            await pen.heart.beat()

            async def sleep(seconds: float) -> None:
                await asyncio.sleep(0.001)
                if len(got) == len(half) and shipment.sealed == 1:
                    shipment.add(Piece(job, k, name, len(half), between))
                    shipment.pending()
                    shipment.seal()  # and the segment is gone
                    shipment.add(Piece(job, k, name, len(half) + len(between), newest))
                    whole = half + between + newest + last
                    for i, at in enumerate((0, len(half))):
                        part = whole[at : len(half)] if not at else whole[at:]
                        await world.at.put(spell_segment_key(log, i), pack_log_segment(world.at, at, part))
                    await pen.heart.beat()
                elif shipment.sealed == 2 and pen.logs[job].head == k:
                    await pen.end(job, files=None)

            async for _, data in LogFollower(world, "small", [job], sleep).chunks(follow=True):
                got += data
            assert got == half + between + newest + last

    asyncio.run(main())
