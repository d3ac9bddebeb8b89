"""Results over repetitions: jobs that agree on some parameters as one row, with mean and spread of each metric."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import frexp, ldexp, sqrt
from statistics import fmean
from typing import Any

from monkey.results.result_rows import ResultRow, Results, check_known_name, make_rank_key
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ParameterValue


@dataclass(frozen=True)
class MetricSpread:
    """One metric over a group: `n` finite values; `std` is the sample's (n - 1), None for fewer than two."""

    mean: float
    std: float | None
    min: float
    max: float
    n: int


@dataclass(frozen=True)
class ResultGroup:
    """Jobs that have the same values of the parameters that were grouped by."""

    parameters: Mapping[str, ParameterValue]
    rows: tuple[ResultRow, ...]
    #: Of those of its jobs that count (`ResultRow.counts`), and have a finite value.
    metrics: Mapping[str, MetricSpread]

    @property
    def states(self) -> Counter[str]:
        """How many of its jobs are in each state."""
        return Counter(row.state for row in self.rows)


def group_results(results: Results, names: Sequence[str]) -> list[ResultGroup]:
    """Return the groups of rows that agree on the named parameters, best mean of the sweep's metric first.

    Raises MonkeyError for a name that is no parameter of the sweep. A job that lacks a parameter agrees with those
    that lack it, too. Groups without a mean of that metric come last.
    """
    for name in names:
        check_known_name(name, results.parameters, "--group-by", "parameters")
    members: dict[tuple[str | None, ...], list[ResultRow]] = {}
    for row in results.rows:
        key = tuple(dump_canonical_json(row.parameters[name]) if name in row.parameters else None for name in names)
        members.setdefault(key, []).append(row)
    groups = [_group(rows, names, results.metrics) for rows in members.values()]
    if results.metric is None:
        return groups
    return sorted(groups, key=lambda made: make_rank_key(_mean(made, results.metric), results.maximize))


def _mean(made: ResultGroup, metric: str | None) -> float | None:
    spread = made.metrics.get(metric) if metric is not None else None
    return spread.mean if spread else None


def _group(rows: list[ResultRow], names: Sequence[str], metrics: Sequence[str]) -> ResultGroup:
    parameters = {name: rows[0].parameters[name] for name in names if name in rows[0].parameters}
    counted = [row for row in rows if row.counts]
    spreads = {name: summarize_values(values) for name in metrics if (values := _finite(counted, name))}
    return ResultGroup(parameters, tuple(rows), spreads)


def _finite(rows: list[ResultRow], metric: str) -> list[float]:
    """Return the values that a mean can be taken of: not NaN, infinite, or a whole number beyond the largest float."""
    most = sys.float_info.max
    return [value for row in rows if (value := row.metrics.get(metric)) is not None and -most <= value <= most]


def summarize_values(values: Sequence[float]) -> MetricSpread:
    """Return mean, sample standard deviation and bounds of one or more finite values."""
    # Scaled, because squares and sums of the largest floats are infinite; by a power of two, which rounds nothing.
    scale = ldexp(1.0, frexp(max(map(abs, values)))[1] - 1)
    mean = fmean(value / scale for value in values)
    squares = sum((value / scale - mean) ** 2 for value in values)
    std = sqrt(squares / (len(values) - 1)) * scale if len(values) > 1 else None
    return MetricSpread(mean * scale, std, min(values), max(values), len(values))


def serialize_group(made: ResultGroup) -> dict[str, Any]:
    """Return the group as a row of `--json`."""
    metrics = {
        name: {"mean": of.mean, "std": of.std, "min": of.min, "max": of.max, "n": of.n}
        for name, of in made.metrics.items()
    }
    jobs = [row.job for row in made.rows]
    return {"parameters": dict(made.parameters), "jobs": jobs, "states": dict(made.states), "metrics": metrics}
