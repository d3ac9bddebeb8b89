"""Which unwanted job a wanted one takes the place of: the one with the same values of the parameters both have."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from monkey.plan.text.value_keys import make_value_key
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn


class RowMatches(NamedTuple):
    """Rows of the new table, for each its row of the old one; and every old row that some new one stands for."""

    rows: Sequence[int]
    before: Sequence[int]
    replaced: frozenset[int]
    #: Rows of the new table that stand for none.
    unmatched: Sequence[int]


def match_rows(new: JobTable, rows: Sequence[int], old: JobTable, old_rows: Sequence[int]) -> RowMatches:
    """Match rows of `new` with rows of `old` by the columns that both tables have.

    Tables that share no column are strangers, unless neither has any. Of several old rows the first is taken.
    """
    names = [name for name in new.columns if name in old.columns]
    if not rows or not old_rows or (not names and (new.columns or old.columns)):
        return RowMatches(array("i"), array("i"), frozenset(), rows)
    if len(rows) == len(old_rows) and _has_same_rows(new, rows, old, old_rows):
        return RowMatches(rows, old_rows, frozenset(old_rows), ())
    old_keys, new_keys = [0] * len(old_rows), [0] * len(rows)
    for name in names:
        codes = _number_values(old.columns[name])
        _append_digits(old_keys, old.columns[name], old_rows, codes, len(codes) + 2)
        _append_digits(new_keys, new.columns[name], rows, codes, len(codes) + 2)
    # Reversed, so that the first of equal keys stays.
    first = dict(zip(reversed(old_keys), reversed(old_rows), strict=True))
    found = [first.get(key, -1) for key in new_keys]
    hit = set(new_keys)
    return RowMatches(
        array("i", (row for row, at in zip(rows, found, strict=True) if at >= 0)),
        array("i", (at for at in found if at >= 0)),
        frozenset(row for row, key in zip(old_rows, old_keys, strict=True) if key in hit),
        array("i", (row for row, at in zip(rows, found, strict=True) if at < 0)),
    )


def _has_same_rows(new: JobTable, rows: Sequence[int], old: JobTable, old_rows: Sequence[int]) -> bool:
    """Are both tables the same jobs in the same order? So they are after a change of the code alone, the usual one."""
    return (
        list(new.columns) == list(old.columns)
        and all(array("i", new.columns[n].index) == array("i", old.columns[n].index) for n in new.columns)
        and all(
            list(map(make_value_key, new.columns[n].values)) == list(map(make_value_key, old.columns[n].values))
            for n in new.columns
        )
        and array("i", rows) == array("i", old_rows)
    )


def _number_values(column: ParameterColumn) -> dict[object, int]:
    """Number the column's distinct values; 0 is for no value, one more than all for a value not among them."""
    codes: dict[object, int] = {}
    for value in column.values:
        codes.setdefault(make_value_key(value), len(codes) + 1)
    return codes


def _append_digits(
    keys: list[int], column: ParameterColumn, rows: Sequence[int], codes: dict[object, int], base: int
) -> None:
    """Append one digit to each row's key."""
    digits = [codes.get(make_value_key(value), base - 1) for value in column.values]
    digits.append(0)
    # A list's last element answers for index -1, which is what ABSENT is.
    assert ABSENT == -1
    index = column.index
    keys[:] = [key * base + digits[index[row]] for key, row in zip(keys, rows, strict=True)]
