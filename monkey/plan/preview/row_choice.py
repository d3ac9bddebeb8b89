"""The choice of a preview's jobs: the extremes of the matrix first, and then what is farthest from all chosen.

A parameter of numbers asks for its least and its greatest value, any other for each of its values. `when` may leave a
parameter out of some jobs: one of them is asked for, too. The next job is always

1. the one that has most of what is asked for, and that no chosen job has yet;
2. of these, the one that has most of what is asked for: a corner of the matrix;
3. of these, the one that is farthest from the nearest chosen job, then from all chosen jobs together. The distance of
   two numbers is that of their ranks among all values, from 0 to 1. Two other values are 1 apart;
4. of these, the first of the matrix.

So the same jobs always give the same choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn, ParameterValue

#: Rows that are compared with each other; of more, those with most extremes, and as many spread over the matrix.
_MAX_COMPARED_ROWS = 4096
#: The place of a job without the parameter: as far from all values as two others are at most.
_NOWHERE = -1.0


class _PreviewAxis(NamedTuple):
    """One parameter that varies: for each index into its column's values, where that value is, and if it is asked for.

    The last of both is that of ABSENT, which is -1.
    """

    values: Sequence[int]
    places: Sequence[float]
    asked: Sequence[bool]
    is_number: bool


def select_preview_rows(table: JobTable, rows: Sequence[int], most: int) -> list[int]:
    """Return at most so many of these rows of the table, in their order, by the rules above."""
    if len(rows) <= most:
        return list(rows)
    axes = [axis for column in table.columns.values() if (axis := _make_axis(column, rows)) is not None]
    return sorted(_select(axes, _thin_rows(axes, rows), most))


def _make_axis(column: ParameterColumn, rows: Sequence[int]) -> _PreviewAxis | None:
    """Return the axis of a parameter; None where it is the same in all rows."""
    used = set(map(column.index.__getitem__, rows))
    if len(used) < 2:
        return None
    there = sorted(used - {ABSENT})
    is_number = all(map(_is_number, map(column.values.__getitem__, there)))
    ranked = sorted(there, key=column.values.__getitem__) if is_number else there  # type: ignore[arg-type]  # numbers
    places, asked = [_NOWHERE] * (len(column.values) + 1), [False] * (len(column.values) + 1)
    for rank, at in enumerate(ranked):
        places[at] = rank / max(1, len(ranked) - 1) if is_number else float(rank)
        asked[at] = not is_number or rank in (0, len(ranked) - 1)
    asked[ABSENT] = ABSENT in used
    return _PreviewAxis(column.index, places, asked, is_number)


def _is_number(value: ParameterValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _thin_rows(axes: Iterable[_PreviewAxis], rows: Sequence[int]) -> Sequence[int]:
    if len(rows) <= _MAX_COMPARED_ROWS:
        return rows
    counts = [0] * len(rows)
    for axis in axes:
        asked, index = axis.asked, axis.values
        counts = [count + asked[index[row]] for count, row in zip(counts, rows, strict=True)]
    half = _MAX_COMPARED_ROWS // 2
    extreme = [row for _, row in sorted(zip(counts, rows, strict=True), key=lambda one: -one[0])[:half]]
    step = len(rows) / half
    return sorted({*extreme, *(rows[int(at * step)] for at in range(half))})


def _select(axes: Sequence[_PreviewAxis], rows: Sequence[int], most: int) -> list[int]:
    wanted = {row: _list_asked(axes, row) for row in rows}
    #: The distance from the nearest chosen row, and from all of them together.
    far = dict.fromkeys(rows, (float("inf"), 0.0))
    chosen: list[int] = []
    met: set[tuple[int, int]] = set()
    while len(chosen) < most:
        # The first of those that are as good: `max` keeps it.
        row = max(far, key=lambda row: (len(wanted[row] - met), len(wanted[row]), far[row]))
        chosen.append(row)
        met |= wanted[row]
        del far[row]
        for other, (nearest, total) in far.items():
            apart = _measure(axes, row, other)
            far[other] = min(nearest, apart), total + apart
    return chosen


def _list_asked(axes: Sequence[_PreviewAxis], row: int) -> frozenset[tuple[int, int]]:
    """Return what a row has of the values that are asked for, each as its axis and its index."""
    indexes = map(itemgetter(row), (axis.values for axis in axes))
    return frozenset((at, index) for at, index in enumerate(indexes) if axes[at].asked[index])


def _measure(axes: Sequence[_PreviewAxis], one: int, other: int) -> float:
    """Return how far two rows are from each other, over all parameters."""
    far = 0.0
    for index, places, _, is_number in axes:
        here, there = places[index[one]], places[index[other]]
        both = here != _NOWHERE and there != _NOWHERE
        far += abs(here - there) if is_number and both else float(here != there)
    return far
