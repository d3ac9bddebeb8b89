"""The job matrix as columns: what a revision stores and what agents read. No pydantic here: agents import this."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

#: What a parameter may be: anything JSON can say, NaN and infinities excepted.
ParameterValue = None | bool | int | float | str | list[Any] | dict[str, Any]

#: In `ParameterColumn.index`: this job does not have this parameter (its `when` was false).
ABSENT = -1
#: Levels of nesting that a value may have: more than any spec can write.
_MOST_LEVELS = 64
#: Characters of a job's parameters in its label.
_LABEL_CHARACTERS = 80


@dataclass(frozen=True)
class ParameterColumn:
    """One parameter over all jobs: its distinct values, and for each job the index of its value (or ABSENT)."""

    values: Sequence[ParameterValue]
    index: Sequence[int]


@dataclass(frozen=True)
class JobTable:
    """All jobs of a sweep: `ids[row]` is a job's identity, `columns[name].index[row]` says its value.

    Names of nested parameters are dotted ("optimizer.lr"). Order of columns is the spec's.
    """

    ids: Sequence[str] = ()
    columns: dict[str, ParameterColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def parameters(self, row: int) -> dict[str, ParameterValue]:
        """Return the job's parameters under their dotted names, in the spec's order."""
        return {
            name: column.values[column.index[row]]
            for name, column in self.columns.items()
            if column.index[row] != ABSENT
        }

    @cached_property
    def varying(self) -> frozenset[str]:
        """The parameters that are not the same in all jobs."""
        return frozenset(name for name, column in self.columns.items() if len(set(column.index)) > 1)

    def label(self, row: int) -> str:
        """Return what tells a job from the others, for people: "lr=0.1, seed=3 · 0123456789abcdef"."""
        told = {name: value for name, value in self.parameters(row).items() if name in self.varying}
        texts = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in told.items()]
        whole = ", ".join(texts)
        cut = whole if len(whole) <= _LABEL_CHARACTERS else f"{whole[: _LABEL_CHARACTERS - 1]}…"
        return " · ".join(filter(None, (cut, self.ids[row])))

    def rows(self) -> Iterator[tuple[str, dict[str, ParameterValue]]]:
        """Yield (id, parameters) of every job."""
        return ((job, self.parameters(row)) for row, job in enumerate(self.ids))

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {
            "ids": "".join(self.ids),
            "columns": {n: {"values": list(c.values), "index": list(c.index)} for n, c in self.columns.items()},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> JobTable:
        """Read what `to_json` wrote. Raises ValueError for ids that are none, and columns that do not fit."""
        text = data["ids"]
        if len(text) % 16 or bytes.fromhex(text).hex() != text:
            raise ValueError("its ids are not of 16 hex digits each")
        ids = [text[at : at + 16] for at in range(0, len(text), 16)]
        _check_names(data["columns"])
        return cls(ids, {name: _read_column(name, raw, len(ids)) for name, raw in data["columns"].items()})


def _check_names(names: Collection[str]) -> None:
    """Raise ValueError if one parameter lies in another, as `a.b` in `a`: no job's id can be made of them."""
    for name in names:
        *groups, _ = name.split(".")
        if any(".".join(groups[:count]) in names for count in range(1, len(groups) + 1)):
            raise ValueError(f"column {name!r:.40} lies in another")


def _read_column(name: str, raw: dict[str, Any], jobs: int) -> ParameterColumn:
    values, index = raw["values"], raw["index"]
    if not isinstance(values, list) or not isinstance(index, list) or len(index) != jobs:
        raise ValueError(f"column {name!r:.40} has no value for each job")
    # Quick, since there may be a million jobs: a set is, as long as it is small.
    pointed = set(index) if len(values) < 128 else index
    if index and (min(pointed) < ABSENT or max(pointed) >= len(values)):
        raise ValueError(f"column {name!r:.40} points to a value that it does not have")
    if any(isinstance(value, list | dict) and _is_deep(value) for value in values):
        raise ValueError(f"column {name!r:.40} has a value of more than {_MOST_LEVELS} levels")
    if not _is_hashable(name, values):
        raise ValueError(f"column {name!r:.40} holds what no job's id can be made of")
    return ParameterColumn(values, array("i", index))


def _is_hashable(name: str, values: list[Any]) -> bool:
    """Return whether it can be written as UTF-8 and strict JSON: half a surrogate pair cannot, nor can NaN."""
    plain = all(type(value) is int or type(value) is float for value in values)
    try:
        json.dumps([name] if plain else [name, values], ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return True


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MOST_LEVELS):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in inner for item in items if isinstance(item, list | dict)]
        if not level:
            return False
    return True


def nest_parameters(parameters: dict[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Turn {"optimizer.lr": 1} into {"optimizer": {"lr": 1}}, as MONKEY_PARAMS shows it."""
    tree: dict[str, Any] = {}
    for name, value in parameters.items():
        *groups, leaf = name.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
        branch[leaf] = value
    return tree
