"""The agent's points for InfluxDB: of jobs and of samples.

A job gives a point when it is claimed and when its end is recorded, with the times in its log. The machine and its jobs
give points as they are sampled.
"""

from __future__ import annotations

from monkey.metrics import names
from monkey.metrics.influx_points import parse_agent_machine, write_job_point, write_system_point
from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import EndEntry
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.project.influx_settings import InfluxSettings
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.attempts import AttemptListener
from monkey_agent.telemetry.sampler import Sample
from monkey_agent.telemetry.spooling import Telemetry


class JobPoints(AttemptListener):
    """The sender of points to the InfluxDBs of the sweeps that an agent works for."""

    def __init__(self, telemetry: Telemetry, agent: AgentDaemon, slots: int) -> None:
        """Send by `telemetry`; `slots`: number of jobs that the machine has room for."""
        self._telemetry, self._agent, self._slots = telemetry, agent, slots

    def attempt_claimed(self, work: ActiveAttempt) -> None:
        """See `AttemptListener.attempt_claimed`; a claim that only continues changes no state."""
        if work.held is not None and not work.held.claim.continues:
            self._tell(work, work.held, None)

    def end_recorded(self, work: ActiveAttempt, held: HeldClaim, end: EndEntry) -> None:
        """See `AttemptListener.end_recorded`."""
        self._tell(work, held, end)

    def _tell(self, work: ActiveAttempt, held: HeldClaim, end: EndEntry | None) -> None:
        settings, count = self._sweep(work)
        if settings.influx is None:
            return
        line = write_job_point(
            work.sweep,
            work.job,
            str(end.outcome) if end else names.RUNNING,
            end.at if end else held.claim.at,
            held.k + 1 if end else held.k,
            attempt=work.attempt.number,
            host=parse_agent_machine(held.claim.agent),
            parameters=work.attempt.parameters,
            reason=end.reason if end else "",
            exit_code=end.exit_code if end else None,
            seconds=end.total_seconds if end else None,
            summary=end.metrics if end else None,
            metric=settings.metric,
            maximize=settings.maximize,
            take=settings.take,
            count=count,
        )
        self._telemetry.add(settings.influx, line)

    def _sweep(self, work: ActiveAttempt) -> tuple[SweepSettings, int | None]:
        state = self._agent.queue.sweeps.get(work.sweep)
        if state is None or state.revision is None:
            return work.attempt.settings, None
        return state.revision.settings, len(state.revision.table)

    def sampled(self, samples: list[Sample]) -> None:
        """Send the samples of one moment: the machine's to all InfluxDBs, a job's to its sweep's InfluxDB."""
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
