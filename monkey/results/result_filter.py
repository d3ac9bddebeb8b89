"""Choosing of results: rows by a condition, and columns by whether they tell rows apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from monkey.errors import MonkeyError
from monkey.protocol.record.facts import FACT_NAMES
from monkey.results.result_rows import ResultRow, Results
from monkey.spec.job.column_names import OWN_COLUMNS, USAGES, list_spellings
from monkey.spec.parameters.conditions import ConditionError, parse_condition

#: What conditions on facts begin with.
_FACTS = "facts."
#: A signature without quotes, which would read as a number that is none; texts in quotes are left as they are.
_SIGNATURE = re.compile(r"""'[^']*'|"[^"]*"|(?P<before>(?<![\w.])signature\s*[=!]=\s*)(?P<hex>[0-9a-f]{6})\b""")


def filter_results(results: Results, condition: str) -> Results:
    """Return the results that a `--where` holds for.

    It may name OWN_COLUMNS, columns of parameters and metrics, also with a prefix where none is needed, and
    `facts.NAME`. Raises MonkeyError for one that cannot be read, or does not fit the values.
    """
    columns = _list_columns(results)
    known = {*columns, *OWN_COLUMNS, *_list_facts(results)}
    try:
        parsed = parse_condition(_SIGNATURE.sub(_quote, condition), known)
        ours = parsed.uses.intersection(OWN_COLUMNS)
        used = {said: columns[said] for said in parsed.uses - ours if said in columns}
        chosen = [at for at in results.order if parsed.holds(_list_fields(results.row(at), used, ours))]
    except ConditionError as exc:
        raise MonkeyError(f"--where {condition!r}: {exc.message}", hint=exc.hint) from exc
    return results.choose(chosen)


def _list_columns(results: Results) -> dict[str, tuple[str, str]]:
    """Return what a condition may call each parameter and metric: the field of a row that has it, and its name there.

    A parameter goes before a metric.
    """
    columns = results.columns
    shown = {name: columns.metrics[name] for name in results.metrics}
    metrics = list_spellings(shown, "metric")
    parameters = list_spellings(columns.parameters, "parameter")
    found = {said: ("metrics", name) for said, name in metrics.items()}
    found |= {said: ("parameters", name) for said, name in parameters.items()}
    return found


def _list_fields(row: ResultRow, used: Mapping[str, tuple[str, str]], ours: Iterable[str]) -> dict[str, Any]:
    """Return what a condition names of a job; `used`: of `_list_columns`, `ours`: columns of our own."""
    fields = dict(row.facts)
    for name in ours:
        value = row.usage.get(name) if name in USAGES else getattr(row, name)
        if value is not None and value != "":
            fields[name] = value
    for said, (field, name) in used.items():
        values = row.metrics if field == "metrics" else row.parameters
        if name in values:
            fields[said] = values[name]
    return fields


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
