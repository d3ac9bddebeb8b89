"""The names of columns of results: parameters, metrics and our own columns share one flat namespace.

Our own columns keep their names. A parameter with such a name is `parameter.NAME`, and a metric with the name of a
parameter or of ours `metric.NAME`. Tables, files, plots, the page and conditions follow this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from monkey.spec.yaml.mistakes import NodePath

#: What jobs used of their machines, in the order of columns.
USAGES = ("cpus", "memory_bytes", "gpu_percent", "gpu_memory_bytes")
#: Our own columns of jobs in files and conditions. Their names are reserved everywhere, whether they are shown or not.
OWN_COLUMNS = ("job", "state", "counts", "diverged", "seconds", "attempt", *USAGES, "reason", "host", "signature")


class ColumnNames(NamedTuple):
    """Parameter to its column, and metric to its column."""

    parameters: Mapping[str, str]
    metrics: Mapping[str, str]


def name_columns(
    parameters: Iterable[str], metrics: Iterable[str], ours: Collection[str] = (), parts: Sequence[str] = ("",)
) -> ColumnNames:
    """Return the columns of all parameters and metrics of a sweep; no two are the same.

    `ours`: what else is a column of ours in this table. `parts`: ends of the columns that a metric has there.
    """
    taken = {*OWN_COLUMNS, *ours}
    return ColumnNames(_name(parameters, "parameter", taken), _name(sorted(metrics), "metric", taken, parts))


def _name(names: Iterable[str], kind: str, taken: set[str], parts: Sequence[str] = ("",)) -> dict[str, str]:
    found = {}
    # Those that are free come first: a prefix must not make the name of another.
    for name in sorted(names, key=taken.__contains__):
        column = name
        while any(column + part in taken for part in parts):
            column = f"{kind}.{column}"
        taken.update(column + part for part in parts)
        found[name] = column
    return found


def mark_last_values(columns: ColumnNames, exempt: Collection[str | None]) -> ColumnNames:
    """Return columns in which all metrics but these say that they are last values, where a row's metric is the best."""
    marked = {name: column if name in exempt else f"{column} (last)" for name, column in columns.metrics.items()}
    return columns._replace(metrics=marked)


def list_spellings(columns: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return what users may write for each name: its column first, then the bare name, then that with the prefix."""
    prefixed = {f"{kind}.{name}": name for name in columns}
    return prefixed | {name: name for name in columns} | {column: name for name, column in columns.items()}


def explain_columns(parameters: Iterable[str], metric: str | None) -> Iterator[tuple[NodePath, str]]:
    """Yield the place in a spec of each name whose column has another name, and a sentence on it.

    `metric` is the metric that ranks.
    """
    columns = name_columns(parameters, [metric] if metric else [])
    for name, column in columns.parameters.items():
        if column != name:
            yield ("parameters", name), f"parameter `{name}` is column `{column}` in results"
    for name, column in columns.metrics.items():
        if column != name:
            yield ("metric", "name"), f"metric `{name}` is column `{column}` in results"
