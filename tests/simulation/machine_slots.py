"""The slots of a simulated machine."""

from __future__ import annotations

from monkey.spec.job.recipe import JobResources
from monkey_agent.ports import Slot


class Slots:
    """So many jobs at a time."""

    def __init__(self, count: int) -> None:
        self.count = self.left = count
        self.lacking, self.held_up, self.wanted_by_others, self.held_by_others = "", "", False, False

    def take(self, resources: JobResources) -> Slot | None:
        if self.left == 0:
            return None
        self.left -= 1
        return Slot(1, (), 0)

    def wait(self, resources: JobResources) -> None:
        raise AssertionError("no other agent is on this machine")

    def give(self, slot: Slot) -> None:
        self.left += 1

    def fits(self, resources: JobResources) -> bool:
        return resources.gpus == 0
