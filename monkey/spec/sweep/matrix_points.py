"""The points of a matrix before anything is left out: crossed, or drawn; as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ParameterColumn, ParameterValue
from monkey.spec.parameters.parameters import Parameter
from monkey.spec.parameters.ranges import SteppedRange, count_values
from monkey.spec.parameters.sampling import generate_draws, make_choice_sampler, make_sampler
from monkey.spec.sweep.models import Spec


def list_axes(spec: Spec) -> list[list[Parameter]]:
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


def make_first_points(spec: Spec, rows: int) -> dict[str, ParameterColumn]:
    """Return the first rows of the product; the last parameter varies fastest."""
    crossed = list_axes(spec)
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
    return {name: found[name] for name in spec.parameters}


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


def draw_points(spec: Spec) -> dict[str, ParameterColumn]:
    """Return the draws of a random search."""
    cap = spec.run_cap or 0
    found: dict[str, ParameterColumn] = {}
    for axis in list_axes(spec):
        draws = islice(generate_draws(spec.seed, axis[0].name), cap)
        found |= _draw_parameter(axis[0], draws) if len(axis) == 1 else _draw_zipped_group(axis, draws)
    return {name: found[name] for name in spec.parameters}


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
