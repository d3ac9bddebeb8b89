"""A watch over the sweep of a small project, step by step."""

from __future__ import annotations

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.apply.watch.watch_loop import SweepWatch
from monkey.apply.world.world import World
from monkey.protocol.status.store_snapshot import StoreSnapshot


class Steps:
    """A clock for watches: each sleep passes at once, and lets the next thing happen."""

    def __init__(self, *happen: object) -> None:
        self.at, self.happen, self.slept = 0.0, list(happen), 0

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds + 1
        self.slept += 1
        assert self.slept < 100, "the watch never ends"
        if self.happen:
            await self.happen.pop(0)()  # type: ignore[operator]  # coroutine functions


def watch(world: World, steps: Steps, seen: list[tuple[StoreSnapshot | None, list[SweepProgress], str]]) -> SweepWatch:
    """Return a watch that goes by `steps`, and notes what it shows in `seen`."""
    return SweepWatch(
        world.at,
        world.keys,
        world.reader(),
        world.fleets,
        ["small"],
        lambda snapshot, progress, trouble: seen.append((snapshot, list(progress), trouble)),
        now=steps.now,
        sleep=steps.sleep,
    )
