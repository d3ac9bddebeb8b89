"""The agent's side of a collector: whatever happens to the process, the end has all, and the job is left alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from monkey.spec.job.metric_sources import MetricSource
from monkey_agent.collecting.collector import COLLECTED
from monkey_agent.collecting.metric_collector import MetricCollector
from monkey_agent.execution.workspace import Workspace

FREE = MetricSource("stdout", r"(?P<free>\d+) free")


class Room:
    """A workspace, and what was said in its job's log."""

    def __init__(self, root: Path, source: MetricSource) -> None:
        self.space, self.notes = Workspace("a", str(root / "state" / "attempts" / "a.1")), list[str]()
        for path in self.space.directories:
            Path(path).mkdir(parents=True)
        self.collector = MetricCollector(self.space, [source], self.notes.append)

    def log(self, text: str) -> None:
        with Path(self.space.log).open("a") as file:
            file.write(text)

    def found(self) -> list[int]:
        path = Path(self.space.metrics, COLLECTED)
        return [json.loads(line)["m"]["free"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def play(tmp_path: Path) -> Callable[[MetricSource, Callable[[Room], Awaitable[None]]], None]:
    def run(source: MetricSource, scene: Callable[[Room], Awaitable[None]]) -> None:
        async def main() -> None:
            await scene(Room(tmp_path, source))

        asyncio.run(main())

    return run


def test_a_look_has_what_was_written_and_the_end_the_rest(play: Callable[..., None]) -> None:
    async def scene(room: Room) -> None:
        room.log("1 free\n2 free\n3 fr")
        assert await room.collector.look() and room.found() == [1, 2]
        room.log("ee")
        await room.collector.finish()
        assert room.found() == [1, 2, 3] and not room.notes
        await room.collector.finish()  # asked again where the store did not take the files
        assert room.found() == [1, 2, 3]

    play(FREE, scene)


def test_a_collector_that_is_killed_is_said_once_and_started_again(play: Callable[..., None]) -> None:
    async def scene(room: Room) -> None:
        for number in range(3):
            room.log(f"{number} free\n")
            assert await room.collector.look()
            process = room.collector._process
            assert process is not None
            process.kill()
            await process.wait()
            assert not await room.collector.look()
        room.log("9 free\n")
        await room.collector.finish()
        assert room.found() == [0, 1, 2, 9] and len(room.notes) == 1 and "could not be read" in room.notes[0]

    play(FREE, scene)


def test_a_pattern_that_is_none_harms_nobody(play: Callable[..., None]) -> None:
    async def scene(room: Room) -> None:
        room.log("1 free\n")
        assert not await room.collector.look()
        await room.collector.catch_up()
        await room.collector.finish()
        assert room.found() == [] and len(room.notes) == 1

    play(MetricSource("stdout", "(?P<a>"), scene)


def test_a_look_that_is_given_up_leaves_no_answer_behind(play: Callable[..., None]) -> None:
    async def scene(room: Room) -> None:
        looking = asyncio.ensure_future(room.collector.look())
        await asyncio.sleep(0)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        room.log("1 free\n")
        assert await room.collector.look() and room.found() == [1]
        await room.collector.finish()

    play(FREE, scene)
