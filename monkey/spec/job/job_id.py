"""Who a job is: 16 hex digits of SHA-256 over the canonical JSON of its recipe and parameters.

No job's JSON is ever built: all jobs of a sweep share a prefix that is hashed once, and each distinct value is encoded
once. `tests/unit/spec/job/test_job_id.py` holds this against the plain way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from monkey.spec.job.job_table import JobTable, ParameterColumn, ParameterValue
from monkey.spec.job.recipe import Recipe

#: Hex digits of a job's identity.
_JOB_ID_DIGITS = 16


def dump_canonical_json(value: ParameterValue | dict[str, Any]) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no escapes that UTF-8 does not need."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def assign_job_ids(table: JobTable, recipe: Recipe) -> JobTable:
    """Return the table with the identity of every row filled in."""
    prefix, suffix = _encode_recipe(recipe)
    start = hashlib.sha256(prefix)
    ids = []
    for members in _encode_parameters(table.columns, len(table)):
        digest = start.copy()
        digest.update(b"{%b}%b" % (members[1:], suffix))
        ids.append(digest.hexdigest()[:_JOB_ID_DIGITS])
    return JobTable(ids=ids, columns=table.columns)


def _encode_recipe(recipe: Recipe) -> tuple[bytes, bytes]:
    """Return what stands before and after the parameters in every job's JSON."""
    parts = {**recipe.to_json(), "parameters": None}
    before = ",".join([f'"{key}":{dump_canonical_json(parts[key])}' for key in sorted(parts) if key < "parameters"])
    after = "".join([f',"{key}":{dump_canonical_json(parts[key])}' for key in sorted(parts) if key > "parameters"])
    return f'{{{before},"parameters":'.encode(), f"{after}}}".encode()


def _encode_parameters(columns: dict[str, ParameterColumn], rows: int) -> Iterator[bytes]:
    """Yield for each row the members of its parameters' JSON object, each with a comma before it."""
    if not columns:
        return iter([b""] * rows)
    tree: dict[str, Any] = {}
    for name, column in columns.items():
        *groups, leaf = name.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
        branch[leaf] = column
    return _encode_rows(tree)


def _encode_rows(tree: dict[str, Any]) -> Iterator[bytes]:
    parts = [_encode_member(name, tree[name]) for name in sorted(tree)]
    return map(b"".join, zip(*parts, strict=True))


def _encode_member(name: str, inside: ParameterColumn | dict[str, Any]) -> Iterable[bytes]:
    if isinstance(inside, ParameterColumn):
        return _encode_column(name, inside)
    head = f',"{name}":{{'.encode()
    return (b"%b%b}" % (head, members[1:]) if members else b"" for members in _encode_rows(inside))


def _encode_column(name: str, column: ParameterColumn) -> Iterator[bytes]:
    """Yield each row's value as a member of an object, nothing where it is absent."""
    head = f',"{name}":'.encode()
    plain = all(type(value) is int or type(value) is float for value in column.values)
    encode = repr if plain else dump_canonical_json
    if len(column.values) * 2 > len(column.index):  # hardly a value comes twice: do not hold their texts
        values = column.values
        return (head + encode(values[at]).encode() if at >= 0 else b"" for at in column.index)
    texts = [head + encode(value).encode() for value in column.values]
    return map([*texts, b""].__getitem__, column.index)  # ABSENT is -1, the last
