"""The jobs of one sweep as rows, kept up to date one by one: a page gets all of them once, then those that changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from monkey.apply.watch.sweep_progress import SweepPace
from monkey.metrics.summary import find_job_value, has_diverged, is_result
from monkey.plan.text.describe import make_value_format
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.spec.job.column_names import mark_last_values, name_columns
from monkey.spec.job.job_table import JobTable, ParameterValue
from monkey.spec.job.recipe import SweepSettings
from monkey.web.safe_json import encode_shown_json, make_json_number

#: The states, in the order of their codes.
STATES = tuple(JobState)
_CODES = {state: code for code, state in enumerate(STATES)}
_AT_WORK = (_CODES[JobState.RUNNING], _CODES[JobState.FROZEN])
_UNFINISHED = (*_AT_WORK, _CODES[JobState.QUEUED])
#: Columns of ours that only the page has.
_SHOWN = ("time", "machine")
#: Characters of a reason in the table; a job's own page has all of it.
_REASON = 160
#: Whole numbers below this are exact in JavaScript; floats from this on have no exponent in Python.
_EXACT, _PLAIN = 1 << 53, 1e-4


class TableRow(NamedTuple):
    """What the table shows of a job beside its parameters."""

    state: int
    attempt: int
    #: Seconds that it ran; None while it runs: the page counts from `started`.
    seconds: float | None
    started: float | None
    machine: str
    reason: str
    #: Is the last value of the metric that ranks not finite?
    diverged: bool
    #: Does it count? The page ranks others behind those that do, as `monkey.results.result_rows.rank_places` does.
    counts: bool
    #: Metric to its value; "nan" where that is not finite.
    metrics: dict[str, Any]


class SweepTable:
    """The rows of one sweep."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.pace = SweepPace()
        #: Grows with each reading; each row has that at which it changed last.
        self.version = 0
        #: The version since which only rows changed; a page that has an earlier one gets all.
        self.whole_at = 0
        self._codes = bytearray()
        self._changed: list[int] = []
        #: None until a page asks for rows: of most sweeps only states are counted.
        self._rows: list[TableRow] | None = None
        self._view: SweepView | None = None
        self._seen: tuple[Any, ...] = ()
        self._places: dict[str, int] = {}
        #: All rows as JSON, with the version that they are of: of a large sweep, that takes longer than anything else.
        self._encoded: tuple[int, bytes] = 0, b""

    @property
    def counts(self) -> dict[JobState, int]:
        """The number of jobs in each state that any is in."""
        found = Counter(self._codes)
        return {state: found[code] for code, state in enumerate(STATES) if found[code]}

    def update(self, view: SweepView, recorded: Iterable[str], at_work: Iterable[str]) -> None:
        """Take in a reading: `recorded` and `at_work` are as the snapshot has them. Slow where all may have changed."""
        state, before = view.state, self._view
        self._view, self.version = view, self.version + 1
        seen = state.version, state.revision_at, view.over
        places: Iterable[int]
        if before is None or before.state.revision is not state.revision:
            self._learn(view)
            places = range(len(self._codes))
        elif seen != self._seen:
            places = range(len(self._codes))
        else:
            told = {self._places[job] for jobs in (recorded, at_work) for job in jobs if job in self._places}
            places = told.union(at for at, code in enumerate(self._codes) if code in _AT_WORK)
        self._seen = seen
        for at in places:
            self._take(view, at)
        self.pace.see(time.monotonic(), len(self._codes) - sum(map(self._codes.count, _UNFINISHED)))

    def _learn(self, view: SweepView) -> None:
        """Start again with the jobs of another revision."""
        revision = view.state.revision
        assert revision is not None  # only sweeps with one have a table
        ids = revision.table.ids
        self._places = {revision.adopted.get(job, job): at for at, job in enumerate(ids)}
        self._codes, self._changed = bytearray(len(ids)), [self.version] * len(ids)
        self._rows, self.whole_at = None, self.version

    def _take(self, view: SweepView, at: int) -> None:
        job = _list_jobs(view).ids[at]
        if self._rows is None:
            code = _CODES[view.where(job)]
            changed = code != self._codes[at]
        else:
            row = make_row(view, job)
            changed, code, self._rows[at] = row != self._rows[at], row.state, row
        if changed:
            self._codes[at], self._changed[at] = code, self.version

    def read_all(self) -> list[TableRow]:
        """Return all rows. Slow the first time."""
        if self._rows is None and self._view is not None:
            self._rows = [make_row(self._view, job) for job in _list_jobs(self._view).ids]
        return self._rows or []

    def find_changed(self, since: int) -> list[int]:
        """Return the places of the rows that changed after version `since`."""
        return [at for at, version in enumerate(self._changed) if version > since]

    def encode_rows(self, since: int) -> bytes:
        """Return columns as JSON for a page that has version `since` (0: nothing): all, or those of changed rows."""
        if since < self.whole_at or since > self.version or not since:
            return self._encode_all()
        rows, places = self.read_all(), self.find_changed(since)
        told = {"version": self.version, **self._serialize([rows[at] for at in places]), "places": places}
        return encode_shown_json(told)

    def _serialize(self, rows: Sequence[TableRow]) -> dict[str, Any]:
        """Return rows as columns, and the titles of parameters (`p:NAME`) and metrics (`m:NAME`) that are not NAME."""
        assert self._view is not None
        told = _serialize_rows(rows)
        named = name_columns(_list_jobs(self._view).columns, told["metrics"], _SHOWN)
        settings = _find_settings(self._view)
        if settings.take == "best":
            named = mark_last_values(named, (settings.metric, *settings.last))
        parameters, metrics = named
        titles = {f"p:{name}": column for name, column in parameters.items() if column != name}
        titles |= {f"m:{name}": column for name, column in metrics.items() if column != name}
        return {**told, "titles": titles}

    def _encode_all(self) -> bytes:
        assert self._view is not None
        if self._encoded[0] != self.version:
            told = {"version": self.version, **self._serialize(self.read_all())}
            self._encoded = self.version, encode_shown_json({**told, "table": serialize_table(_list_jobs(self._view))})
        return self._encoded[1]


