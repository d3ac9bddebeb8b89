"""What the jobs of `test_results_at_step.py` log; the test computes what is to come of it from the same records."""

from __future__ import annotations

import random


def make_records(job: int) -> list[tuple[str, float, int | None]]:
    """Return metrics, values and steps: some NaN or infinite; steps that lack, come twice, or out of order."""
    dice = random.Random(job)
    found: list[tuple[str, float, int | None]] = []
    odd = [float("nan"), float("inf"), float("-inf")]

    def draw() -> float:
        return dice.choice(odd) if dice.random() < 0.1 else dice.random()

    for step in range(12):
        if job != 5 and dice.random() < 0.85:
            found.append(("acc", draw(), None if job == 6 else step))
        if dice.random() < 0.5:
            found.append(("loss", draw(), step))
        if dice.random() < 0.2:
            found.append((dice.choice(["loss", "acc"]), draw(), max(0, step - 2)))
        if job % 4 == 0 and step >= 8:
            found.append(("late", draw(), step))
        found.append(("total", 10.0 * step, step))
    if job % 3:
        found.append(("test", dice.random(), None))
    if job % 2:
        found.append(("acc", dice.random(), 12))
    return [record for record in found if job != 5 or record[0] != "acc"]
