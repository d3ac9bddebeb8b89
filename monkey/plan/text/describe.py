"""Jobs in a few lines: "lr=0.3 × hidden{32,128} × 5 seeds = 10 jobs", "lr 0.0012 … 0.09 (20 draws) = 20 jobs"."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from monkey.plan.text.credential_forms import mask_credentials
from monkey.plan.text.rectangles import JobRectangles, factor_rows
from monkey.plan.text.short_texts import shorten_texts
from monkey.spec.job.job_id import dump_canonical_json
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn, ParameterValue

#: Values that are listed before they are summed up.
_MAX_LISTED_VALUES = 6
#: Characters of one value, unless others look like it then.
MAX_VALUE_CHARACTERS = 32
#: Parameters of whose values the number says all.
_REPLICATE_NAMES = frozenset({"seed", "seeds", "random_seed", "replicate", "repeat", "fold"})
#: An axis that takes more than so many different sets over the rectangles is drawn, not chosen.
_MAX_CHOSEN_SETS = 4
#: Rectangles that are shown of many that are alike.
_MAX_SAMPLES = 3
#: Characters of a bound of a span that is exact.
_MAX_BOUND_CHARACTERS = 14


def describe_jobs(table: JobTable, rows: Sequence[int], limit: int = 8, *, before: JobTable | None = None) -> list[str]:
    """Return at most `limit` (2 or more) lines that tell the rows' jobs, each with its number of jobs.

    A parameter that is the same for all jobs of the table is named only if it was another one in the table `before`.
    """
    if not rows:
        return []
    names = [name for name, column in table.columns.items() if _varies(column) or _differs(column, name, before)]
    axes = [_make_axis(table, name, before) for name in names or table.columns]
    if not names:
        # One job, which is what it is.
        return [_format_jobs([axis.format((axis.column.index[0],)) for axis in axes], len(rows))]
    lines = _RectangleText(axes, factor_rows(table, rows, names))
    everything = list(range(len(lines.rectangles)))
    if len(everything) <= limit:
        return [lines.rectangle(at) for at in everything]
    families = lines.families()
    if len(families) <= limit:
        return [lines.family(members) for members in families]
    chosen = set(lines.largest(limit - 1))
    rest = [at for at in everything if at not in chosen]
    return [*(lines.rectangle(at) for at in sorted(chosen)), "others: " + lines.family(rest)]


class _MatrixAxis(NamedTuple):
    """One parameter of the jobs that a line is about."""

    name: str
    column: ParameterColumn
    #: What formats its values.
    text: Callable[[ParameterValue], str]

    def format(self, axis: Sequence[int]) -> str:
        """Say one axis; nothing for a parameter that none of the jobs has."""
        values = [self.column.values[index] for index in axis if index != ABSENT]
        unset = len(values) < len(axis)
        if not values:
            return ""
        if len(axis) == 1:
            return f"{self.name}={self.text(values[0])}"
        if is_replicate(self.name) and not unset:
            return f"{len(values):,} {_plural(self.name)}"
        if len(axis) <= _MAX_LISTED_VALUES:
            return f"{self.name}{{{','.join([*map(self.text, values), *(['unset'] * unset)])}}}"
        return f"{self.name}{{{self.format_range(values)}{', unset' if unset else ''}, {len(axis):,} values}}"

    def format_range(self, values: Sequence[ParameterValue]) -> str:
        """Say where many values lie: their span if they are numbers, else the first few."""
        if set(map(type, values)) <= {int, float}:
            return f"{_format_bound(min(values))} … {_format_bound(max(values))}"  # type: ignore[type-var,arg-type]  # numbers alone
        shown = list(dict.fromkeys(map(self.text, values)))
        return ",".join(shown[:3]) + (",…" if len(shown) > 3 else "")


def _make_axis(table: JobTable, name: str, before: JobTable | None) -> _MatrixAxis:
    """Return a parameter, whose values differ from each other and from those that it had before."""
    values = list(table.columns[name].values)
    if before is not None and name in before.columns:
        values += before.columns[name].values
    return _MatrixAxis(name, table.columns[name], make_value_format(values))


def _varies(column: ParameterColumn) -> bool:
    index = column.index
    first = index[0] if len(index) else 0
    # A later row usually tells; only a column that is constant is looked through.
    return bool(len(index)) and (index[-1] != first or any(value != first for value in index))


def _differs(column: ParameterColumn, name: str, before: JobTable | None) -> bool:
    """Tell whether a parameter that is the same for all jobs was none, or not this one for all, before."""
    if before is None or not len(column.index):
        return False
    old = before.columns.get(name)
    return old is None or not len(old.index) or _varies(old) or _spell(old) != _spell(column)


def _spell(column: ParameterColumn) -> str:
    index = column.index[0]
    return "" if index == ABSENT else dump_canonical_json(column.values[index])


def _format_jobs(axes: Sequence[str], jobs: int) -> str:
    text = " × ".join(axis for axis in axes if axis)
    count = "1 job" if jobs == 1 else f"{jobs:,} jobs"
    return f"{text} = {count}" if text else count


class _RectangleText:
    """Says rectangles, one or many in a line."""

    def __init__(self, columns: Sequence[_MatrixAxis], rectangles: JobRectangles) -> None:
        self.columns = columns
        self.rectangles = rectangles
        self.jobs = rectangles.jobs()

    def rectangle(self, at: int) -> str:
        return _format_jobs(self.axes(at), self.jobs[at])

    def axes(self, at: int) -> list[str]:
        cells = zip(self.columns, self.rectangles.columns, strict=True)
        return [column.format(self.rectangles.axis(c, numbers[at])) for c, (column, numbers) in enumerate(cells)]

    def largest(self, count: int) -> list[int]:
        """The rectangles that say most in a line; where none does more than the others, a few as samples."""
        order = sorted(range(len(self.jobs)), key=lambda at: -self.jobs[at])[:count]
        return order if self.jobs[order[0]] > self.jobs[order[-1]] else order[:_MAX_SAMPLES]

    def families(self) -> list[list[int]]:
        """Group rectangles that are alike on the axes that are chosen, whatever they are on those that are drawn."""
        chosen = [numbers for numbers in self.rectangles.columns if len(set(numbers)) <= _MAX_CHOSEN_SETS]
        if not chosen:
            return [list(range(len(self.jobs)))]
        groups: dict[tuple[int, ...], list[int]] = {}
        for at, key in enumerate(zip(*chosen, strict=True)):
            groups.setdefault(key, []).append(at)
        return list(groups.values())

    def family(self, members: list[int]) -> str:
        """Say in one line what the rectangles have in common, and the span of what they have not."""
        if len(members) == 1:
            return self.rectangle(members[0])
        chosen = itemgetter(*members)
        distinct = [set(chosen(numbers)) for numbers in self.rectangles.columns]
        drawn = [c for c, numbers in enumerate(distinct) if len(numbers) > 1]
        values = {c: self.values(c, distinct[c]) for c in drawn}
        what = "draws" if any(float in set(map(type, of)) for of in values.values()) else "combinations"
        count = sum(chosen(self.rectangles.jobs(drawn)))
        axes = self.axes(members[0])
        spans = ", ".join(f"{self.columns[c].name} {self.columns[c].format_range(of)}" for c, of in values.items())
        axes[drawn[0]] = f"{spans} ({count:,} {what})"
        kept = [axis for c, axis in enumerate(axes) if c not in drawn[1:]]
        return _format_jobs(kept, sum(chosen(self.jobs)))

    def values(self, column: int, numbers: Collection[int]) -> list[ParameterValue]:
        """All values that the sets hold, in the spec's order."""
        known = self.columns[column].column.values
        return [known[index] for index in self.rectangles.values(column, numbers) if index != ABSENT]


