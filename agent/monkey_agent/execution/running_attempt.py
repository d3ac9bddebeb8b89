"""The running attempt, and its outcome."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from enum import Enum, auto
from typing import Any, Protocol

from monkey.spec.job.stop_when import StopEvidence, find_met_rule
from monkey.spec.yaml.units import format_duration
from monkey.store.store_port import Store
from monkey_agent.checkpoints.checkpoint_saver import LAST_PAUSES, CheckpointSavers
from monkey_agent.execution.exit_reasons import (
    describe_lingering,
    explain_exit,
    explain_failed_start,
    spell_exit_code,
    suggest_gpus,
)
from monkey_agent.execution.launched_process import LaunchedProcess
from monkey_agent.execution.stop_conditions import StopConditions
from monkey_agent.execution.workspace import Workspace
from monkey_agent.ports import Attempt, AttemptEnd, AttemptOutcome
from monkey_agent.receiving.metric_readers import MetricReaders
from monkey_agent.supervisor.process import ProcessExit
from monkey_agent.supervisor.shared_state import EXCEEDED, NOTHING, OWN, SIGNALLED, TIMED_OUT
from monkey_agent.telemetry.samples import AttemptSamples
from monkey_agent.uploads.attempt_history import list_needed_metrics
from monkey_agent.uploads.attempt_uploads import AttemptUploads
from monkey_agent.uploads.metric_files import MetricFiles
from monkey_agent.uploads.unshipped_files import UnshippedFiles

#: Least seconds between questions how long it ran: a job that is frozen just before its timeout stays there.
_MIN_PAUSE_SECONDS = 0.2
#: Seconds to wait for an order to stop after a SIGTERM ended a job: a machine that goes down sends it to us, too.
GOING_DOWN = 1.0
#: Share of the seconds that jobs have to end on a machine that goes, for the outputs of a released attempt.
OUTPUTS_SHARE = 0.25
_TERMINATED = (-signal.SIGTERM, SIGNALLED + signal.SIGTERM)


class EndCause(Enum):
    """The cause for which the agent itself ended an attempt."""

    STOPPED = auto()
    TIMED_OUT = auto()
    MET = auto()
    REPLACED = auto()


_ENDS = {EndCause.STOPPED: AttemptEnd.STOPPED, EndCause.MET: AttemptEnd.MET}
#: Endings that the job itself brought about.
_OWN_ENDS = (AttemptEnd.SUCCEEDED, AttemptEnd.FAILED, AttemptEnd.MET)


class AttemptServices(Protocol):
    """The runner's services for a running attempt."""

    store: Store
    checkpoints: CheckpointSavers
    #: Largest number of seconds that a job may take to end, whatever its sweep says.
    most_grace: float

    def spawn(self, chore: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine to its end before the runner closes."""

    #: Brings what running jobs wrote to the store.
    ship: Callable[[], Awaitable[None]]

    def ended(self, running: RunningAttempt) -> None:
        """Note that the attempt's processes are gone."""

    def merged(self, running: RunningAttempt) -> None:
        """Note that the files of the attempt are whole in the store: nothing of it is to be shipped."""

    def give(self, space: Workspace) -> None:
        """Take a workspace back."""


class RunningAttempt:
    """The real `LiveAttempt`."""

    def __init__(self, services: AttemptServices, attempt: Attempt, launched: LaunchedProcess) -> None:
        """Follow a launched process until all that it leaves is in the store."""
        self._services, self._attempt, self.process = services, attempt, launched.process
        self._space, self._program, self._launched = launched.space, launched.program, launched
        self._checkpoint, self.log = launched.checkpoint, launched.log
        self._checkpoint.note = self.log.note
        rules = attempt.settings.stop_when
        self._conditions = StopConditions(rules) if rules else None
        self._met: StopEvidence | None = None
        watch, needed = self._conditions.see if self._conditions else None, list_needed_metrics(attempt)
        self._metrics = MetricFiles(self._space.metrics, watch, needed, self._space.history)
        self._readers = MetricReaders(self._space, attempt.settings.sources, self.log.note)
        self._checkpoint.measure, self._checkpoint.ship = self._metrics.sizes, self._ship
        #: What was not shipped yet of what it writes.
        self.unshipped = UnshippedFiles(attempt.job, attempt.k, self.log.open_cursor(), self._metrics, self.log.limit)
        self.job, self.sweep, self.gpus = attempt.job, attempt.sweep, launched.gpus
        self.samples = AttemptSamples(self._space.samples, attempt.settings.resources.memory, launched.note_begun)
        self._uploads = AttemptUploads(services.store, launched, self._metrics, self.samples)
        self._why: tuple[EndCause, str] | None = None
        self._asked, self._frozen, self._minding = "", False, False
        self._outcome: AttemptOutcome | None = None
        self._lock = asyncio.Lock()
        limit = attempt.settings.timeout
        self._limit = asyncio.get_running_loop().create_task(self._time_out(limit)) if limit is not None else None

    # -- while it runs ------------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """See `LiveAttempt.begun`."""
        return self.process.begun

    def begin(self) -> None:
        """See `LiveAttempt.begin`."""
        self.process.begin()

    def freeze(self) -> None:
        """See `LiveAttempt.freeze`."""
        self._frozen = self._checkpoint.frozen = True
        self.process.freeze()

    def thaw(self) -> None:
        """See `LiveAttempt.thaw`."""
        self._frozen = self._checkpoint.frozen = False
        self.process.thaw()

    async def _time_out(self, limit: float) -> None:
        """End the job once it ran for `limit` seconds by the supervisor's count, which leaves out freezes."""
        left = limit
        while left > 0:
            await asyncio.sleep(max(left, _MIN_PAUSE_SECONDS))
            left = limit - await self.process.active()
        if self._why is None and not self.process.ended.done():
            self.timed_out()
            await self._end()

    def timed_out(self) -> None:
        """Note that the attempt timed out."""
        self._why = EndCause.TIMED_OUT, f"timed out after {format_duration(self._attempt.settings.timeout or 0)}"

    async def stop(self, reason: str) -> None:
        """See `LiveAttempt.stop`."""
        self._asked = reason
        if not self.process.ended.done():
            if self._why is None:
                self._why = EndCause.STOPPED, reason
            await self._end()

    async def _end(self) -> None:
        for pause in LAST_PAUSES if not self._frozen and self._checkpoint.in_use else ():
            await self.process.halt()
            await self._readers.catch_up()
            whole = await self._checkpoint.last_moment()
            if not self._frozen:
                self.process.thaw()
            if whole or self._frozen or (await asyncio.wait([self.process.ended], timeout=pause))[0]:
                break
        if not self._frozen:
            self.process.terminate()
            grace = min(self._attempt.settings.grace, self._services.most_grace)
            await asyncio.wait([self.process.ended], timeout=grace)
        self.process.kill()
        await asyncio.wait([self.process.ended])

    def progress(self) -> dict[str, dict[str, Any]]:
        """See `LiveAttempt.progress`."""
        return self._metrics.progress()

    def usage(self) -> dict[str, float]:
        """See `LiveAttempt.usage`."""
        return self.samples.progress() | self._metrics.skipped

    def tick(self) -> None:
        """Do the work of every second: check the workspace, the checkpoint and the conditions."""
        if self._at_work and (replaced := self._space.replaced()):
            self._why = EndCause.REPLACED, replaced
            self._services.spawn(self._end())
        self._checkpoint.tick()
        self._readers.tick()
        if self._conditions is not None and not self._minding:
            self._minding = True
            self._services.spawn(self._mind(self._conditions))

    async def _ship(self) -> None:
        await self._readers.catch_up()
        await self._services.ship()

    @property
    def _at_work(self) -> bool:
        """Return whether the job runs, is not frozen, and was not ended by the agent."""
        return self.process.begun and not (self._frozen or self._why or self.process.ended.done())

    async def _mind(self, conditions: StopConditions) -> None:
        """End the job if it meets one of its conditions, unless it ended by itself meanwhile."""
        try:
            self._metrics.progress()
            silent = conditions.listen(await self.process.active()) if conditions.listens else None
            met = conditions.met() or silent
            rule = find_met_rule(self._attempt.settings.stop_when, met) if met else None
            if met and rule and self._at_work:
                self._met, self._why = met, (EndCause.MET, rule.told(met))
                await self._end()
        finally:
            self._minding = False

    # -- when it has ended --------------------------------------------------------------------------------------------

    async def wait(self) -> AttemptOutcome:
        """See `LiveAttempt.wait`."""
        how = self.process.ended.result() if self.process.ended.done() else await asyncio.shield(self.process.ended)
        async with self._lock:
            if self._outcome is None:
                if self._limit is not None:
                    self._limit.cancel()
                self._services.ended(self)
                await self._ask_who_ended(how)
                self._judge(how)
                self._outcome = await self._conclude(how)
        return self._outcome

    async def _ask_who_ended(self, how: ProcessExit) -> None:
        """Find out whether its runtime ran nothing, or a foreign SIGTERM was for this machine: we are stopped then."""
        if terminated := self._why is None and how.kind == "ended" and how.code in _TERMINATED:
            await asyncio.sleep(GOING_DOWN)
        (cause, why), asked = self._why or (None, ""), self._asked if terminated else ""
        if cause in (None, EndCause.TIMED_OUT) and (reason := asked or self._launched.find_fault(how, why)):
            self._why = EndCause.STOPPED, reason
            self.process.judge(NOTHING)

    def _judge(self, how: ProcessExit) -> None:
        """Note whether an agent's next life is to record this exit: not if we stopped the job, or it never ran."""
        if how.kind == "ended" and not how.cut and (self._why is None or self._why[0] is EndCause.TIMED_OUT):
            self.process.judge(TIMED_OUT if self._why else EXCEEDED if how.over else OWN)

    async def _conclude(self, how: ProcessExit) -> AttemptOutcome:
        """Return the outcome once all that it names is in the store; may be called again after a StoreError."""
        await self._readers.finish()
        outcome = replace(self._verdict(how), facts=await self._launched.record_facts())
        wrong = self._space.replaced() if outcome.ending in _OWN_ENDS else ""
        try:
            outcome = await self._uploads.upload_record(outcome, how)
            if outcome.ending in _OWN_ENDS and (outputs := await self._uploads.upload_outputs()):
                outcome = replace(outcome, outputs=outputs)
        except OSError as exc:
            wrong = wrong or self._space.keep_unread(exc)
        if wrong or self._uploads.refusal:
            reasons = filter(None, (outcome.reason, wrong, self._uploads.refusal))
            outcome = replace(outcome, ending=AttemptEnd.FAILED, reason="; ".join(dict.fromkeys(reasons)), met=None)
        if outcome.ending is AttemptEnd.SUCCEEDED:
            outcome = replace(outcome, met=self._conditions.met(sweep=True) if self._conditions else None)
            await self._checkpoint.succeeded()
        else:
            exited = 0 <= how.code < SIGNALLED or how.children_exited
            await self._checkpoint.finish(by_itself=how.kind == "ended" and exited)
        files = await self._uploads.upload_log()
        outcome = replace(outcome, checkpoint=self._checkpoint.published, files=files)
        if files is None:  # else its end is still to be written
            self._services.merged(self)
        if outcome.ending is AttemptEnd.STOPPED:
            # The last: a machine that is about to go has little time, and without them the job can continue.
            seconds = self._services.most_grace * OUTPUTS_SHARE
            outcome = replace(outcome, outputs=await self._uploads.upload_some_outputs(seconds))
        return replace(outcome, log_tail=self.log.tail()) if outcome.ending is AttemptEnd.FAILED else outcome

    async def keep_files(self) -> None:
        """See `LiveAttempt.keep_files`."""
        await self._uploads.upload_riding()

    @property
    def merged(self) -> bool:
        """See `LiveAttempt.merged`."""
        return self._outcome is not None

    def leave(self, *, recorded: bool) -> None:
        """See `LiveAttempt.leave`."""
        self.process.judge(NOTHING)
        self._services.merged(self)  # or it never will be
        self._services.give(self._space)
        succeeded = self._outcome is not None and self._outcome.ending is AttemptEnd.SUCCEEDED
        if recorded and succeeded and self._checkpoint.left_any:
            self._services.spawn(self._services.checkpoints.forget(self._attempt.job))

    def _verdict(self, how: ProcessExit) -> AttemptOutcome:
        if how.kind == "lost":
            return AttemptOutcome(AttemptEnd.LOST, "the supervisor died, and the job with it")
        if how.kind == "refused" or (how.kind == "failed" and self._why):
            why = self._why[1] if self._why else "out of touch with the store before it began"
            return AttemptOutcome(AttemptEnd.STOPPED, why)
        if how.kind == "failed":
            return AttemptOutcome(AttemptEnd.FAILED, explain_failed_start(how, self._program, self._space.work))
        outcome = AttemptOutcome(AttemptEnd.SUCCEEDED, "", spell_exit_code(how.code), seconds=how.seconds)
        if how.left:
            self._space.spoilt = True
            self.log.note(f"{how.left} of its processes could not be killed (a disk or share that does not answer?)")
        if self._why is not None:
            cause, reason = self._why
            return replace(outcome, ending=_ENDS.get(cause, AttemptEnd.FAILED), reason=reason, met=self._met)
        if how.over or how.code:
            asked, log_tail = self._attempt.settings.resources, self.log.tail()
            reason = explain_exit(how, asked.memory, self._space, log_tail)
            if not asked.gpus and not how.over:
                reason += suggest_gpus(log_tail)
            return replace(outcome, ending=AttemptEnd.FAILED, reason=reason)
        if how.lingered:
            told = describe_lingering(how, self._attempt.settings.grace)
            self.log.note(told)
            if how.cut:
                return replace(outcome, ending=AttemptEnd.FAILED, reason=told)
        return outcome
