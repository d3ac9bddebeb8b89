"""How much each parameter mattered for the best jobs: PED-ANOVA, with what chance alone makes of it.

The method is of Watanabe, Bansal and Hutter (2023): "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in
Arbitrary Subspaces", IJCAI. A parameter's importance is the Pearson divergence of its density among the best jobs from
that among all jobs. Densities are of a Parzen estimator on a grid, with bandwidths by Scott's rule.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, erf, pow, sqrt
from typing import Any, NamedTuple

from monkey.errors import MonkeyError
from monkey.results.result_rows import Results
from monkey.spec.job.job_table import ABSENT, ParameterColumn

#: Jobs below which nothing is said: of fewer, chance makes as much as any parameter.
FEWEST_JOBS = 30
#: Share of the jobs that are the best ones, and how many these are at least.
_BEST, _FEWEST_BEST = 0.1, 5
#: Times that the metric is shuffled. What a parameter reaches in none of them by chance is a visible effect.
_SHUFFLES = 50
#: Points of the grid that values of a number are put on, by rank: as many for a scale of any kind.
_POINTS = 50
#: Weight of the prior, which keeps every density above 0, in jobs.
_PRIOR = 1.0
#: 90 % of the narrowest kernel are on one point of the grid.
_NARROWEST = 0.5 / 1.64


@dataclass(frozen=True)
class ParameterImportance:
    """The importance of one parameter for being among the best jobs."""

    name: str
    #: Of the importance of all parameters together.
    share: float
    #: What it is, and the most that shuffles of the metric made of it.
    importance: float
    floor: float

    @property
    def visible(self) -> bool:
        """Is it above what chance makes?"""
        return self.importance > self.floor


class ParameterGrid(NamedTuple):
    """The values of one parameter as points of a grid, by place of the job; ABSENT for a job that lacks it."""

    points: Sequence[int]
    size: int
    #: Are they numbers, of which neighbours are alike?
    ordered: bool


def rank_parameters(results: Results) -> list[ParameterImportance]:
    """Return how much each parameter that varies mattered for the metric that ranks, over the jobs that count.

    The visible ones come first, the most important of them first. Raises MonkeyError for too few jobs.
    """
    if results.metric is None:
        raise MonkeyError("importance is of a metric, and the spec names none", hint="name it in the spec: `metric:`")
    column = results.values.get(results.metric, [None] * len(results.table))
    valued = [(at, value) for at in results.order if results.counts[at] and (value := column[at]) is not None]
    if len(valued) < FEWEST_JOBS:
        found = f"expected at least {FEWEST_JOBS} jobs that count and have the metric {results.metric!r}"
        raise MonkeyError(f"{found}, found {len(valued)}", hint="of fewer, chance makes as much as any parameter")
    columns = {name: results.table.columns[name] for name in results.parameters if name in results.varying}
    losses = [-value if results.maximize else value for _, value in valued]
    return measure_importance(columns, [at for at, _ in valued], losses)


def serialize_importance(row: ParameterImportance) -> dict[str, Any]:
    """Return a parameter for programs: `parameter`, `share`, `importance`, `floor`, `visible`."""
    return {
        "parameter": row.name,
        "share": row.share,
        "importance": row.importance,
        "floor": row.floor,
        "visible": row.visible,
    }


def measure_importance(
    columns: Mapping[str, ParameterColumn], places: Sequence[int], losses: Sequence[float]
) -> list[ParameterImportance]:
    """Return the importance of each parameter, most important first; [] for fewer than FEWEST_JOBS jobs.

    `losses`: the metric of the job at each place, the lower the better. It is a pure function: shuffles begin with the
    same seed.
    """
    if len(places) < FEWEST_JOBS:
        return []
    count = max(ceil(_BEST * len(losses)), _FEWEST_BEST)
    worst = sorted(losses)[count - 1]
    best = [i for i, loss in enumerate(losses) if loss <= worst]
    dice = random.Random(0)
    shuffles = [dice.sample(range(len(places)), len(best)) for _ in range(_SHUFFLES)]
    found = []
    for name, column in columns.items():
        grid = make_grid(column, places)
        if grid.size > 1:
            floor = max(measure_divergence(grid, chosen) for chosen in shuffles)
            found.append((name, measure_divergence(grid, best), floor))
    total = sum(importance for _, importance, _ in found) or 1.0
    rows = [ParameterImportance(name, each / total, each, floor) for name, each, floor in found]
    return sorted(rows, key=lambda row: (not row.visible, -row.importance))


def make_grid(column: ParameterColumn, places: Sequence[int]) -> ParameterGrid:
    """Return the values of the jobs at these places as points of a grid: numbers by their rank, others each alone."""
    index = [column.index[at] for at in places]
    used = sorted(set(index) - {ABSENT})
    ordered = all(type(column.values[each]) in (int, float) for each in used)
    if ordered:
        numbers: list[float] = sorted({column.values[each] for each in used})  # type: ignore[misc]  # these are numbers
        size = min(len(numbers), _POINTS)
        point = {each: bisect_left(numbers, column.values[each]) * size // len(numbers) for each in used}  # type: ignore[type-var]  # a number
    else:
        size, point = len(used), {each: at for at, each in enumerate(used)}
    return ParameterGrid([ABSENT if each == ABSENT else point[each] for each in index], size, ordered)


def measure_divergence(grid: ParameterGrid, best: Sequence[int]) -> float:
    """Return the Pearson divergence of the density of the best jobs from that of all, 0 where they are the same.

    Jobs that lack the parameter do not tell how much its value matters: the more of the best they are, the less.
    """
    everywhere = Counter(point for point in grid.points if point != ABSENT)
    top = Counter(grid.points[at] for at in best if grid.points[at] != ABSENT)
    if not top:
        return 0.0
    estimate = _estimate_ordered if grid.ordered else _estimate_unordered
    pairs = zip(estimate(top, grid.size), estimate(everywhere, grid.size), strict=True)
    divergence = sum(local * (part / local - 1) ** 2 for part, local in pairs)
    share_of_best, share = top.total() / len(best), everywhere.total() / len(grid.points)
    return divergence * share_of_best**2 / share


def _estimate_unordered(counts: Counter[int], size: int) -> list[float]:
    """Return the density over values without an order: a kernel for each that occurs, and a flat one."""
    kernels, total = len(counts) + 1, counts.total() + _PRIOR
    smooth = _PRIOR / kernels
    flat = [_PRIOR / total / size] * size
    for point, count in counts.items():
        weight = count / total / (1 + size * smooth)
        flat = [each + weight * smooth for each in flat]
        flat[point] += weight
    return flat


def _estimate_ordered(counts: Counter[int], size: int) -> list[float]:
    """Return the density over a grid: a normal kernel on each point that occurs, cut at the ends, and a wide one."""
    points, total = sorted(counts), counts.total() + _PRIOR
    width = max(_find_bandwidth(points, [counts[point] for point in points]), _NARROWEST)
    # Points are whole: the area below a kernel depends on the distance from its middle alone.
    below = [_integrate((at + 0.5 - size) / width) for at in range(2 * size + 1)]
    density = [0.0] * size
    for point in points:
        edges = below[size - point - 1 : 2 * size - point]
        weight = counts[point] / total / (edges[-1] - edges[0])
        for at in range(size):
            density[at] += weight * (edges[at + 1] - edges[at])
    wide = [_integrate((at - 0.5 - (size - 1) / 2) / size) for at in range(size + 1)]
    weight = _PRIOR / total / (wide[-1] - wide[0])
    return [each + weight * (wide[at + 1] - wide[at]) for at, each in enumerate(density)]


def _find_bandwidth(points: Sequence[int], counts: Sequence[int]) -> float:
    """Return Scott's: by the deviation or the range between quartiles, the smaller one, and the number of jobs."""
    total = sum(counts)
    mean = sum(point * count for point, count in zip(points, counts, strict=True)) / total
    squares = sum(count * (point - mean) ** 2 for point, count in zip(points, counts, strict=True))
    up_to = list(accumulate(counts))
    first = next(at for at, sum_to in enumerate(up_to) if sum_to >= total // 4)
    third = next((at for at, sum_to in enumerate(up_to) if sum_to > total * 3 // 4), len(points) - 1)
    between = points[third] - points[first]
    return 1.059 * min(between / 1.34, sqrt(squares / max(1, total - 1))) * pow(total, -0.2)


def _integrate(z: float) -> float:
    return 0.5 * (1 + erf(z / sqrt(2)))
