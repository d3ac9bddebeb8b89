"""Results over repetitions: jobs that agree on some parameters as one row, with mean and spread of each metric."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import frexp, ldexp, sqrt
from statistics import fmean
from typing import Any

from monkey.results.result_rows import MetricColumn, Results, find_named, rank_places
from monkey.results.t_interval import compute_half_width
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue

#: Parameters that a sentence names.
_NAMED = 3


@dataclass(frozen=True)
class MetricSpread:
    """One metric over a group: `n` finite values; `std` is the sample's (n - 1), None for fewer than two."""

    mean: float
    std: float | None
    #: Half the width of the 95 % interval of the mean, by Student's t; None where there is no std.
    ci95: float | None
    min: float
    max: float
    n: int


@dataclass(frozen=True)
class ResultGroup:
    """Jobs that have the same values of the parameters that were grouped by."""

    parameters: Mapping[str, ParameterValue]
    #: Best first.
    jobs: Sequence[str]
    #: How many of its jobs are in each state.
    states: Counter[str]
    #: Of those of its jobs that count, and have a finite value.
    metrics: Mapping[str, MetricSpread]
    #: Parameters in which those of its jobs that count differ, though no repeat explains that.
    mixed: Sequence[str]


def find_parameters(names: Sequence[str], results: Results) -> list[str]:
    """Return the parameters to group by, named bare or by their columns. Raises MonkeyError for an unknown one."""
    columns = results.columns.parameters
    return [find_named(name, results.parameters, columns, "parameter", "--group-by") for name in names]


def group_results(results: Results, names: Sequence[str]) -> list[ResultGroup]:
    """Return the groups of rows that agree on the named parameters, best mean of the sweep's metric first.

    A job that lacks a parameter agrees with those that lack it, too. Groups without a mean of that metric come last.
    """
    members: dict[tuple[int, ...], list[int]] = {}
    columns = [_number_values(results.table.columns[name]) for name in names]
    keys = list(zip(*columns, strict=True)) or [()] * len(results.table)
    for at in results.order:
        members.setdefault(keys[at], []).append(at)
    others = {
        name: _number_values(column)
        for name, column in results.table.columns.items()
        if name in results.varying and name not in names and name not in results.repeats
    }
    groups = [_group(results, places, names, others) for places in members.values()]
    if results.metric is None:
        return groups
    means = [made.metrics[results.metric].mean if results.metric in made.metrics else None for made in groups]
    return [groups[at] for at in rank_places(means, [True] * len(groups), maximize=results.maximize)]


def _number_values(column: ParameterColumn) -> Sequence[int]:
    """Return for each job the number of its value; equal values have one number, whatever the column calls them."""
    texts = [dump_canonical_json(value) for value in column.values]
    first = {text: number for number, text in reversed(list(enumerate(texts)))}
    numbers = [first[text] for text in texts]
    return [ABSENT if index == ABSENT else numbers[index] for index in column.index]


def _group(
    results: Results, places: Sequence[int], names: Sequence[str], others: Mapping[str, Sequence[int]]
) -> ResultGroup:
    columns = results.table.columns
    has = [name for name in names if columns[name].index[places[0]] != ABSENT]
    parameters = {name: columns[name].values[columns[name].index[places[0]]] for name in has}
    counted = [at for at in places if results.counts[at]]
    metrics = results.metrics if counted else ()
    spreads = {
        name: summarize_values(values) for name in metrics if (values := _take_finite(results.values[name], counted))
    }
    ids, states = results.table.ids, results.states
    mixed = [name for name, numbers in others.items() if len({numbers[at] for at in counted}) > 1]
    return ResultGroup(parameters, [ids[at] for at in places], Counter([states[at] for at in places]), spreads, mixed)


def explain_mixed_groups(groups: Sequence[ResultGroup], names: Sequence[str]) -> str:
    """Return what means of groups by these names are taken over, besides repeats; "" for nothing."""
    mixed = list(dict.fromkeys([name for made in groups for name in made.mixed]))[:_NAMED]
    if not mixed:
        return ""
    apart = ",".join([*names, *mixed])
    return (
        f"n counts jobs that differ by more than a repeat: by {', '.join(mixed)} (--group-by {apart} keeps them apart)"
    )


def _take_finite(column: MetricColumn, places: Sequence[int]) -> list[float]:
    """Return the values that a mean can be taken of: not NaN, infinite, or a whole number beyond the largest float."""
    most = sys.float_info.max
    return [value for at in places if (value := column[at]) is not None and -most <= value <= most]


def summarize_values(values: Sequence[float]) -> MetricSpread:
    """Return mean, sample standard deviation, interval and bounds of one or more finite values."""
    # Scaled, because squares and sums of the largest floats are infinite; by a power of two, which rounds nothing.
    scale = ldexp(1.0, frexp(max(map(abs, values)))[1] - 1)
    scaled = [value / scale for value in values]
    mean, n = fmean(scaled), len(values)
    if n < 2:
        return MetricSpread(mean * scale, None, None, min(values), max(values), n)
    std = sqrt(sum([(value - mean) ** 2 for value in scaled]) / (n - 1))
    interval = compute_half_width(std, n) * scale
    return MetricSpread(mean * scale, std * scale, interval, min(values), max(values), n)


def serialize_group(made: ResultGroup) -> dict[str, Any]:
    """Return the group as a row of `--json`; a metric's interval is `mean` ± `ci95`."""
    metrics = {
        name: {"mean": of.mean, "std": of.std, "ci95": of.ci95, "min": of.min, "max": of.max, "n": of.n}
        for name, of in made.metrics.items()
    }
    return {
        "parameters": dict(made.parameters),
        "jobs": list(made.jobs),
        "states": dict(made.states),
        "metrics": metrics,
        "mixed": list(made.mixed),
    }
