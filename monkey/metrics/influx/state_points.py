"""Points of jobs for InfluxDB: what each was when it began or ended, and which revision of its sweep has it.

Each point has the number of the newest revision that had its job. `apply` writes a new revision's number into the
newest point of each job that it keeps. Once all have it, `apply` writes a point of the revision itself. Points with
lower numbers are of jobs that the sweep no longer has.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from monkey.metrics import names
from monkey.metrics.influx.influx_points import MAX_INTEGER, Field, convert_to_float, write_point
from monkey.metrics.summary import find_job_value, has_diverged, is_result
from monkey.spec.job.job_table import JobTable, ParameterValue
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.job.stop_when import StopEvidence, find_met_rule


class RecordedEnd(Protocol):
    """The end of an attempt, as `monkey.protocol.entries` has it."""

    @property
    def outcome(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def reason(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def total_seconds(self) -> float: ...
    @property
    def metrics(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def met(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class SweepJob:
    """A job as a revision of a sweep has it: the `row` of its table."""

    sweep: str
    #: Position of the revision in the sweep's log.
    revision: int
    table: JobTable
    row: int
    settings: SweepSettings


class JobAttempt(NamedTuple):
    """The attempt that a point is of."""

    #: 1 for the first.
    number: int
    host: str
    #: Who applied the revision that it ran under.
    user: str


def write_beginning_point(
    of: SweepJob, attempt: JobAttempt, at: float, k: int, summary: Mapping[str, Mapping[str, Any]] | None = None
) -> bytes:
    """Return the line of a job that began at `at` (seconds since the epoch) under the claim at position `k` of its log.

    `summary`: of what it has logged since, as `monkey.metrics.summary` makes it. InfluxDB cannot unset a field of a
    point: a final value that has since become NaN stays in this point, though not in the end's.
    """
    return _write_job_point(of, attempt, names.RUNNING, at, k, {}, summary or {})


def write_end_point(of: SweepJob, attempt: JobAttempt, end: RecordedEnd, k: int) -> bytes:
    """Return the line of an end at position `k` of the job's log."""
    told: dict[str, Field] = {names.SECONDS: float(end.total_seconds)}
    told |= {names.REASON: end.reason} if end.reason else {}
    told |= {} if end.exit_code is None else {names.EXIT_CODE: end.exit_code}
    return _write_job_point(of, attempt, str(end.outcome), end.at, k, told, end.metrics, goal=_is_goal(end, of))


def _is_goal(end: RecordedEnd, of: SweepJob) -> bool:
    rule = find_met_rule(of.settings.stop_when, StopEvidence.from_json(dict(end.met))) if end.met else None
    return rule is not None and rule.is_goal(of.settings.metric, of.settings.maximize)


def _write_job_point(
    of: SweepJob,
    attempt: JobAttempt,
    state: str,
    at: float,
    k: int,
    told: dict[str, Field],
    summary: Mapping[str, Mapping[str, Any]],
    *,
    goal: bool = False,
) -> bytes:
    metric, maximize = of.settings.metric, of.settings.maximize
    fields: dict[str, Field] = {names.STATE_FIELD: state, names.ATTEMPT: attempt.number, names.HOST: attempt.host}
    fields |= {names.LABEL: of.table.label(of.row), **({names.USER: attempt.user} if attempt.user else {}), **told}
    if summary:
        fields[names.NONFINITE] = sum(entry.get("nonfinite") or 0 for entry in summary.values())
    value, diverged = None, False
    if metric is not None:
        value, diverged = _find_objective(summary.get(metric, {}), of.settings), has_diverged(summary.get(metric, {}))
        fields |= {names.METRIC: metric} | ({} if value is None else {names.OBJECTIVE: value})
    counts = is_result(state, goal=goal, diverged=diverged)
    rank = compute_rank(value, counts=counts, maximize=maximize)
    fields |= {names.COUNTS: counts, names.RANKED: rank, names.COUNT: len(of.table), names.REVISION: of.revision}
    fields[names.SINCE] = 0  # so that there is always one
    fields |= dict(_parameters(of.table.parameters(of.row))) | dict(_finals(summary))
    return write_point(names.JOBS, _make_tags(of), fields, compute_entry_time(at, k))


def _make_tags(of: SweepJob) -> dict[str, str]:
    return {names.SWEEP: of.sweep, names.JOB: of.table.ids[of.row]}


def write_membership_point(sweep: str, job: str, at: float, k: int, revision: int) -> bytes:
    """Return a line that makes a point which is there one of another revision: InfluxDB merges their fields."""
    tags = {names.SWEEP: sweep, names.JOB: job}
    return write_point(names.JOBS, tags, {names.REVISION: revision}, compute_entry_time(at, k))


def write_revision_point(sweep: str, revision: int, at: float, jobs: int) -> bytes:
    """Return the line of a revision: all its jobs that have points have one that says so. `at`: when it was applied."""
    fields: dict[str, Field] = {names.COUNT: jobs, names.REVISION: revision, names.SINCE: revision}
    return write_point(names.JOBS, {names.SWEEP: sweep}, fields, compute_entry_time(at, revision))


def compute_entry_time(at: float, k: int) -> int:
    """Return the timestamp, in ns, of a log's k-th entry: entries have times in ms, and many may fall into one."""
    return round(at * 1_000) * 1_000_000 + k


def compute_rank(value: float | None, *, counts: bool, maximize: bool) -> int:
    """Return an integer of 63 bits that is the greater the better a job is, in the order of `monkey results`.

    What counts comes before what does not, and of either what has no `value` comes last. The bits of a float, taken for
    an integer, are in the order of its values (IEEE 754, section 5.10). All but the lowest two fit here.
    """
    place = -(1 << 61)
    if value is not None:
        (bits,) = struct.unpack(">q", struct.pack(">d", value if maximize else -value))
        place = (bits if bits >= 0 else -(bits & MAX_INTEGER - 1)) >> 2
    return place + (1 << 61 if counts else -(1 << 61))


def _find_objective(entry: Mapping[str, Any], settings: SweepSettings) -> float | None:
    value = None if has_diverged(entry) else find_job_value(entry, settings.take, maximize=settings.maximize)
    return None if value is None else convert_to_float(value)


def _parameters(parameters: Mapping[str, ParameterValue]) -> Iterable[tuple[str, Field]]:
    for name, value in parameters.items():
        if value is None:
            continue
        yield names.PARAM + name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if isinstance(value, int | float) and (number := convert_to_float(value)) is not None:
            yield names.NUMBER + name, number


def _finals(summary: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, Field]]:
    for name, entry in summary.items():
        for prefix, key in ((names.FINAL, "last"), (names.MIN, "min"), (names.MAX, "max")):
            if (value := entry.get(key)) is not None and (number := convert_to_float(value)) is not None:
                yield prefix + name, number