def _list_jobs(view: SweepView) -> JobTable:
    assert view.state.revision is not None
    return view.state.revision.table


def _find_settings(view: SweepView) -> SweepSettings:
    return view.state.revision.settings if view.state.revision else SweepSettings()


def make_row(view: SweepView, job: str) -> TableRow:
    """Return what the table shows of a job."""
    seen = view.view(job)
    settings = _find_settings(view)
    metrics = {}
    for name, entry in seen.metrics.items():
        take = settings.take if name == settings.metric else "last"
        value = find_job_value(entry, take, maximize=settings.maximize)
        metrics[name] = "nan" if value is None else make_json_number(value)
    machine = seen.agent.split("/")[1] if seen.agent and seen.agent.count("/") == 2 else ""
    diverged = settings.metric in seen.metrics and has_diverged(seen.metrics[settings.metric])
    reason = (seen.reason or "")[:_REASON]
    seconds, started = make_json_number(seen.seconds), make_json_number(seen.started)
    counts = is_result(seen.state, goal=seen.goal, diverged=diverged)
    return TableRow(_CODES[seen.state], seen.number, seconds, started, machine, reason, diverged, counts, metrics)


def _serialize_rows(rows: Sequence[TableRow]) -> dict[str, Any]:
    fields = [name for name in TableRow._fields if name != "metrics"]
    columns = dict(zip(fields, map(list, zip(*(row[:-1] for row in rows), strict=True)), strict=False))
    names: Collection[str] = dict.fromkeys(name for row in rows for name in row.metrics)
    metrics = {name: [row.metrics.get(name) for row in rows] for name in names}
    return {"columns": columns or {name: [] for name in fields}, "metrics": metrics}


def serialize_table(table: JobTable) -> dict[str, Any]:
    """Return the ids and parameters of all jobs: of each parameter its values, and each job's place among them.

    `texts` are those of values that a browser would spell otherwise than the terminal, or that are too long, by place.
    """
    columns = [
        {
            "name": name,
            "varies": name in table.varying,
            "values": list(of.values),
            "texts": _spell_values(of.values),
            "index": list(of.index),
        }
        for name, of in table.columns.items()
    ]
    return {"ids": "".join(table.ids), "parameters": columns}


def _spell_values(values: Sequence[ParameterValue]) -> dict[int, str]:
    spell = make_value_format(values)
    others = ((at, value) for at, value in enumerate(values) if not _is_spelled_alike(value))
    return {at: text for at, value in others if (text := spell(value)) != value}


def _is_spelled_alike(value: ParameterValue) -> bool:
    """Is it a number that JavaScript writes as Python does? 1.0 and 1e-05 are none, nor is a large whole number."""
    if type(value) is int:
        return abs(value) < _EXACT
    return type(value) is float and not value.is_integer() and abs(value) >= _PLAIN
