"""A page that is served, or a report that is written, in a thread of its own: Playwright's loop has the test's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monkey.apply.world.world import World
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.journal import JournalBlock, make_record
from monkey.protocol.layout import spell_number
from monkey.protocol.record.shipment import METRICS
from monkey.web.page_guard import PageGuard
from monkey.web.page_server import serve_page
from monkey.web.report.report_data import ReportData, gather_report
from monkey.web.report.report_file import build_report
from tests.unit.apply.small_project import Pen, apply, opened, write_project

#: Plays what happened to the sweep before anybody looks.
Scene = Callable[[World, Pen, list[str]], Awaitable[None]]


@contextmanager
def served(root: Path, spec: str, scene: Scene) -> Iterator[str]:
    """Apply a spec, play the scene, and serve its page; gives the link."""
    links: list[Any] = []
    ready, done = threading.Event(), threading.Event()

    async def main() -> None:
        write_project(root, spec)
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            await scene(world, Pen(world), list(jobs))
            guard = PageGuard()
            async with serve_page(world, guard) as address:
                links.append(f"{address}#token={guard.token}")
                ready.set()
                await asyncio.to_thread(done.wait)

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as exc:
            links.append(exc)
            ready.set()
            raise

    thread = threading.Thread(target=work)
    thread.start()
    try:
        ready.wait()
        assert isinstance(links[0], str), links
        yield links[0]
    finally:
        done.set()
        thread.join()


def write_report(root: Path, spec: str, scene: Scene, folder: Path) -> str:
    """Apply a spec, play the scene, and write its report into a folder; gives the address of the file."""

    async def main() -> ReportData:
        write_project(root, spec)
        async with opened(root) as world:
            jobs = (await apply(world)).wanted[0].desired.table.ids
            await scene(world, Pen(world), list(jobs))
            return await gather_report(world, ["small"])

    with ThreadPoolExecutor(1) as thread:
        data = thread.submit(asyncio.run, main()).result()
    file = folder / "a report.html"
    file.write_bytes(build_report(data))
    return file.as_uri()


def play_ends(curves: int = 0, points: int = 0) -> Scene:
    """Return a scene in which all jobs have succeeded, and the first `curves` of them have logged so many points."""

    async def scene(world: World, pen: Pen, jobs: list[str]) -> None:
        await end_all(world, jobs)
        await log_curves(world, jobs[:curves], points)

    return scene


def make_loss(place: int) -> float:
    """Return the last loss of the job at a place: all differ, and places say nothing of their order."""
    return (place * 7919 % 100_003) / 100_003


async def end_all(world: World, jobs: list[str], agent: str = "local/pen/1") -> None:
    """Have all jobs succeeded, by the journal alone, each with metrics of its own."""
    at, size = 1_790_000_000.0, 5_000
    for number, start in enumerate(range(0, len(jobs), size), 1):
        block = JournalBlock()
        for place, job in enumerate(jobs[start : start + size], start):
            loss = make_loss(place)
            told = {"last": loss, "min": loss, "max": 2.0, "step": 9, "best_min_step": 9, "best_max_step": 0}
            metrics = {"loss": {**told, "count": 10, "nonfinite": 0}, "accuracy": {**told, "count": 10, "nonfinite": 0}}
            end = EndEntry(ClaimEnd.SUCCEEDED, agent, 1, "small", seconds=1.5, at=at + place, out=1, metrics=metrics)
            block.add(make_record(job, 2, end))
        await world.at.put(world.keys.segment(agent, number), block.encode())


def make_value(place: int, step: int) -> float:
    """Return the loss that the job at a place logged at a step."""
    return 1 / (1 + step / (1 + place)) + step * place % 7 / 50


async def log_curves(world: World, jobs: list[str], points: int) -> None:
    """Keep a file of metrics of the first attempt of each job, and the job's log, which says that there was one."""
    for place, job in enumerate(jobs):
        end = EndEntry(ClaimEnd.SUCCEEDED, "local/pen/1", 1, "small", seconds=1.5, at=1.0, out=1)
        entries = [Claim("local/pen/1", 1, 1, "small").encode(), end.encode()]
        for k, data in enumerate(entries, 1):
            await world.at.put(world.keys.job_log(job) + spell_number(k), data)
        lines = (f'{{"t":1.0,"step":{step},"m":{{"loss":{make_value(place, step):.6f}}}}}\n' for step in range(points))
        await world.at.put(f"{world.keys.out(job, 1)}{METRICS}0.jsonl", "".join(lines).encode())
