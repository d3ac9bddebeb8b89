"""The agent's points for InfluxDB: of jobs and of samples.

A job gives a point when it begins and when its end is recorded, with the times in its log. The first is sent again,
with what the job has logged, as long as it runs. When the job ends it is sent with what the end has: so it depends on
no moment of sampling, and `monkey backfill` makes the same. The machine and its jobs give points as they are
sampled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from monkey.metrics import names
from monkey.metrics.influx.influx_points import write_system_point
from monkey.metrics.influx.state_points import (
    JobAttempt,
    SweepJob,
    write_beginning_point,
    write_end_point,
    write_membership_point,
)
from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import EndEntry
from monkey.spec.project.influx_settings import InfluxSettings
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.attempts import AttemptListener
from monkey_agent.telemetry.sampler import Sample
from monkey_agent.telemetry.spooling import Telemetry

#: Seconds for which a job that ended here may have ended unseen by `apply`, which announces a new revision's jobs.
_RENEWED_SECONDS = 3600.0


class _SentPoint(NamedTuple):
    """The newest point of a job that ended here: its time and position in the log, and the revision that it has."""

    at: float
    k: int
    revision: int


class JobPoints(AttemptListener):
    """The sender of points to the InfluxDBs of the sweeps that an agent works for."""

    def __init__(self, telemetry: Telemetry, agent: AgentDaemon, slots: int) -> None:
        """Send by `telemetry`; `slots`: number of jobs that the machine has room for."""
        self._telemetry, self._agent, self._slots = telemetry, agent, slots
        #: Job to the newest revision that had it.
        self._running: dict[str, SweepJob] = {}
        self._ended: dict[tuple[str, str], _SentPoint] = {}

    def attempt_began(self, work: ActiveAttempt) -> None:
        """See `AttemptListener.attempt_began`."""
        self._send_beginning(work)

    def end_recorded(self, work: ActiveAttempt, held: HeldClaim, end: EndEntry) -> None:
        """See `AttemptListener.end_recorded`. What was claimed ahead and never began changes no state."""
        of = self._find_job(work)
        self._running.pop(work.job, None)
        if of is not None and end.is_of_process:
            self._ended[of.sweep, work.job] = _SentPoint(end.at, held.k + 1, of.revision)
            beginning = self._write_beginning(of, work, end.metrics)
            self._send(of, beginning + write_end_point(of, self._describe(work), end, held.k + 1))

    def _send_beginning(self, work: ActiveAttempt) -> None:
        of = self._find_job(work)
        if of is not None:
            self._send(of, self._write_beginning(of, work, work.running.progress() if work.running else {}))

    def _write_beginning(self, of: SweepJob, work: ActiveAttempt, summary: Mapping[str, Mapping[str, Any]]) -> bytes:
        began = work.claimed_at + work.prepared
        return write_beginning_point(of, self._describe(work), began, work.attempt.k, summary)

    def _describe(self, work: ActiveAttempt) -> JobAttempt:
        return JobAttempt(work.attempt.number, self._agent.identity.name, work.attempt.user)

    def _send(self, of: SweepJob, line: bytes) -> None:
        if of.settings.influx is not None:
            self._telemetry.add(of.settings.influx, line)

    def _find_job(self, work: ActiveAttempt) -> SweepJob | None:
        """Return the job as the newest revision has it that had it; None where that names no InfluxDB."""
        state = self._agent.queue.sweeps.get(work.sweep)
        revision = state.revision if state else None
        if state is not None and revision is not None and revision.settings.influx and work.job in revision.rows:
            row = revision.rows[work.job]
            self._running[work.job] = SweepJob(work.sweep, state.revision_at, revision.table, row, revision.settings)
        return self._running.get(work.job)

    def _renew_ended(self) -> None:
        """Say of jobs which ended while a revision came that they are part of it, if they are."""
        oldest = self._agent.clock.wall() - _RENEWED_SECONDS
        self._ended = {spot: sent for spot, sent in self._ended.items() if sent.at > oldest}
        for (sweep, job), sent in self._ended.items():
            state = self._agent.queue.sweeps.get(sweep)
            if state is None or state.revision is None or sent.revision >= state.revision_at:
                continue
            self._ended[sweep, job] = sent._replace(revision=state.revision_at)
            if job in state.revision.rows and (influx := state.revision.settings.influx) is not None:
                line = write_membership_point(sweep, job, sent.at, sent.k, state.revision_at)
                self._telemetry.add(influx, line)

    def sampled(self, samples: list[Sample]) -> None:
        """Send the samples of one moment: the machine's to all InfluxDBs, a job's to its sweep's InfluxDB."""
        self._renew_ended()
        for work in self._agent.attempts.live:
            if work.slot is not None:
                self._send_beginning(work)  # with what it has logged by now
        identity = self._agent.identity
        busy = sum(work.slot is not None for work in self._agent.attempts.live)
        for influx in self._wanted():
            lines = []
            for sample in samples:
                if sample.job and self._influx(sample.sweep) != influx:
                    continue
                fields = dict(sample.fields)
                if not sample.job and not sample.gpu:
                    fields |= {names.BUSY: busy, names.SLOTS: max(self._slots, busy)}
                # Without this life of it: a series lasts as long as the machine.
                agent = f"{identity.fleet}/{identity.name}"
                whose = {"host": identity.name, "fleet": identity.fleet, "agent": agent}
                lines.append(write_system_point(fields, sample.at, job=sample.job, gpu=sample.gpu, **whose))
            self._telemetry.add(influx, b"".join(lines))

    def _wanted(self) -> set[InfluxSettings]:
        found = {self._influx(name) for name in self._agent.queue.sweeps}
        return {influx for influx in found if influx is not None}

    def _influx(self, sweep: str) -> InfluxSettings | None:
        state = self._agent.queue.sweeps.get(sweep)
        return state.revision.settings.influx if state is not None and state.revision is not None else None
