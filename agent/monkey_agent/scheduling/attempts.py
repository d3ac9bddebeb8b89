"""Running attempts from claim to end entry, and keeping each of them under a claim that holds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from monkey.errors import CorruptObject, FleetError, JobFailed, MachineFault, StoreError, StoreLinked
from monkey.protocol.claims import RETRY_SECONDS, HeldClaim
from monkey.protocol.entries import EndEntry
from monkey.protocol.journal import make_record
from monkey.protocol.sweeps.permits import Permits
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey_agent.ports import AttemptEnd, AttemptOutcome, LiveAttempt, Runner, Slot, SlotGrant
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_context import AgentContext
from monkey_agent.scheduling.claiming import JobPicker
from monkey_agent.scheduling.job_records import make_end


class AttemptListener:
    """Receives what becomes of attempts; a subclass overrides what it needs."""

    def attempt_began(self, work: ActiveAttempt) -> None:
        """Take note that an attempt got its slot: it was claimed, perhaps long before."""

    def attempt_started(self) -> None:
        """Take note that a process was started, or waits for its turn."""

    def slot_vacated(self, work: ActiveAttempt) -> bool:
        """Take back the slot of an attempt that no longer runs, if it has one; says whether another attempt got it."""
        return False

    def end_recorded(self, work: ActiveAttempt, held: HeldClaim, end: EndEntry) -> None:
        """Take note that the end of an attempt is in the log, behind the claim `held`."""

    def attempt_over(self, work: ActiveAttempt, held: HeldClaim | None) -> None:
        """Take note that an attempt is over; `held`: its claim, if this agent recorded the end."""


class Attempts:
    """All attempts in hand."""

    def __init__(self, context: AgentContext, runner: Runner, permits: Permits, picker: JobPicker) -> None:
        """Run attempts by `runner`."""
        self._runner, self._permits, self._picker = runner, permits, picker
        self._claims, self._heart, self._clock = context.claims, context.heart, context.clock
        self._spawn, self._errors, self._troubles = context.spawn, context.errors, context.troubles
        self._time, self.time_over = context.time, False
        self.listeners: list[AttemptListener] = []
        self.in_hand: dict[str, ActiveAttempt] = {}
        picker.in_hand = self.in_hand
        #: Attempts whose processes may still run, or may yet be started.
        self.live: dict[ActiveAttempt, None] = {}

    def begin(self, work: ActiveAttempt) -> None:
        """Run a claimed attempt to its end; one without a slot is prepared, and waits for one."""
        work.since = self._clock.now()
        self.in_hand[work.job] = work
        self.live[work] = None
        if work.slot:
            self.give_slot(work, work.slot)
        self._spawn(self._live(work))

    def give_slot(self, work: ActiveAttempt, slot: Slot) -> None:
        """Let an attempt begin."""
        work.wait_for_nobody()
        work.slot, work.since, work.began = slot, self._clock.now(), self._clock.wall()
        work.called.set()
        for listener in self.listeners:
            self._notify(listener.attempt_began, work)
        if work.running:
            work.running.begin()

    def dismiss(self, work: ActiveAttempt, reason: str) -> None:
        """Release an attempt."""
        self._spawn(self.care_for(work, lambda: work.stop(reason)))

    async def care_for(self, work: ActiveAttempt, do: Callable[[], Awaitable[None]]) -> None:
        """Do something about one attempt; an unexpected error in that releases this attempt alone."""
        try:
            await do()
        except (StoreError, FleetError):
            raise
        except Exception as exc:
            reason = self._errors.tell(f"job {work.job}", exc)
            with self._errors.alone(f"job {work.job}"):
                await work.stop(reason)

    def _notify(self, hear: Callable[..., bool | None], *what: Any) -> bool:
        """Let a listener hear something, and return its answer: what goes wrong there is no harm to the attempt."""
        with self._errors.alone(hear.__qualname__):
            return bool(hear(*what))
        return False

    async def _live(self, work: ActiveAttempt) -> None:
        outcome = await self._execute(work)
        self.live.pop(work)
        called = [self._notify(listener.slot_vacated, work) for listener in self.listeners]
        if any(called):
            await asyncio.sleep(0)  # it begins before this one's end is written
        async with work.lock:
            held, work.held = work.held, None
            recorded = held is not None and await self._record(work, held, outcome)
        if outcome.files and work.running and not recorded:
            await self._keep_files(work, work.running)
        with self._errors.alone(f"job {work.job}"):
            if work.running:
                work.running.leave(recorded=recorded)
        self.in_hand.pop(work.job, None)
        for listener in self.listeners:
            self._notify(listener.attempt_over, work, held)

    async def _execute(self, work: ActiveAttempt) -> AttemptOutcome:
        try:
            await self._begun(work)
            if work.running is None:
                return AttemptOutcome(AttemptEnd.STOPPED, reason=work.stopping or "out of touch with the store")
            return await self._outcome(work.running)
        except (JobFailed, CorruptObject, StoreLinked) as exc:
            return AttemptOutcome(AttemptEnd.FAILED, reason=exc.message, log_tail=getattr(exc, "log_tail", []))
        except MachineFault as exc:
            return AttemptOutcome(AttemptEnd.STOPPED, reason=exc.message)
        except StoreError as exc:
            return AttemptOutcome(
                AttemptEnd.STOPPED, reason=f"the store did not give what the job needs: {exc.message}"
            )
        except FleetError:
            raise  # where no supervisor can be started, nothing can
        except Exception as exc:
            return await self._broken(work, exc)

    async def _broken(self, work: ActiveAttempt, exc: Exception) -> AttemptOutcome:
        """End an attempt alone in which something unexpected happened."""
        reason = self._errors.tell(f"job {work.job}", exc)
        if work.running:
            with contextlib.suppress(Exception):
                await work.running.stop(reason)
        return AttemptOutcome(AttemptEnd.FAILED, reason=reason)

    async def _begun(self, work: ActiveAttempt) -> None:
        """Wait until it runs, or will not: `work.stop` cancels what it waits for. Raises as `Runner.start` does."""
        if work.stopping:
            return
        work.starting = asyncio.ensure_future(self._start(work))
        try:
            await work.starting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not work.stopping or (task and task.cancelling()):
                raise  # it is we who are to end

    async def _start(self, work: ActiveAttempt) -> None:
        running = work.running = await self._runner.start(work.attempt, lambda: self._turn(work))
        if running is None:
            return
        if work.slot:
            running.begin()  # it got the slot while it was put in line for it
        if work.frozen:
            running.freeze()
        if work.stopping:
            self._spawn(self.care_for(work, lambda: running.stop(work.stopping)))
        self.check(work)
        for listener in self.listeners:
            self._notify(listener.attempt_started)

    async def _outcome(self, running: LiveAttempt) -> AttemptOutcome:
        while True:
            try:
                return await running.wait()
            except StoreLinked:
                raise  # a person has to mend that: the attempt fails with it
            except StoreError as exc:
                self._troubles.note(exc)
                await self._clock.sleep(RETRY_SECONDS)

    async def _keep_files(self, work: ActiveAttempt, running: LiveAttempt) -> None:
        """Bring the files to the store that an end was to hold: that end is not in the log."""
        with self._errors.alone(f"files of job {work.job}"):
            while True:
                try:
                    return await running.keep_files()
                except StoreError as exc:
                    self._troubles.note(exc)
                    await self._clock.sleep(RETRY_SECONDS)

    async def _record(self, work: ActiveAttempt, held: HeldClaim, outcome: AttemptOutcome) -> bool:
        """Append the end, and say whether it is in the log; an end that cannot be written becomes a failure."""
        try:
            return await self._conclude(work, held, outcome)
        except Exception as exc:
            reason = self._errors.tell(f"the end of job {work.job}", exc)
            with self._errors.alone(f"the end of job {work.job}"):
                broken = AttemptOutcome(AttemptEnd.FAILED, reason=reason, files=outcome.files)
                return await self._conclude(work, held, broken)
            return False

    async def _conclude(self, work: ActiveAttempt, held: HeldClaim, outcome: AttemptOutcome) -> bool:
        """Append the end; says whether it is in the log."""
        if outcome.ending is AttemptEnd.LOST:
            # No end entry: the next claim makes it a loss, and too many losses end the job.
            self._picker.note_lost(work.vitals())
            self._claims.drop(held)
            return False
        pilot_time = self._time.whole if self.time_over and outcome.reason == self._time.reason else 0.0
        end = make_end(work, held, outcome, self._clock.wall(), pilot_time)
        recorded = await self._claims.end(held, end)
        if recorded:
            self._picker.journal(make_record(work.job, held.k + 1, end))
            for listener in self.listeners:
                self._notify(listener.end_recorded, work, held, end)
        return recorded

    # -- fencing ------------------------------------------------------------------------------------------------------

    async def _turn(self, work: ActiveAttempt) -> SlotGrant | None:
        """Return the attempt's turn once it has one; None where it may not run."""
        while True:
            await work.called.wait()
            if work.held is None or work.stopping or not self._in_order(work):
                return None
            turn = work.turn()
            if turn:
                return turn
            work.called.clear()  # the one that it was to follow is gone

    def _in_order(self, work: ActiveAttempt) -> bool:
        return all(map(self._heart.may_work, work.epochs()))

    def check(self, work: ActiveAttempt) -> None:
        """Freeze the attempt if its right to run is gone, and begin to ask for it again."""
        if work.frozen or work.held is None or self._in_order(work):
            return
        work.freeze()
        self._spawn(self.care_for(work, lambda: self._ask_again(work)))

    def check_all(self) -> None:
        """Check every attempt that may have processes."""
        for work in list(self.live):
            self.check(work)

    async def _ask_again(self, work: ActiveAttempt) -> None:
        async with work.lock:
            # Job and permit must both have been claimed in the epoch that lasts: it may break in between.
            while work.held and not self._in_order(work):
                while not self._heart.may_work(self._heart.epoch):
                    await self._clock.sleep(RETRY_SECONDS)
                reason = await self._reclaim(work, work.sweep)
                if reason:
                    await work.stop(reason)
                    return
            work.thaw()

    async def _reclaim(self, work: ActiveAttempt, sweep: str) -> str:
        """Claim permit and job once more. Returns why that failed, or ''."""
        if work.permit:
            i, held = work.permit
            again = await self._claims.again(held, sweep)
            work.permit = (i, again) if again else None
            if again is None:
                return "its permit was taken over while the store was away"
        if work.held:
            work.held = await self._claims.again(work.held, sweep)
        return "" if work.held else "another agent took it over"

    def list_vitals(self, works: Iterable[ActiveAttempt]) -> Iterator[dict[str, Any]]:
        """Yield what heartbeats tell of these attempts."""
        for work in works:
            with self._errors.alone(f"what heartbeats tell of job {work.job}"):
                yield work.vitals()

    # -- orders -------------------------------------------------------------------------------------------------------

    async def hand_over(self, work: ActiveAttempt, to: SweepState) -> None:
        """Let another sweep that wants the job have it, without a restart; release it where that cannot be."""
        assert to.revision is not None
        async with work.lock:
            if work.held is None or work.stopping or work.sweep == to.name:
                return
            permit = None
            if to.revision.settings.max_concurrent_jobs is not None:
                permit = await self._permits.take(to)
                if permit is None:
                    self.dismiss(work, f"handed to sweep {to.name}, whose permits are all out")
                    return
            if work.permit:
                self._permits.give(work.sweep, work.permit)
            work.permit, work.sweep = permit, to.name
            work.held = await self._claims.again(work.held, to.name)
            if work.held is None:
                self.dismiss(work, "another agent took it over")
        self.check(work)
