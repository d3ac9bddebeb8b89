"""Reading what checks are held against, and what came of them: ends, facts and curves, from the store alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from monkey.concurrency import run_in_lanes
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import Keys
from monkey.protocol.record.job_attempts import find_success, list_attempts
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.results.checks.check_verdict import (
    CheckedJob,
    CheckTolerance,
    CheckVerdict,
    MetricDifference,
    compare_ends,
    find_parting_step,
)
from monkey.results.checks.fact_differences import FactDifference, list_fact_differences
from monkey.results.curves.curve_reader import CurveReader
from monkey.store.store_port import Store

#: Checks that are read at once.
_LANES = 16

#: Returns the facts with a hash; {} where they are missing or damaged.
ReadFacts = Callable[[str], Awaitable[dict[str, Any]]]


async def judge_checks(
    store: Store, keys: Keys, view: SweepView, tolerance: CheckTolerance, read_facts: ReadFacts
) -> list[CheckedJob]:
    """Return the verdicts on all jobs of a check, in their order. Raises StoreError, OSError."""
    assert view.state.revision is not None
    checks, found = view.state.revision.checks, dict[str, CheckedJob]()
    judge = _CheckJudge(store, keys, tolerance, read_facts)

    async def note(check: str) -> None:
        found[check] = await judge.judge(view, check, checks[check])

    await run_in_lanes([job for job in view.ids if job in checks], note, _LANES)
    return [found[job] for job in view.ids if job in found]


class _CheckJudge:
    """Holds checks against records, which are read from the store."""

    def __init__(self, store: Store, keys: Keys, tolerance: CheckTolerance, read_facts: ReadFacts) -> None:
        self._store, self._keys, self._tolerance, self._read_facts = store, keys, tolerance, read_facts
        self._curves = CurveReader(store, keys)

    async def judge(self, view: SweepView, check: str, job: str) -> CheckedJob:
        """Return the verdict on one check of a job."""
        where = view.where(check)
        if where is not JobState.SUCCEEDED:
            over = where in (JobState.FAILED, JobState.STOPPED)
            reason = (view.view(check).reason or str(where)) if over else str(where)
            return CheckedJob(check, job, CheckVerdict.FAILED if over else CheckVerdict.UNFINISHED, reason=reason)
        before, after = await self._read_log(job), await self._read_log(check)
        recorded, now = find_success(before), find_success(after)
        if recorded is None or now is None:
            missing = "record" if recorded is None else "end of the check"
            return CheckedJob(check, job, CheckVerdict.FAILED, reason=f"the {missing} is missing")
        verdict, metrics, outputs = compare_ends(recorded, now, self._tolerance)
        if verdict is CheckVerdict.IDENTICAL:
            return CheckedJob(check, job, verdict)
        then, here = await self._read_facts(recorded.facts), await self._read_facts(now.facts)
        known = bool(then and here)
        facts = list_fact_differences(then, here) if known else []
        facts += _compare_attempts(before, after)
        metrics = await self._place(job, check, metrics)
        return CheckedJob(check, job, verdict, metrics, outputs, facts, known)

    async def _read_log(self, job: str) -> EntryLog:
        log = EntryLog(self._keys.job_log(job))
        await log.refresh(self._store)
        return log

    async def _place(self, job: str, check: str, metrics: Sequence[MetricDifference]) -> list[MetricDifference]:
        """Return the differences with the first step at which the curves part."""
        names = [one.name for one in metrics]
        if not names:
            return []
        before, after = await self._curves.read(job, names), await self._curves.read(check, names)
        return [
            replace(one, step=find_parting_step(before[one.name], after[one.name]))
            if one.name in before and one.name in after
            else one
            for one in metrics
        ]


def _compare_attempts(recorded: EntryLog, now: EntryLog) -> list[FactDifference]:
    """Return the numbers of attempts where a result took several: a checkpoint may restore less than it should."""
    counts = [sum(one.begun for one in list_attempts(log)) for log in (recorded, now)]
    return [FactDifference("attempts", str(counts[0]), str(counts[1]))] if max(counts) > 1 else []
