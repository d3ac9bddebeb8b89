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
    metrics = {name: results.columns.metrics[name] for name in results.metrics}
    read = {said: ("metrics", name) for said, name in list_spellings(metrics, "metric").items()}
    parameters = list_spellings(results.columns.parameters, "parameter")
    read |= {said: ("parameters", name) for said, name in parameters.items()}
    names = {*read, *OWN_COLUMNS, *_list_facts(results)}
    try:
        parsed = parse_condition(_SIGNATURE.sub(_quote, condition), names)
        used = {said: read[said] for said in parsed.uses.difference(OWN_COLUMNS) if said in read}
        ours = parsed.uses.intersection(OWN_COLUMNS)
        return results.choose([at for at in results.order if parsed.holds(_list_fields(results.row(at), used, ours))])
    except ConditionError as exc:
        raise MonkeyError(f"--where {condition!r}: {exc.message}", hint=exc.hint) from exc


def _list_fields(row: ResultRow, used: Mapping[str, tuple[str, str]], ours: Iterable[str]) -> dict[str, Any]:
    """Return what a condition names of a job; `used`: names to where their values are, `ours`: columns of our own."""
    values = {"metrics": row.metrics, "parameters": row.parameters}
    found = {said: values[of][name] for said, (of, name) in used.items() if name in values[of]}
    known = {name: row.usage.get(name) if name in USAGES else getattr(row, name) for name in ours}
    return {**row.facts, **{name: value for name, value in known.items() if value is not None and value != ""}, **found}


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
