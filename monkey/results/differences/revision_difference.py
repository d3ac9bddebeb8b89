"""Two revisions, compared: what their sweeps want, which jobs that changes, and by which settings they run."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from monkey.plan.explain import find_setting_changes
from monkey.plan.jobs.matching import match_rows
from monkey.plan.text.describe import describe_jobs
from monkey.plan.text.value_keys import make_value_key
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.revision import NumberedRevision, Revision
from monkey.results.differences.code_difference import compare_code
from monkey.results.differences.data_difference import compare_data
from monkey.results.differences.difference import Difference, JobsDifference, PartDifference
from monkey.results.differences.job_difference import compare_recipes
from monkey.results.differences.value_change import NO_VALUE, ValueChange, compare_values
from monkey.spec.job.job_table import ABSENT, JobTable
from monkey.store.store_port import Store


async def compare_revisions(store: Store, keys: Keys, before: NumberedRevision, after: NumberedRevision) -> Difference:
    """Return what differs between two revisions, of one sweep or of two. Raises StoreError, OSError."""
    old, new = before.revision, after.revision
    code = await compare_code(store, keys, old, new)
    data = await compare_data(store, old.recipe.datasets, new.recipe.datasets)
    parts = (
        PartDifference("space", tuple(_compare_spaces(old.table, new.table))),
        PartDifference("settings", _compare_settings(old, new)),
        *compare_recipes(old, new),
    )
    found = tuple(part for part in parts if part.changes)
    return Difference("revision", _describe(before), _describe(after), found, code, data, _compare_tables(old, new))


def _describe(one: NumberedRevision) -> dict[str, Any]:
    revision, git = one.revision, one.revision.git or {}
    told = {"sweep": revision.sweep, "revision": one.number, "author": revision.author, "at": revision.at}
    return told | ({"commit": git["commit"], "dirty": git.get("dirty", False)} if git.get("commit") else {})


def _compare_settings(before: Revision, after: Revision) -> tuple[ValueChange, ...]:
    changes = find_setting_changes(before.settings, after.settings)
    # Names of secrets are compared with the env, which they are a part of.
    told = [one for one in changes if one.name != "secrets"]
    masked = compare_values(*({one.name: getattr(one, side) for one in told} for side in ("before", "after")))
    return tuple(masked)


def _compare_spaces(before: JobTable, after: JobTable) -> Iterator[ValueChange]:
    """Yield each parameter with the values that one side alone has; `NO_VALUE` where it is no parameter."""
    old, new = _list_values(before), _list_values(after)
    for name in dict.fromkeys((*new, *old)):
        sides = old.get(name), new.get(name)
        alone = [
            NO_VALUE if mine is None else [value for key, value in mine.items() if key not in (theirs or {})]
            for mine, theirs in (sides, sides[::-1])
        ]
        if any(alone):
            yield ValueChange(name, *alone)


def _list_values(table: JobTable) -> dict[str, dict[object, Any]]:
    """Return each parameter's values that jobs have, in the spec's order, by what tells them apart."""
    found = {}
    for name, column in table.columns.items():
        used = set(column.index) - {ABSENT}
        found[name] = {make_value_key(value): value for at, value in enumerate(column.values) if at in used}
    return found


def _compare_tables(before: Revision, after: Revision) -> JobsDifference | None:
    old, new = before.table, after.table
    fresh = array("i", (row for row, job in enumerate(new.ids) if job not in before.rows))
    gone = array("i", (row for row, job in enumerate(old.ids) if job not in after.rows))
    if not fresh and not gone:
        return None
    matched = match_rows(new, fresh, old, gone)
    lost = [row for row in gone if row not in matched.replaced]
    return JobsDifference(
        tuple(new.ids[row] for row in matched.unmatched),
        tuple(old.ids[row] for row in lost),
        tuple((old.ids[a], new.ids[b]) for a, b in zip(matched.before, matched.rows, strict=True)),
        len(new) - len(fresh),
        tuple(describe_jobs(new, matched.unmatched, before=old)),
        tuple(describe_jobs(old, lost, before=new)),
    )
