"""From a spec to its jobs, as columns: a million of them in a few seconds and little memory.

Points (`matrix_points`: product or draws, then `when`) → exclude → equal points collapse → run_cap (grid) → repeats →
exclude → include.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from itertools import compress, product

from monkey.spec.command.command import compile_command
from monkey.spec.job.job_table import ABSENT, JobTable, ParameterColumn, ParameterValue
from monkey.spec.parameters.include_exclude import find_value_indexes, flatten_row
from monkey.spec.parameters.ranges import count_values
from monkey.spec.sweep.matrix_points import count_points, deduplicate_values, make_points, make_repeated_points
from monkey.spec.sweep.models import MAX_JOBS, Spec
from monkey.spec.yaml.mistakes import Mistake, MistakesError, make_mistake_error

#: In the place of identities that `identify` has yet to fill in.
_NO_ID = ""


def expand_spec(spec: Spec) -> tuple[JobTable, tuple[str, ...]]:
    """Return the sweep's jobs, without identities, and sentences for its author, such as of draws that came out equal.

    Raises SpecError for what shows only now (a `when` that fails).
    """
    try:
        columns, rows, notes = _make_random_jobs(spec) if spec.method == "random" else _make_grid_jobs(spec)
        if spec.repeat:
            columns, rows = make_repeated_points(columns, rows, spec.repeat)
            columns, rows = _keep_rows(columns, _mark_kept_rows(spec, columns, rows))
        columns, rows = _add_included_jobs(spec, columns, rows)
        if not rows:
            hint = "remove one of its rows; to end a sweep, `monkey cancel` it"
            raise make_mistake_error("no job is left: exclude takes all of them out", hint, ("exclude",))
        _check_command(spec, columns)
    except MistakesError as error:
        raise spec.document.error(error.mistakes) from error
    return JobTable(ids=[_NO_ID] * rows, columns=columns), notes


def _make_random_jobs(spec: Spec) -> tuple[dict[str, ParameterColumn], int, tuple[str, ...]]:
    """Return the jobs of a random search, and a sentence if they are fewer than its draws."""
    drawn = spec.run_cap or 0
    columns, rows = _reduce_rows(spec, make_points(spec, drawn), drawn if spec.parameters else 1)
    if rows == drawn:
        return columns, rows, ()
    why = "equal to one before, or excluded" if spec.exclude else "equal to one before"
    noun = "point" if spec.repeat else "job"
    jobs = f"{rows:,} {noun}{'' if rows == 1 else 's'}"
    return columns, rows, (f"the {drawn:,} draws of run_cap make {jobs}; {drawn - rows:,} came out {why}",)


def _make_grid_jobs(spec: Spec) -> tuple[dict[str, ParameterColumn], int, tuple[str, ...]]:
    """Return the jobs of a grid; with a run_cap, without making many more points than that."""
    points = count_points(spec)
    made = points if spec.run_cap is None else min(points, spec.run_cap)
    while True:
        columns, rows = _reduce_rows(spec, make_points(spec, made), made)
        if made == points or rows == spec.run_cap:
            return columns, rows, ()
        if made == MAX_JOBS:
            message = f"of the first {MAX_JOBS:,} points, only {rows:,} are jobs of their own and not excluded"
            raise make_mistake_error(message, "lower the run_cap, or put parameters that matter last", ("run_cap",))
        made = min(points, made * 4, MAX_JOBS)


def _reduce_rows(spec: Spec, columns: dict[str, ParameterColumn], rows: int) -> tuple[dict[str, ParameterColumn], int]:
    """Leave out what is excluded, what stands there already, and what is over the cap."""
    keep = _mark_kept_rows(spec, columns, rows)
    if spec.method == "random" or any(p.when for p in spec.parameters.values()) or spec.zip:
        _drop_repeated_rows(columns, rows, keep)
    if spec.method == "grid" and spec.run_cap is not None:
        _apply_cap(keep, spec.run_cap)
    return _keep_rows(columns, keep)


def _mark_kept_rows(spec: Spec, columns: dict[str, ParameterColumn], rows: int) -> bytearray:
    """Return a 1 for each row that is not excluded."""
    keep = bytearray(b"\1") * rows
    for names, rules in _find_excluded_rows(spec, columns).items():
        for row, key in enumerate(zip(*(columns[name].index for name in names), strict=True)):
            if key in rules:
                keep[row] = 0
    return keep


def _keep_rows(columns: dict[str, ParameterColumn], keep: bytearray) -> tuple[dict[str, ParameterColumn], int]:
    """Return the rows that are marked by a 1, and their number."""
    kept = keep.count(1)
    if kept == len(keep):
        return columns, kept
    return {n: ParameterColumn(c.values, array("i", compress(c.index, keep))) for n, c in columns.items()}, kept


def _apply_cap(keep: bytearray, cap: int) -> None:
    kept = 0
    for row, flag in enumerate(keep):
        kept += flag
        if kept > cap:
            keep[row:] = bytes(len(keep) - row)
            return


def _find_excluded_rows(
    spec: Spec, columns: Mapping[str, ParameterColumn]
) -> dict[tuple[str, ...], set[tuple[int, ...]]]:
    """Return the rows to exclude, by the parameters they name, each value by its index."""
    rules: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    for raw in spec.exclude:
        row = flatten_row(raw, columns)
        names = tuple(sorted(row))
        if not row.keys() <= columns.keys():
            continue  # A row that names a repeat concerns jobs, not points.
        key = tuple(find_value_indexes(columns[name].values, row[name]) for name in names)
        rules.setdefault(names, set()).update(product(*key))  # several where values are equal as numbers: 1, 1.0
    return rules


def _drop_repeated_rows(columns: Mapping[str, ParameterColumn], rows: int, keep: bytearray) -> None:
    """Keep the first of equal rows: each row is one number, its indexes as digits."""
    if any(len(c.values) >= rows and len(set(c.index)) == rows for c in columns.values()):
        return
    keys = [0] * rows
    for column in columns.values():
        base = len(column.values) + 1
        keys = [key * base + at + 1 for key, at in zip(keys, column.index, strict=True)]
    seen: set[int] = set()
    for row, key in enumerate(keys):
        if key in seen:
            keep[row] = 0
        elif keep[row]:
            seen.add(key)


def _add_included_jobs(
    spec: Spec, columns: dict[str, ParameterColumn], rows: int
) -> tuple[dict[str, ParameterColumn], int]:
    """Add the jobs of `include` that are not there yet."""
    if not spec.include:
        return columns, rows
    added = [row for raw in spec.include for row in _complete_rows(spec, flatten_row(raw, columns))]
    grown = {}
    for name, column in columns.items():
        extra = [row[name] for row in added if name in row]
        values, index = deduplicate_values([*column.values, *extra])
        places = iter(
            range(len(column.values), len(column.values) + len(extra))
            if index is None
            else index[-len(extra) :]
            if extra
            else ()
        )
        whole = array("i", column.index)
        whole.extend(next(places) if name in row else ABSENT for row in added)
        grown[name] = ParameterColumn(values, whole)
    rows += len(added)
    keep = bytearray(b"\1") * rows
    _drop_repeated_additions(grown, rows - len(added), keep)
    return _keep_rows(grown, keep)


def _drop_repeated_additions(columns: Mapping[str, ParameterColumn], old: int, keep: bytearray) -> None:
    """Drop rows from `old` on that equal one before them."""
    new: dict[tuple[int, ...], int] = {}
    indexes = [c.index for c in columns.values()]
    for row in range(old, len(keep)):
        key = tuple(index[row] for index in indexes)
        keep[row] = new.setdefault(key, row) == row
    for key in zip(*(index[:old] for index in indexes), strict=True):
        if key in new:
            keep[new[key]] = 0


def _complete_rows(spec: Spec, row: dict[str, ParameterValue]) -> Iterator[dict[str, ParameterValue]]:
    """Add the parameters that can have only one value, and all values of the repeats that the row does not name."""
    only = {
        p.name: p.choices[0]
        for p in spec.parameters.values()
        if not p.when and p.choices is not None and count_values(p.choices) == 1
    }
    repeats = {name: parameter.choices or () for name, parameter in spec.repeat.items() if name not in row}
    for values in product(*repeats.values()):
        yield {**only, **row, **dict(zip(repeats, values, strict=True))}


def _check_command(spec: Spec, columns: Mapping[str, ParameterColumn]) -> None:
    """Refuse a command that some job has no value for."""
    uses = compile_command(spec.command, spec.all_parameters).uses
    mistakes = []
    for name in spec.parameters:
        if name in uses and ABSENT in columns[name].index:
            message = f"the command uses {name!r}, but some jobs do not have it (its 'when' does not hold there)"
            hint = f"give {name} an 'else: VALUE' beside its 'when', or let the program read it from MONKEY_PARAMS"
            mistakes.append(Mistake(("command",), message, hint))
    if mistakes:
        raise MistakesError(mistakes)
