"""The changes of a sweep's jobs and settings, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class StaleReason(NamedTuple):
    """Why jobs are stale: a kind ("code", "env", "parameter", …) and a sentence ("code changed: train.py")."""

    kind: str
    text: str


class SettingChange(NamedTuple):
    """A setting that changes, which makes no job stale."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class StaleJobs:
    """Jobs that are stale for the same reasons."""

    reasons: tuple[StaleReason, ...]
    #: Rows of the desired table.
    rows: Sequence[int]
    #: For each of them, the row of the applied table that it replaces.
    before: Sequence[int]

    @property
    def why(self) -> str:
        """Return the reasons as one sentence."""
        return "; ".join(reason.text for reason in self.reasons)


@dataclass(frozen=True)
class JobChanges:
    """The jobs of a sweep, each in one of five lots; rows are of the desired table, `removed` of the applied one."""

    new: Sequence[int] = ()
    stale: tuple[StaleJobs, ...] = ()
    kept: Sequence[int] = ()
    removed: Sequence[int] = ()
    #: Jobs of a plan without the store: whether they are new is not known.
    unknown: Sequence[int] = ()
    #: Number of kept jobs by state: succeeded, failed, stopped, running, queued, adopted (by this plan).
    kept_states: Mapping[str, int] = field(default_factory=dict)
    #: Number of old jobs, removed or replaced, by state: queued, running, succeeded, failed.
    removed_states: Mapping[str, int] = field(default_factory=dict)
    replaced_states: Mapping[str, int] = field(default_factory=dict)
    #: Number of kept jobs that the newest revision did not have, by the sweep that has them ("": no sweep of now).
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    #: Jobs that the newest revision did not have, and that have failed for good or were stopped: no apply runs them,
    #: only a retry.
    failed: Sequence[int] = ()
    #: Number of these that were stopped.
    met: int = 0
    #: Number of these by the sweep that has them ("": no sweep of now).
    failed_in: Mapping[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers of jobs that are new, stale, kept, removed; or the number of which nothing is known."""
        stale = sum(len(group.rows) for group in self.stale)
        known = {"new": len(self.new), "stale": stale, "kept": len(self.kept), "removed": len(self.removed)}
        return {"unknown": len(self.unknown)} if self.unknown else known

    @property
    def ended_before(self) -> str:
        """Return in words how the jobs of `failed` ended."""
        if self.met == len(self.failed):
            return "stopped before"
        return "failed or stopped before" if self.met else "failed before"

    @property
    def lots(self) -> dict[str, int]:
        """Return the same by the names that people read, and between them the jobs that ended before, if any did."""
        if not self.failed:
            return self.counts
        removed = {self.ended_before: len(self.failed), "removed": len(self.removed)}
        return {lot: count for lot, count in self.counts.items() if lot != "removed"} | removed

    @property
    def unfinished(self) -> int:
        """Return the number of jobs that are left to run once the plan is applied."""
        states, stale = self.kept_states, sum(len(group.rows) for group in self.stale)
        return len(self.new) + len(self.unknown) + stale + states.get("queued", 0) + states.get("running", 0)
