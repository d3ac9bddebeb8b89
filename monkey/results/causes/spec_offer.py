"""What a rule of failures suggests for the spec: a change that leaves out the jobs that would fail, as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import product
from typing import Any

from monkey.metrics.usage import MEMORY_EXCEEDED
from monkey.plan.sizes import suggest_memory
from monkey.protocol.status.store_snapshot import SweepView
from monkey.protocol.sweeps.revision import Revision
from monkey.results.causes.failure_rule import FailureRule, RuleCondition
from monkey.results.failure_kinds import FailureKind
from monkey.spec.job.job_table import ABSENT, ParameterColumn
from monkey.spec.yaml.spec_edit import SpecEdit

#: Rows of `exclude` that are offered at most.
_MAX_ROWS = 12
#: A job that was killed had asked for too little memory if it used at least this share of it.
_NEAR = 0.75
#: Jobs of a kind whose usage is looked at.
_LOOKED_AT = 100
#: Conditions whose opposite is another condition.
_OPPOSITE = {">=": "<", "<": ">=", "==": "!="}


def suggest_change(view: SweepView, kind: FailureKind, rule: FailureRule | None) -> list[str]:
    """Return a diff of the spec, in lines, that would spare such failures; [] where none would be right.

    A kill for want of memory asks for more of it. Else the rule's values of a grid are excluded, the bounds of a draw
    narrowed, or a draw gets a `when`.
    """
    revision = view.state.revision
    if revision is None:
        return []
    try:
        edit = SpecEdit(revision.spec_text)
    except ValueError:
        return []
    changed = _raise_memory(view, kind, revision, edit)
    if changed is None and rule is not None and all(each.name in revision.table.columns for each in rule.conditions):
        changed = _spare_jobs(revision, rule.conditions, edit)
    if changed is None:
        return []
    before, after = revision.spec_text.splitlines(), changed.splitlines()
    return list(difflib.unified_diff(before, after, revision.source, revision.source, n=1, lineterm=""))


def _raise_memory(view: SweepView, kind: FailureKind, revision: Revision, edit: SpecEdit) -> str | None:
    asked, reason = revision.settings.resources.memory, kind.first.reason or ""
    exceeded = reason.startswith(MEMORY_EXCEEDED)
    if not asked or not (exceeded or "out of memory" in reason):
        return None
    used = max(view.view(job).usage.get("memory_bytes", 0) for job in kind.jobs[:_LOOKED_AT])
    if used < _NEAR * asked and not exceeded:
        return None
    return edit.replace_scalar(("resources", "memory"), suggest_memory(max(asked, used)))


def _spare_jobs(revision: Revision, conditions: Sequence[RuleCondition], edit: SpecEdit) -> str | None:
    columns = revision.table.columns
    drawn = [each for each in conditions if not _is_chosen(edit, each.name)]
    if not all(_has_bounds(edit, each.name) for each in drawn):
        return None
    if not drawn:
        # In the order of the spec, which people know.
        names = [name for name in columns if any(each.name == name for each in conditions)]
        wanted = [[value for value in columns[name].values if _holds(conditions, name, value)] for name in names]
        rows = [dict(zip(names, values, strict=True)) for values in product(*wanted)]
        return edit.insert_rows("exclude", rows) if 0 < len(rows) <= _MAX_ROWS else None
    if len({each.name for each in conditions}) == 1:
        return _narrow_bounds(conditions, edit) if len(conditions) == 1 else None
    return _limit_draw(drawn[0], next(each for each in conditions if each is not drawn[0]), columns, edit)


def _holds(conditions: Sequence[RuleCondition], name: str, value: Any) -> bool:
    return all(each.holds(value) for each in conditions if each.name == name)


def _narrow_bounds(conditions: Sequence[RuleCondition], edit: SpecEdit) -> str | None:
    [only] = conditions
    bound = only.value
    if only.operator == "==" or not isinstance(bound, int | float):
        return None
    if only.operator == "<":
        return edit.replace_scalar((*_find_path(only.name), "min"), bound)
    return edit.replace_scalar((*_find_path(only.name), "max"), bound - 1 if isinstance(bound, int) else bound)


def _limit_draw(
    drawn: RuleCondition, other: RuleCondition, columns: dict[str, ParameterColumn], edit: SpecEdit
) -> str | None:
    """Draw the one parameter only where the other condition does not hold; there it has a value that did not fail."""
    if "." in other.name or ABSENT in columns[other.name].index:
        return None
    safe = sorted(value for value in columns[drawn.name].values if not drawn.holds(value))  # type: ignore[type-var]  # numbers
    raw = _find_raw(edit, other.name)
    if not safe or (isinstance(raw, dict) and "when" in raw):
        return None
    when = str(other._replace(operator=_OPPOSITE[other.operator]))
    return edit.insert_keys(_find_path(drawn.name), {"when": when, "else": safe[len(safe) // 2]})


def _find_path(name: str) -> tuple[str, ...]:
    """Return the way to a parameter: groups have their own `parameters`."""
    return tuple(part for step in name.split(".") for part in ("parameters", step))


def _find_raw(edit: SpecEdit, name: str) -> Any:
    raw: Any = edit.data
    for step in _find_path(name):
        raw = raw.get(step) if isinstance(raw, dict) else None
    return raw


def _is_chosen(edit: SpecEdit, name: str) -> bool:
    """Has the parameter values that the spec lists?"""
    raw = _find_raw(edit, name)
    return not isinstance(raw, dict) or not raw.keys().isdisjoint({"values", "value", "range"})


def _has_bounds(edit: SpecEdit, name: str) -> bool:
    """Is the parameter drawn between two bounds?"""
    raw = _find_raw(edit, name)
    return isinstance(raw, dict) and "min" in raw and "max" in raw
