"""Two jobs, compared: their inputs, the machines that they ran on, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monkey.metrics.summary import find_best_value
from monkey.protocol.layout import Keys
from monkey.protocol.record.facts import name_package
from monkey.protocol.record.recorded_job import RecordedJob
from monkey.protocol.status.job_view import JobView
from monkey.protocol.sweeps.revision import Revision
from monkey.results.differences.code_difference import compare_code
from monkey.results.differences.data_difference import compare_data
from monkey.results.differences.difference import Difference, PartDifference
from monkey.results.differences.value_change import HIDDEN, ValueChange, compare_values
from monkey.store.store_port import Store

_Changes = Iterable[ValueChange]


async def compare_jobs(store: Store, keys: Keys, before: RecordedJob, after: RecordedJob) -> Difference:
    """Return what differs between two jobs. Raises StoreError, OSError."""
    code = await compare_code(store, keys, before.revision, after.revision)
    data = await compare_data(store, before.revision.recipe.datasets, after.revision.recipe.datasets)
    parts = (
        PartDifference("parameters", tuple(compare_values(before.parameters, after.parameters))),
        *compare_recipes(before.revision, after.revision),
        PartDifference("lock", tuple(_compare_locks(before, after))),
        PartDifference("machine", tuple(_compare_machines(before, after)), inputs=False),
        PartDifference("metrics", tuple(_compare_metrics(before, after)), inputs=False, measured=True),
        PartDifference("usage", tuple(_compare_usage(before, after)), inputs=False, measured=True),
        PartDifference("result", tuple(_compare_results(before, after)), inputs=False),
        PartDifference("outputs", tuple(compare_values(before.seen.outputs, after.seen.outputs)), inputs=False),
    )
    found = tuple(part for part in parts if part.changes)
    sides = before.describe(), after.describe()
    return Difference("job", *sides, found, code, data, notes=tuple(_list_notes(before, after)))


def compare_recipes(before: Revision, after: Revision) -> tuple[PartDifference, ...]:
    """Return what differs in two recipes, without code and data; parts without changes may be among it."""
    old, new = before.recipe, after.recipe
    hidden = {*before.settings.secrets, *after.settings.secrets}
    envs = [each.recipe.env | dict.fromkeys(each.settings.secrets, HIDDEN) for each in (before, after)]
    commands = [{"command": each.command, "outputs": each.outputs} for each in (old, new)]
    places = [each.environment | ({"image": each.image} if each.image else {}) for each in (old, new)]
    return (
        PartDifference("command", tuple(compare_values(commands[0], commands[1]))),
        PartDifference("env", tuple(compare_values(envs[0], envs[1], hidden))),
        PartDifference("environment", tuple(compare_values(places[0], places[1]))),
    )


def _compare_locks(before: RecordedJob, after: RecordedJob) -> _Changes:
    locks = [one.facts.get("lock") for one in (before, after)]
    return (
        () if None in locks else compare_values(*({name_package(line): line for line in lock or ()} for lock in locks))
    )


def _compare_machines(before: RecordedJob, after: RecordedJob) -> _Changes:
    return compare_values(*map(_flatten_facts, (before, after)))


def _flatten_facts(one: RecordedJob) -> dict[str, Any]:
    facts = {name: value for name, value in one.facts.items() if name not in ("lock", "variables")}
    variables = {f"variable {name}": value for name, value in one.facts.get("variables", {}).items()}
    return ({"host": one.seen.host} if one.seen.host else {}) | facts | variables


def _compare_metrics(before: RecordedJob, after: RecordedJob) -> _Changes:
    """Compare the last value of each metric, and the best one of those that a sweep ranks by."""
    goals = {one.revision.settings.metric: one.revision.settings.maximize for one in (before, after)}
    return compare_values(*(_list_values(one.seen.metrics, goals) for one in (before, after)))


def _list_values(metrics: Mapping[str, Mapping[str, Any]], goals: Mapping[str | None, bool]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, entry in metrics.items():
        last = entry.get("last")
        found[f"{name} last"] = "nan" if last is None else last
        best = find_best_value(entry, goals[name]) if name in goals else None
        found |= {f"{name} best": best.value} if best else {}
    return found


def _compare_usage(before: RecordedJob, after: RecordedJob) -> _Changes:
    return compare_values(
        *(
            ({} if one.seen.seconds is None else {"seconds": one.seen.seconds}) | one.seen.usage
            for one in (before, after)
        )
    )


def _compare_results(before: RecordedJob, after: RecordedJob) -> _Changes:
    return compare_values(*map(_list_results, (before.seen, after.seen)))


def _list_results(seen: JobView) -> dict[str, Any]:
    told = {"state": str(seen.state), "reason": seen.reason or None, "exit code": seen.exit_code}
    return {name: value for name, value in told.items() if value is not None}


def _list_notes(before: RecordedJob, after: RecordedJob) -> Iterable[str]:
    for side, one in (("A", before), ("B", after)):
        if one.trouble:
            yield f"the facts of {side} cannot be read: {one.trouble}"
        elif not one.facts:
            yield f"{side} has no facts yet: its packages and its machine are not compared"
        elif "lock" not in one.facts and one.revision.recipe.environment:
            yield f"{side} has no lock on record: packages are not compared"
        if adopted := one.revision.adopted.get(one.seen.job):
            yield f"the result of {side} is that of job {adopted}, which it adopts"
