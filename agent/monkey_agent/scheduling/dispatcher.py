"""The dispatcher hands out slots: as long as one is free, it claims and starts the most urgent sweep's next job.

While a sweep's jobs are short, it claims and prepares more jobs than there are slots (claimed ahead). A slot that comes
free is then taken at once. While jobs are over in a moment, each waits in line behind a running one. The supervisor
then starts it without asking. A job that got no slot for a while is released, so that others may have it. No other is
claimed ahead before a slot has come free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from monkey.errors import StoreError
from monkey.fleet.machine_capacity import format_resources
from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import Claim
from monkey.protocol.record.job_attempts import list_attempts
from monkey.protocol.sweeps.permits import Permits
from monkey.protocol.sweeps.revision import Revision
from monkey_agent.ports import Attempt, Slot, SlotPort
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_context import AgentContext
from monkey_agent.scheduling.attempts import AttemptListener, Attempts
from monkey_agent.scheduling.claiming import JobPicker
from monkey_agent.scheduling.job_candidates import JobCandidates
from monkey_agent.scheduling.sweep_queue import SweepQueue

#: Seconds below which a sweep's last job must have run for its next ones to be claimed ahead, and to be put in line: an
#: agent cannot start all jobs that are over in a moment one by one.
SHORT, INSTANT = 10.0, 0.1
#: Number of jobs that are claimed ahead for each slot, if they are short, and if they are over in a moment.
_FEW, _MANY = 0.5, 2.0
#: Seconds after which a job that was claimed ahead and got no slot is released.
_AHEAD = 5.0


class Dispatcher(AttemptListener):
    """The dispatcher: it begins attempts, and takes back their slots and permits."""

    def __init__(
        self,
        context: AgentContext,
        queue: SweepQueue,
        picker: JobPicker,
        permits: Permits,
        slots: SlotPort,
        attempts: Attempts,
        wake: asyncio.Event,
    ) -> None:
        """Hand out `slots` to the jobs of the queue's sweeps; `wake` is set when slots may be filled again."""
        self._identity, self._observer, self._clock = context.identity, context.observer, context.clock
        self._time, self._troubles = context.time, context.troubles
        self._queue, self._picker, self._permits = queue, picker, permits
        self._slots, self._attempts, self._wake = slots, attempts, wake
        #: Attempts that are claimed ahead, in the order in which they get slots.
        self._ahead: list[ActiveAttempt] = []
        #: Sweep to the seconds that its last attempt here had a slot.
        self._lasted: dict[str, float] = {}
        #: Whether a job was claimed ahead in vain since a slot last came free: another would be released, too.
        self._in_vain = False
        attempts.listeners.append(self)
        #: Whether no job is started any more.
        self.closed = False
        #: Whether a free slot found no job when slots were filled last.
        self._left_over = True
        #: Says why no job of a revision can run on this machine now; "" if one can, None while that is being found out.
        self.find_lack: Callable[[Revision], str | None] = lambda _: ""
        #: Says why none of them is begun for a moment; "" where they are.
        self.find_rest: Callable[[Revision], str] = lambda _: ""
        #: Sweeps of which it is being found out whether their jobs can run here.
        self._unclear = set[str]()

    def close(self) -> None:
        """Begin no job any more, and release the jobs that wait for a slot."""
        self.closed = True
        self.refill()

    def refill(self) -> None:
        """Fill the slots again soon."""
        self._wake.set()

    @property
    def alerts(self) -> list[str]:
        """Return the alerts that people should know; some may be empty."""
        return [*self._queue.alerts, self._slots.lacking, self._slots.held_up]

    @property
    def full(self) -> bool:
        """Return whether jobs run, and no slot is free for another."""
        return bool(self._attempts.live) and not self._left_over

    async def fill(self, leaving: Callable[[], bool]) -> None:
        """Begin attempts until no slot is free or no job is left before the next look. Raises StoreError."""
        self._call()
        self._left_over = False
        while not leaving() and not self.closed and await self._begin_any():
            pass
        self._dismiss()
        for sweep in self._permits.idle:
            await self._permits.release(sweep)

    def _find_lacks(self) -> None:
        """Find out of which sweeps no job can run here as this machine is now: no agent claims what it must fail."""
        sweeps = self._queue.by_sweep  # asked for each job that is begun: only those that lack something are kept
        known = {name: why for name, of in sweeps.items() if (why := self.find_lack(of.revision)) != ""}
        self._queue.lacking = {name: sweeps[name].leave_sweep(why) for name, why in known.items() if why}
        self._unclear = {name for name, why in known.items() if why is None}
        self._queue.resting = {name: why for name, of in sweeps.items() if (why := self.find_rest(of.revision))}

    async def _begin_any(self) -> bool:
        self._find_lacks()
        urgent: int | None = None
        for name in self._queue.order():
            candidates = self._queue.by_sweep.get(name)
            if candidates is None or name in self._unclear:
                continue  # a look came between; or the dispatcher is called again once it is clear
            if urgent is not None and candidates.revision.settings.priority < urgent:
                return False  # slots are kept free for a larger job that is more urgent
            try:
                if not self._slots.fits(asked := candidates.revision.settings.resources):
                    why = f"a job asks for {format_resources(asked)}, more than there is here"
                    self._queue.unfit[name] = candidates.leave_sweep(why)
                    continue
                if not self._time.fits(candidates.revision.settings.timeout):
                    self._queue.untimely[name] = candidates.revision.settings.timeout or 0.0
                    continue
                slot = self._slots.take(asked)
                held = slot is None and self._slots.held_by_others
                if (slot or self._may_claim_ahead(candidates)) and await self._begin(candidates, slot):
                    return True
                self._left_over = self._left_over or slot is not None
                if slot is None and (held or len(self._queue.by_sweep) > 1) and await self._waits(candidates):
                    urgent = candidates.revision.settings.priority
                    if held:
                        self._slots.wait(asked)
            except StoreError:
                raise
            except Exception as exc:
                self._queue.set_aside(name, exc)
        return False

    def _may_claim_ahead(self, candidates: JobCandidates) -> bool:
        """Return whether another job may be claimed ahead; not if it needs a permit, which it would hold in vain.

        Nor while the store refuses or does not answer: jobs hold their slots until they have stored what they made.
        """
        if self._in_vain or self._troubles.messages or self._slots.wanted_by_others:
            return False
        lasted, ahead = self._lasted.get(candidates.state.name, SHORT), len(self._ahead)
        enough = (len(self._attempts.live) - ahead) * (_MANY if lasted < INSTANT else _FEW)
        short = lasted < SHORT and ahead < enough and candidates.revision.settings.max_concurrent_jobs is None
        return short and not self._slots.lacking

    def _call(self) -> bool:
        """Give free slots to the attempts that wait for one, in their order; return whether any got one."""
        called = False
        for work in [work for work in self._ahead if not work.stopping]:
            if self.closed and not (work.running and work.running.begun):
                continue
            slot = self._slots.take(work.attempt.settings.resources)
            if slot is None:
                if self._slots.held_by_others:
                    self._slots.wait(work.attempt.settings.resources)
                break
            self._ahead.remove(work)
            self._attempts.give_slot(work, slot)
            called = True
        return called

    def attempt_started(self) -> None:
        """See `AttemptListener.attempt_started`; put jobs without a slot in line behind those that soon leave one."""
        for work in [] if self.closed else self._ahead:
            # A GPU is named when it begins, and datasets are looked at: who is there before may have altered them.
            if work.follows or work.running or work.attempt.settings.resources.gpus or work.attempt.recipe.datasets:
                continue
            before = next((before for before in self._attempts.live if self._leaves_soon(before, work)), None)
            if before is None:
                return
            work.follow(before)

    def _leaves_soon(self, before: ActiveAttempt, work: ActiveAttempt) -> bool:
        return (
            (before.running is not None and before.follower is None)
            and (before.slot is not None or before.follows is not None)
            and not (before.frozen or before.stopping)
            and before.attempt.settings.resources == work.attempt.settings.resources
            and self._lasted.get(before.sweep, SHORT) < INSTANT
        )

    def _dismiss(self) -> None:
        for work in self._ahead:
            begun = work.running and work.running.begun
            if (self.closed or self._clock.now() - work.since > _AHEAD) and not work.stopping and not begun:
                self._in_vain = True
                self._attempts.dismiss(work, "it was claimed ahead, and no slot came free")

    async def _waits(self, candidates: JobCandidates) -> bool:
        """Return whether the sweep has a job that only lacks a slot. Raises StoreError."""
        if candidates.revision.settings.max_concurrent_jobs is not None and not await self._permits.any_free(
            candidates.state
        ):
            return False
        found = await self._picker.find(candidates)
        if found:
            candidates.wait(found[0], 0)
        return found is not None

    async def _begin(self, candidates: JobCandidates, slot: Slot | None) -> bool:
        work = None
        try:
            work = await self._claim(candidates, slot)
        finally:
            if work is None and slot:
                self._slots.give(slot)
        if work:
            if slot is None:
                self._ahead.append(work)
            self._attempts.begin(work)
            self._call()
            self.attempt_started()
        return work is not None

    async def _claim(self, candidates: JobCandidates, slot: Slot | None) -> ActiveAttempt | None:
        """Claim a candidate; before that, take a permit if the sweep limits its concurrent jobs."""
        capped = candidates.revision.settings.max_concurrent_jobs is not None
        permit = held = None
        try:
            while found := await self._picker.find(candidates):
                job, log = found
                permit = permit or (await self._permits.take(candidates.state) if capped else None)
                if capped and permit is None:
                    candidates.wait(job, 0)
                    return None
                held = await self._picker.claim(candidates, job, log)
                if held:
                    attempt = self._attempt(candidates, job, held)
                    return ActiveAttempt(attempt, held, candidates.state.name, slot, permit=permit)
            return None
        finally:
            if permit and not held:
                self._permits.give(candidates.state.name, permit)

    def slot_vacated(self, work: ActiveAttempt) -> bool:
        """See `AttemptListener.slot_vacated`."""
        next_one, slot = work.follower, work.slot
        work.step_out()
        called = False
        if slot is None:
            self._ahead.remove(work)
        else:
            self._lasted[work.sweep], self._in_vain = self._clock.now() - work.since, False
            if next_one:
                self._ahead.remove(next_one)
                self._attempts.give_slot(next_one, slot)
                called = True
            else:
                self._slots.give(slot)
                called = self._call()
        self.refill()  # last: who was called begins before the next is claimed
        return called

    def attempt_over(self, work: ActiveAttempt, held: HeldClaim | None) -> None:
        """See `AttemptListener.attempt_over`."""
        if work.permit:
            self._permits.give(work.sweep, work.permit)
        candidates = self._queue.by_sweep.get(work.sweep)
        if candidates and held and self._queue.wanted(work.sweep, work.job):
            candidates.busy(work.job, self._picker.look)
            self._picker.settle(candidates, work.job, held.log)
        self.refill()

    def _is_ours(self, agent: str) -> bool:
        """Return whether `agent` is this agent, or an earlier life of it on this machine."""
        return agent == self._identity.agent or self._observer.predecessor(agent)

    def _attempt(self, candidates: JobCandidates, job: str, held: HeldClaim) -> Attempt:
        revision, claims = candidates.revision, held.log.entries
        *earlier, own = list_attempts(held.log)
        since = held.k
        for entry in reversed(claims[:-1]):
            if not (isinstance(entry, Claim) and self._is_ours(entry.agent)):
                break
            since -= 1
        return Attempt(
            job=job,
            k=held.k,
            sweep=candidates.state.name,
            recipe=revision.recipe,
            settings=revision.settings,
            parameters=revision.table.parameters(revision.rows[job]),
            number=own.number,
            ours_since=since,
            withheld=self._queue.secrets,
            agent=self._identity.agent,
            earlier=tuple(earlier),
            user=held.claim.user,
            checks=revision.checks.get(job, ""),
            ordered=candidates.state.changed_at,
        )
