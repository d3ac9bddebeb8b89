"""Many seeds on all cores, and what they showed together."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from tests.simulation.mutant import Mutant
from tests.simulation.mutants import ECONOMY, SAFETY
from tests.simulation.result import Result
from tests.simulation.story import play
from tests.simulation.world import Weather


@dataclass
class Campaign:
    """The sum of many runs."""

    bad: list[Result] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    executions: int = 0
    jobs: int = 0
    runs: int = 0

    def add(self, result: Result) -> None:
        self.bad += [result] if result.violations else []
        self.counts.update(result.counts)
        self.executions += result.executions
        self.jobs += result.jobs
        self.runs += 1

    @property
    def executions_a_job(self) -> float:
        return self.executions / self.jobs

    def report(self) -> str:
        lines = [f"pytest tests/simulation --seed {r.seed}  # {dict(r.violations)}" for r in self.bad[:10]]
        seen = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return "\n".join([*lines, f"{self.runs} runs, {self.executions_a_job:.2f} executions a job; saw: {seen}"])


def _one(task: tuple[int, str | None, Weather | None]) -> Result:
    seed, name, weather = task
    return play(seed, weather, mutant_named(name))


def mutant_named(name: str | None) -> Mutant | None:
    """Mutants travel to other processes by name."""
    return {**SAFETY, **ECONOMY}[name] if name else None


def results(seeds: Iterable[int], mutant: str | None = None, weather: Weather | None = None) -> Iterator[Result]:
    """Yield the result of each seed, in order; stopping early stops the work.

    A mutant's first seed is the one that caught it before: it is played here, and no process starts where it is enough.
    """
    tasks = ((seed, mutant, weather) for seed in seeds)
    if mutant is not None:
        yield from map(_one, islice(tasks, 1))
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        yield from pool.imap(_one, tasks, chunksize=4)


def campaign(seeds: Iterable[int], mutant: str | None = None, weather: Weather | None = None) -> Campaign:
    """Run all seeds and sum them up."""
    total = Campaign()
    for result in results(seeds, mutant, weather):
        total.add(result)
    return total
