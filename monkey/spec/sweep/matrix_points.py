"""The points of a matrix before any is left out: crossed or drawn, then `when`; as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import prod
from typing import Any

from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ABSENT, ParameterColumn, ParameterValue
from monkey.spec.parameters import conditions
from monkey.spec.parameters.parameters import Parameter
from monkey.spec.parameters.ranges import SteppedRange, count_values
from monkey.spec.parameters.sampling import generate_draws, make_choice_sampler, make_sampler
from monkey.spec.sweep.models import Spec
from monkey.spec.yaml.mistakes import make_mistake_error


def count_points(spec: Spec) -> int:
    """Return how many points the product has."""
    return prod(count_values(axis[0].choices or ()) for axis in _list_axes(spec))


def make_points(spec: Spec, rows: int) -> dict[str, ParameterColumn]:
    """Return the draws of a random search, or the first `rows` points of the product, with each `when` applied.

    Raises MistakesError where a condition fails.
    """
    found = _draw_points(spec) if spec.method == "random" else _cross_values(_list_axes(spec), rows)
    return _apply_conditions(spec, {name: found[name] for name in spec.parameters})


def make_repeated_points(
    points: Mapping[str, ParameterColumn], rows: int, repeat: Mapping[str, Parameter]
) -> tuple[dict[str, ParameterColumn], int]:
    """Return each of `rows` points with all combinations of the repeats, one behind the other; and their number."""
    times = prod(count_values(parameter.choices or ()) for parameter in repeat.values())
    crossed = _cross_values([[parameter] for parameter in repeat.values()], times)
    columns = {
        name: ParameterColumn(column.values, array("i", [at for at in column.index for _ in range(times)]))
        for name, column in points.items()
    }
    for name in repeat:
        columns[name] = ParameterColumn(crossed[name].values, array("i", crossed[name].index) * rows)
    return columns, rows * times


def _list_axes(spec: Spec) -> list[list[Parameter]]:
    """Return what is crossed: single parameters and zipped groups, in the spec's order."""
    groups = {name: set(group) for group in spec.zip for name in group}
    found: list[list[Parameter]] = []
    done: set[str] = set()
    for name in spec.parameters:
        if name not in done:
            group = groups.get(name, {name})
            found.append([parameter for other, parameter in spec.parameters.items() if other in group])
            done |= group
    return found


