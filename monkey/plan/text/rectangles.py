"""A set of jobs as few rectangles: products of values, so that people read ten jobs as one line.

Rows begin as points. Points that differ in one column alone merge into one rectangle, whose value there is a set. One
such merge for every column leaves disjoint rectangles that merge no further. For given values of the other columns, the
merged column has one set, which stays the only one. To find the fewest rectangles is a hard problem: these are few, and
take linear time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from monkey.spec.job.job_table import JobTable

#: Number of cells (rows × columns) up to which more than one order of the columns is tried.
_MAX_REORDERED_CELLS = 200_000


def factor_rows(table: JobTable, rows: Sequence[int], names: Sequence[str]) -> JobRectangles:
    """Return disjoint rectangles over the named columns that together are the rows, in the table's order.

    Any two rows must differ in some named column. Unrelated rows (a random search) stay a rectangle each:
    `describe` sums those up.
    """
    columns = [_select_indexes(table.columns[name].index, rows) for name in names]
    whole = [set(column) for column in columns]
    if len(rows) == prod(map(len, whole)):
        return JobRectangles.of_all([sorted(values) for values in whole])
    orders = _list_column_orders([len(values) for values in whole])
    if len(rows) * len(names) > _MAX_REORDERED_CELLS:
        orders = orders[:1]
    bases = [max(values, default=0) + 2 for values in whole]
    return min((JobRectangles(columns, bases).merged(order) for order in orders), key=len)


def _select_indexes(index: Sequence[int], rows: Sequence[int]) -> list[int]:
    """Return the indexes of the rows' values, each plus one: 0 stands for an absent value."""
    if isinstance(rows, range) and rows == range(len(index)):
        return [value + 1 for value in index]
    return [index[row] + 1 for row in rows]


def _list_column_orders(sizes: list[int]) -> list[list[int]]:
    """Return the orders of columns worth a try, the column of most values first: it shrinks the points soonest."""
    columns = range(len(sizes))
    descending = sorted(columns, key=lambda c: -sizes[c])
    orders: list[list[int]] = []
    for order in (descending, list(columns), descending[::-1], [*columns][::-1]):
        if order not in orders:
            orders.append(order)
    return orders


class JobRectangles:
    """Rectangles: for each column, a list of one number for each rectangle, which stands for a set of values.

    A number below the column's base is a set of one: the value's index in the table's column, plus one.
    """

    def __init__(self, columns: list[list[int]], bases: list[int]) -> None:
        """Start with points: `columns` has one list of numbers for each column, `bases` each column's base."""
        self.columns = columns
        self._bases = bases
        self._sets: list[list[tuple[int, ...]]] = [[] for _ in columns]
        self._numbers: list[dict[tuple[int, ...], int]] = [{} for _ in columns]

    @classmethod
    def of_all(cls, values: list[list[int]]) -> JobRectangles:
        """Return the one rectangle of all combinations of these values."""
        whole = cls([[] for _ in values], [max(column, default=0) + 1 for column in values])
        if all(values):
            whole.columns = [[whole._union(at, tuple(column))] for at, column in enumerate(values)]
        return whole

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def axis(self, column: int, number: int) -> tuple[int, ...]:
        """Return the set `number` as indexes of the table's column, ABSENT first if the set has it."""
        return tuple(value - 1 for value in self._members(column, number))

    def values(self, column: int, numbers: Collection[int]) -> list[int]:
        """Return all values of these sets, as sorted indexes of the table's column."""
        base, sets = self._bases[column], self._sets[column]
        found = set(numbers)
        if sets:
            found = {number for number in numbers if number < base}
            found.update(*(sets[number - base] for number in numbers if number >= base))
        return [value - 1 for value in sorted(found)]

    def size(self, column: int, number: int) -> int:
        """Return the number of values in the set."""
        return 1 if number < self._bases[column] else len(self._sets[column][number - self._bases[column]])

    def jobs(self, columns: Sequence[int] | None = None) -> list[int]:
        """Return the number of combinations of each rectangle over these columns; over all columns, of its jobs."""
        counts = [1] * len(self)
        for at in range(len(self.columns)) if columns is None else columns:
            if self._sets[at]:
                counts = [n * self.size(at, number) for n, number in zip(counts, self.columns[at], strict=True)]
        return counts

    def merged(self, order: list[int]) -> JobRectangles:
        """Merge along each of the columns, in this order; return self."""
        for column in order:
            self._merge(column)
        return self

    def _merge(self, column: int) -> None:
        """Merge the rectangles that differ in this column alone."""
        if any(at != column and self._all_differ(at) for at in range(len(self.columns))):
            return
        keys = self._keys(column)
        last = dict(zip(keys, range(len(keys)), strict=True))
        if len(last) == len(keys):
            return
        groups: dict[int, list[int]] = {key: [] for key in last}
        for key, number in zip(keys, self.columns[column], strict=True):
            groups[key].append(number)
        merged = [self._union(column, tuple(numbers)) for numbers in groups.values()]
        places = [last[key] for key in groups]
        self.columns = [
            merged if at == column else [numbers[place] for place in places] for at, numbers in enumerate(self.columns)
        ]

    def _all_differ(self, column: int) -> bool:
        """Return whether each rectangle has a set of its own here: then no two differ in another column alone."""
        numbers = self.columns[column]
        return self._limit(column) >= len(numbers) == len(set(numbers))

    def _limit(self, column: int) -> int:
        return self._bases[column] + len(self._sets[column])

    def _keys(self, column: int) -> list[int]:
        """Return a key for each rectangle, equal for those that agree in all columns but this one."""
        others = [at for at in range(len(self.columns)) if at != column]
        keys = self.columns[others[0]] if others else [0] * len(self)
        for at in others[1:]:
            limit = self._limit(at)
            keys = [key * limit + number for key, number in zip(keys, self.columns[at], strict=True)]
        return keys

    def _members(self, column: int, number: int) -> tuple[int, ...]:
        return (number,) if number < self._bases[column] else self._sets[column][number - self._bases[column]]

    def _union(self, column: int, numbers: tuple[int, ...]) -> int:
        """Return the number of the set that holds all values of these sets."""
        if len(numbers) == 1:
            return numbers[0]
        members = tuple(sorted(value for number in numbers for value in self._members(column, number)))
        number = self._numbers[column].setdefault(members, self._limit(column))
        if number == self._limit(column):
            self._sets[column].append(members)
        return number
