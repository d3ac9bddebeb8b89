"""One job, as a sweep sees it: made from the record of its newest attempt, and from what a heartbeat tells of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from monkey.protocol.journal import LOST, SAVED, JournalRecord
from monkey.protocol.status.running_job import RunningJob


class JobState(StrEnum):
    """Where a job stands, for a sweep."""

    QUEUED = "queued"
    RUNNING = "running"
    FROZEN = "frozen"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    #: By `stop_when`: it met a condition, or its sweep reached its goal before it ended.
    STOPPED = "stopped"
    #: Its sweep has expired, or is about to, and it is not final.
    EXPIRED = "expired"


@dataclass(slots=True)  # not frozen: results make a hundred thousand at once, and each would take twice as long
class JobView:
    """One job, as a sweep sees it."""

    job: str
    state: JobState
    #: Position of its newest claim in its log (names its directory of outputs); 0 if it never began.
    attempt: int = 0
    number: int = 0  # of that attempt, as MONKEY_ATTEMPT has it
    #: Failed attempts that are known.
    failures: int = 0
    agent: str | None = None
    #: The machine of its newest attempt, as its agent was given the name; "" while that is not known.
    host: str = ""
    #: The sweep under whose settings it runs or ran.
    sweep: str | None = None
    #: Other sweeps whose newest revision has the job too.
    shared: tuple[str, ...] = ()
    exit_code: int | None = None
    reason: str | None = None
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Seconds that all attempts ran; wall clocks of the begin and end of the newest.
    seconds: float | None = None
    started: float | None = None
    ended: float | None = None
    log_tail: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    #: Of these, the files that an earlier attempt left: path to the position of its claim.
    outputs_at: dict[str, int] = field(default_factory=dict)
    #: What it used of its machine, so far if it runs, as `monkey.metrics.usage` has it.
    usage: dict[str, float] = field(default_factory=dict)
    #: The first digits of the hash of what its result came from; "" where that is not known.
    facts: str = ""
    #: It is stopped because it met a goal of its sweep: as good as succeeded.
    goal: bool = False


# There are as many views as jobs, and as few names as agents.
@lru_cache(maxsize=4096)
def extract_host(agent: str) -> str:
    """Return the machine that an agent's id names; "" where it names none."""
    return agent.split("/")[1] if "/" in agent else ""


def add_record(view: JobView, record: JournalRecord) -> None:
    """Add what the end of its newest attempt tells."""
    extra = record.extra
    view.attempt = extra.get("out", record.k if record.outcome in (LOST, SAVED) else record.k - 1)
    view.sweep, view.ended, view.number = record.sweep, record.at, 1
    view.seconds = round(record.seconds + extra.get("before", 0.0), 3)
    view.started = record.at - record.seconds
    for name, value in extra.items():
        if name in _EXTRA:
            setattr(view, name, value)
    if record.outcome in (LOST, SAVED):
        view.agent = extra.get("agent")
    view.host = extract_host(extra.get("agent") or record.writer)
    view.exit_code = extra.get("exit_code", 0 if record.outcome == "s" else None)


def add_running(view: JobView, running: RunningJob) -> None:
    """Put what a heartbeat tells of the attempt in hand in place of the attempt before."""
    view.attempt, view.agent, view.sweep, view.started = running.k, running.agent, running.sweep or None, running.began
    if running.metrics is not None:  # else it is prepared: earlier attempts left what there is
        view.metrics = running.metrics
    view.usage, view.number, view.host = running.usage, running.number, extract_host(running.agent)
    view.seconds = view.ended = view.exit_code = view.reason = None


def add_lost(view: JobView, lost: RunningJob) -> None:
    """Add what the last heartbeat of a lost agent tells, until another agent claims the job."""
    earlier = view.seconds or 0.0
    add_running(view, lost)
    view.reason = "its agent was lost"
    view.seconds = None if lost.began is None else round(earlier + max(0.0, lost.told - lost.began), 3)


_EXTRA = {"number", "reason", "metrics", "outputs", "outputs_at", "log_tail", "usage", "facts"}