def _cross_values(crossed: Sequence[Sequence[Parameter]], rows: int) -> dict[str, ParameterColumn]:
    """Return the first rows of the product; the last axis varies fastest."""
    found, inner = {}, 1
    for axis in reversed(crossed):
        length = count_values(axis[0].choices or ())
        shown = min(length, -(-rows // inner))
        for parameter in axis:
            choices = parameter.choices or ()
            values, index = deduplicate_values(choices if shown == length else choices[:shown])
            pattern = array("i")
            for value in range(shown) if index is None else index:
                pattern.extend(array("i", [value]) * min(inner, rows))
            whole = pattern * -(-rows // len(pattern))
            found[parameter.name] = ParameterColumn(values, whole if len(whole) == rows else whole[:rows])
        inner *= length
    return found


def deduplicate_values(values: Iterable[ParameterValue]) -> tuple[Sequence[ParameterValue], array[int] | None]:
    """Return the values once each, and where each of the given ones went (None: they were distinct)."""
    if isinstance(values, range):
        return values, None
    seen: dict[Any, int] = {}
    kept: list[ParameterValue] = []
    index = array("i")
    for value in values:
        # Numbers are their own keys, but 1, 1.0, True and 0.0, -0.0 are different values that compare equal.
        key = (
            (value, type(value))
            if type(value) in (int, str) or (type(value) is float and value)
            else dump_canonical_json(value)
        )
        at = seen.setdefault(key, len(kept))
        if at == len(kept):
            kept.append(value)
        index.append(at)
    return kept, None if len(kept) == len(index) else index


def _draw_points(spec: Spec) -> dict[str, ParameterColumn]:
    """Return the draws of a random search."""
    cap = spec.run_cap or 0
    found: dict[str, ParameterColumn] = {}
    for axis in _list_axes(spec):
        # In whatever order a zipped group stands.
        name = min(parameter.name for parameter in axis)
        draws = islice(generate_draws(spec.seed, name), cap)
        found |= _draw_parameter(axis[0], draws) if len(axis) == 1 else _draw_zipped_group(axis, draws)
    return found


def _draw_parameter(parameter: Parameter, draws: Iterator[int]) -> dict[str, ParameterColumn]:
    if parameter.distribution is not None:
        return {parameter.name: _make_column(list(map(make_sampler(parameter.distribution), draws)))}
    values = parameter.values or ()
    if isinstance(values, range | SteppedRange):  # perhaps longer than an index can count
        return {
            parameter.name: _make_column([values[at] for at in map(make_choice_sampler(count_values(values)), draws)])
        }
    return _draw_zipped_group([parameter], draws)


def _draw_zipped_group(axis: list[Parameter], draws: Iterator[int]) -> dict[str, ParameterColumn]:
    """Draw one place for all of a zipped group."""
    chosen = array("i", map(make_choice_sampler(count_values(axis[0].choices or ()), axis[0].probabilities), draws))
    found = {}
    for parameter in axis:
        values, index = deduplicate_values(parameter.choices or ())
        found[parameter.name] = ParameterColumn(values, array("i", map(index.__getitem__, chosen)) if index else chosen)
    return found


def _make_column(draws: Sequence[int | float]) -> ParameterColumn:
    """Make a column of draws; all are of one type, so equal ones are the same."""
    places = {value: at for at, value in enumerate(dict.fromkeys(draws))}
    if len(places) == len(draws):
        return ParameterColumn(draws, array("i", range(len(draws))))
    return ParameterColumn(list(places), array("i", map(places.__getitem__, draws)))


def _apply_conditions(spec: Spec, columns: dict[str, ParameterColumn]) -> dict[str, ParameterColumn]:
    """Take each parameter away (or to its `else`) where its `when` does not hold; what others depend on goes first."""
    columns = dict(columns)
    pending = {
        name: [(path, conditions.parse_condition(text, spec.parameters)) for path, text in parameter.when]
        for name, parameter in spec.parameters.items()
        if parameter.when
    }
    while pending:
        ready = [name for name, found in pending.items() if not any(c.uses & pending.keys() for _, c in found)]
        for name in ready:
            for path, when in pending.pop(name):
                columns[name] = _apply_condition(columns, spec.parameters[name], ("parameters", *path), when)
    return columns


def _apply_condition(
    columns: Mapping[str, ParameterColumn], parameter: Parameter, path: tuple[Any, ...], when: Any
) -> ParameterColumn:
    column, names = columns[parameter.name], [name for name in columns if name in when.uses]
    values, elsewhere = column.values, ABSENT
    if parameter.otherwise:
        values, places = deduplicate_values([*values, *parameter.otherwise])
        elsewhere = places[-1] if places else len(values) - 1
    decided: dict[tuple[int, ...], bool] = {}

    def decide(key: tuple[int, ...]) -> bool:
        known = {n: columns[n].values[at] for n, at in zip(names, key, strict=True) if at != ABSENT}
        try:
            decided[key] = when.holds(known)
        except conditions.ConditionError as error:
            raise make_mistake_error(error.message, error.hint, path) from error
        return decided[key]

    keys = zip(*(columns[name].index for name in names), strict=True) if names else iter([()] * len(column.index))
    index = array("i", [
        at if (decided[key] if key in decided else decide(key)) else elsewhere
        for at, key in zip(column.index, keys, strict=True)
    ])  # fmt: skip
    return ParameterColumn(values, index)
