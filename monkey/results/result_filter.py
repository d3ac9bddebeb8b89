"""Choosing of results: rows by a condition, and columns by whether they tell rows apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from monkey.errors import MonkeyError
from monkey.protocol.record.facts import FACT_NAMES
from monkey.results.result_rows import Results
from monkey.spec.parameters.conditions import ConditionError, parse_condition

#: What conditions on facts begin with.
_FACTS = "facts."
#: A signature without quotes, which would read as a number that is none; texts in quotes are left as they are.
_SIGNATURE = re.compile(r"""'[^']*'|"[^"]*"|(?P<before>\bsignature\s*[=!]=\s*)(?P<hex>[0-9a-f]{6})\b""")


def filter_results(results: Results, condition: str) -> Results:
    """Return the results that a `--where` holds for.

    It may name parameters, metrics, `state`, `job`, `seconds`, `host`, `signature`, what jobs used (USAGES), and
    `facts.NAME`. Raises MonkeyError for one that cannot be read, or does not fit the values.
    """
    names = {*results.parameters, *results.metrics, *results.usages, *_list_facts(results)}
    names |= {"state", "job", "seconds", "host", "signature"}
    text = condition if "signature" in results.parameters else _SIGNATURE.sub(_quote, condition)
    try:
        parsed = parse_condition(text, names)
        return results.choose([at for at in results.order if parsed.holds(results.row(at).fields)])
    except ConditionError as exc:
        raise MonkeyError(f"--where {condition!r}: {exc.message}", hint=exc.hint) from exc


def needs_facts(condition: str | None) -> bool:
    """Does a `--where` name facts? They cost a request each."""
    return _FACTS in (condition or "")


def add_facts(results: Results, facts: Mapping[str, Mapping[str, Any]]) -> Results:
    """Return the results with facts, by the first digits of their hash: conditions may name `facts.NAME` then."""
    return replace(results, facts={name: _flatten(each) for name, each in facts.items()})


def _flatten(facts: Mapping[str, Any]) -> dict[str, Any]:
    flat = {f"{_FACTS}{name}": value for name, value in facts.items() if name != "variables"}
    return flat | {f"{_FACTS}variables.{name}": value for name, value in facts.get("variables", {}).items()}


def drop_unchanged(results: Results) -> Results:
    """Return the results less the parameters and metrics that are the same in all chosen rows.

    The metric that ranks stays. What only some of the rows have is not the same.
    """
    columns, order = results.table.columns, results.order
    same = {("parameter", name) for name in results.parameters if len({columns[name].index[at] for at in order}) < 2}
    for name in results.metrics:
        # NaN is not itself, and yet the same in all rows.
        if name != results.metric and len({repr(results.values[name][at]) for at in order}) < 2:
            same.add(("metric", name))
    return replace(results, hidden=results.hidden | same)


def _quote(match: re.Match[str]) -> str:
    return f"{match['before']}'{match['hex']}'" if match["hex"] else match[0]


def _list_facts(results: Results) -> set[str]:
    known = {name for facts in results.facts.values() for name in facts}
    return known | {f"{_FACTS}{name}" for name in FACT_NAMES if name != "variables"}
