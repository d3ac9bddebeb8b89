"""The kinds of failure of a sweep for programs: each with its rule, and the change of the spec that heeds it."""

from __future__ import annotations

from typing import Any

from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.causes.ended_jobs import EndedJobs
from monkey.results.causes.failure_rule import FailureRule
from monkey.results.causes.spec_offer import suggest_change
from monkey.results.failure_kinds import find_last_line, group_failures


def serialize_failures(view: SweepView, most: int | None = None) -> list[dict[str, Any]]:
    """Return the kinds of failure, the commonest first, at most `most` (None: all). Each has these keys:

    - `signature`, `jobs` (ids), `exit_code`, `reason`, `last_line`
    - `rule`: null, or `text`, `conditions` (`name`, `operator`, `value`), `chance` and four counts
    - `diff`: the lines of a change of the spec that would spare such jobs; empty where none is offered
    """
    found, ended = [], EndedJobs(view)
    for kind in group_failures(view)[:most]:
        rule, first = ended.explain(kind), kind.first
        found.append(
            {
                "signature": kind.signature,
                "jobs": kind.jobs,
                "exit_code": first.exit_code,
                "reason": first.reason,
                "last_line": find_last_line(first),
                "rule": _serialize_rule(rule) if rule else None,
                "diff": suggest_change(view, kind, rule),
            }
        )
    return found


def _serialize_rule(rule: FailureRule) -> dict[str, Any]:
    return {
        "text": str(rule),
        "conditions": [each._asdict() for each in rule.conditions],
        "failed_inside": rule.failed_inside,
        "inside": rule.inside,
        "failed_outside": rule.failed_outside,
        "outside": rule.outside,
        "chance": rule.chance,
    }