def is_replicate(name: str) -> bool:
    """Return whether a parameter only repeats a configuration, by its name: `seed`, `data.fold`."""
    return name.rpartition(".")[2].lower() in _REPLICATE_NAMES


def _plural(name: str) -> str:
    return name if name.endswith("s") else f"{name}s"


def _format_bound(number: float) -> str:
    """A bound of a span. Of a draw, three digits tell enough: a sign says that they are not all."""
    exact = repr(number)
    return exact if type(number) is int or len(exact) <= _MAX_BOUND_CHARACTERS else f"~{number:.3g}"


def format_value(value: ParameterValue) -> str:
    """Return a value as people write it in a spec, in one line: whole and exact, but for credentials."""
    if isinstance(value, str):
        plain = value and value.isprintable() and not set(value) & set(" ,{}×=\"'") and _is_plain_word(value)
        text = value if plain else json.dumps(value, ensure_ascii=not value.isprintable())
    else:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if not text.isprintable():
            text = json.dumps(value, separators=(",", ":"))
    return mask_credentials(text)


def make_value_format(
    values: Iterable[ParameterValue], width: int = MAX_VALUE_CHARACTERS
) -> Callable[[ParameterValue], str]:
    """Return what formats these values of a parameter, each in `width` characters where that tells it from all others.

    Numbers are never cut. Two values are alike only where they differ in credentials alone.
    """
    # What is cut is a text, a list or a mapping; a sweep may have a million numbers.
    texts = (format_value(value) for value in values if isinstance(value, str | list | dict))
    short = shorten_texts(texts, width)

    def format_shortly(value: ParameterValue) -> str:
        text = format_value(value)
        return short.get(text, text)

    return format_shortly


def _is_plain_word(text: str) -> bool:
    """Would YAML read it as a string? "0.1" and "true" in quotes are not the number and the truth."""
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
