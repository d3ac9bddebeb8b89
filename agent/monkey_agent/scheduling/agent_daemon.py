"""The agent: beats, looks, picks, runs and leaves. Everything it needs to know is in the store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

from monkey.errors import (
    MachineUnfit,
    StoreError,
    StoreForbidden,
    StoreLinked,
    StoreMissing,
    StoreRefused,
    StoreReplaced,
)
from monkey.protocol.sweeps.permits import Permits
from monkey.protocol.wakeup import wake_agents
from monkey.signing.entry_signers import EntrySigners
from monkey.store.store_port import Store
from monkey_agent.lifecycle.heartbeat_loop import BEAT_RETRY, HeartbeatLoop
from monkey_agent.notifications.notifier import Notifier
from monkey_agent.ports import Clock, Runner, SlotPort
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_context import make_context
from monkey_agent.scheduling.agent_identity import PROTOCOL, AgentIdentity, ProtocolParts
from monkey_agent.scheduling.attempts import Attempts
from monkey_agent.scheduling.claiming import JobPicker
from monkey_agent.scheduling.dispatcher import Dispatcher
from monkey_agent.scheduling.job_candidates import JobCandidates
from monkey_agent.scheduling.polling import PollSchedule
from monkey_agent.scheduling.sweep_queue import SweepQueue
from monkey_agent.unexpected_errors import UnexpectedErrors
from monkey_agent.uploads.shipper import Shipper

#: Seconds between checks of the fence at the latest: timers of asyncio do not count the machine's sleep.
FENCE = 5.0
#: Seconds that an agent that starts, has no work or leaves waits for a store that does not answer.
PATIENCE_SECONDS = 60.0


class AgentDaemon:
    """One agent's life, from its first heartbeat to its last."""

    def __init__(
        self,
        store: Store,
        identity: AgentIdentity,
        signers: EntrySigners,
        clock: Clock,
        runner: Runner,
        slots: SlotPort,
        rng: random.Random,
        parts: ProtocolParts = PROTOCOL,
        errors: UnexpectedErrors | None = None,
    ) -> None:
        """Work as `identity` for the project in `store`; `clock`, `runner` and `slots` are the machine's.

        `signers`: whose entries in sweeps' logs it obeys. `errors` writes to the agent's log.
        """
        self.identity, self.store, self.clock, self.runner = identity, store, clock, runner
        self.errors, self._random = errors or UnexpectedErrors(), rng
        context = make_context(identity, store, signers, clock, rng, parts, self.errors, self._spawn)
        self.keys, self.heart, self.observer = context.keys, context.heart, context.observer
        self.troubles, self.time = context.troubles, context.time
        self._wake, self._leaving = asyncio.Event(), asyncio.Event()
        self.permits = Permits(store, self.keys, context.claims, self.heart, self.observer, rng)
        self.notifier = Notifier(context)
        self.queue = SweepQueue(context, self.notifier)
        self.picker = JobPicker(context, self.queue)
        self.attempts = Attempts(context, runner, self.permits, self.picker)
        self.dispatcher = Dispatcher(context, self.queue, self.picker, self.permits, slots, self.attempts, self._wake)
        self.shipper = Shipper(context, runner)
        self.attempts.listeners.append(self.shipper)
        self.beats = HeartbeatLoop(context, runner, self.queue, self.picker, self.attempts, self.dispatcher)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._failure: BaseException | None = None
        self._unfit: MachineUnfit | None = None
        self._idle_since: float | None = None
        #: Does it wait to see whether agents are gone, to leave their jobs to machines with more time?
        self._watches = False
        #: Did it leave because there was nothing to do; because it was asked to; because the store stayed away?
        self.found_nothing = self.taken_back = self.gave_up = self._was_busy = False
        self._why = "the agent leaves"

    # -- a life -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until there has been nothing to do for a while, or stop() is called. Raises MachineUnfit."""
        began = self.clock.now()
        while not await self.heart.beat():
            self._check_refusal(StoreLinked)
            if self._leaving.is_set() or self.clock.now() - began > PATIENCE_SECONDS + (
                self.identity.idle_timeout or 0
            ):
                self.errors.say("the store did not take a first heartbeat: giving up")
                if not self._leaving.is_set():
                    self._check_refusal(StoreForbidden)
                self.gave_up = True
                return
            await self.clock.sleep(BEAT_RETRY)
        self.runner.renew(self.heart.deadline)
        loops = self.beats.run(), self._looks(), self._fence(), self._dispatch(), self.shipper.run(), self._keep_time()
        for loop in loops:
            self._spawn(loop)
        await self._leaving.wait()
        if self._failure:
            await self._abandon()
            raise self._failure
        await self._leave()
        if self._unfit:
            raise self._unfit

    def _check_refusal(self, kind: type[StoreRefused]) -> None:
        """Raise MachineUnfit where the store last refused in a way that another start would not change."""
        refused = self.troubles.newest
        if isinstance(refused, kind):
            raise MachineUnfit(refused.message, hint=refused.hint)

    def stop(self, why: str = "", *, replaced: bool = False) -> None:
        """Ask the agent to release its jobs and leave; `why`: the reason; `replaced`: another does its work."""
        self.taken_back = self.taken_back or not replaced
        self._why = why or self._why
        self._leaving.set()

    def refuse_machine(self, unfit: MachineUnfit) -> None:
        """Ask the agent to leave, and to raise `unfit` then: this machine can run no job."""
        self._unfit = unfit
        self.stop(unfit.message)

    async def _leave(self) -> None:
        """Release what is in hand, seal the journal, say goodbye: as far as the store answers in time."""
        given_back = bool(self.attempts.in_hand)
        graces = [work.attempt.settings.grace for work in self.attempts.in_hand.values()]
        until = self.clock.now() + PATIENCE_SECONDS + max(graces, default=0)
        while self.attempts.in_hand and self.clock.now() < until:
            for work in list(self.attempts.in_hand.values()):
                if not work.stopping:
                    self.attempts.dismiss(work, self._why)
            await self.clock.sleep(0.05)
        for sweep in self.permits.idle:
            await self.permits.release(sweep)
        await self._abandon()
        while self.clock.now() < until + PATIENCE_SECONDS:
            if await self.beats.seal() and await self.heart.beat(left=True):
                if given_back:
                    await wake_agents(self.store, self.keys)  # others continue with it at once
                return
            await self.clock.sleep(BEAT_RETRY)

    async def _abandon(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, life: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(life)
        self._tasks[task] = None
        task.add_done_callback(self._over_and_done)
        return task

    def _over_and_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
            self._leaving.set()

    # -- loops --------------------------------------------------------------------------------------------------------

    async def _keep_time(self) -> None:
        """Leave when the machine's time is over."""
        if self.time.left == float("inf"):
            return
        while (left := self.time.left) > 0:
            await self.clock.sleep(min(left, FENCE))
        self.attempts.time_over = True
        work_left = bool(self.attempts.in_hand or self.queue.busy or self.queue.lacks_time)
        self.stop(self.time.reason, replaced=not work_left)

    async def _fence(self) -> None:
        while True:
            self.attempts.check_all()
            left = self.heart.deadline - self.clock.now()
            # Past the deadline everything is frozen already, and nothing new begins before the next beat.
            await self.clock.sleep(min(max(left, 0.05), FENCE) if left > 0 else FENCE)

    async def _looks(self) -> None:
        pauses = PollSchedule(self.store, self.keys, self.clock, self._random, self.observer)
        while True:
            try:
                with self.errors.alone("a look at the store"):
                    await self._look()
                self.troubles.expire()
            except StoreReplaced as exc:
                self._failure = exc  # nobody will ever ask what became of the jobs
                self._leaving.set()
            except StoreError as exc:
                self.troubles.note(exc)
                self._give_up_waiting(exc)
            shortly = None if self._idle_since is None else self.identity.idle_timeout
            self.queue.news |= await pauses.rest(
                idle=not self.queue.by_sweep,
                shortly=shortly,
                full=lambda: self.dispatcher.full,
                every_second=self._tell_of_work,
            )

    def _tell_of_work(self) -> bool:
        """Let who asks for the state see at once that work has started; say whether there is reason to look."""
        busy = any(work.running for work in self.attempts.live)
        if busy and not self._was_busy:
            self.beats.hurry()
        self._was_busy = busy
        return self.queue.finished and not self.attempts.in_hand

    def _give_up_waiting(self, exc: StoreError) -> None:
        """Leave a store that stays away, unless jobs are in hand: they are frozen, and wait for it.

        They do not wait for one that was moved or removed. Its other agents have them by now, and may want this
        machine, too.
        """
        late = self.clock.now() - self.heart.deadline
        if isinstance(exc, StoreMissing) and exc.removed and late > self.heart.lease:
            self.errors.say("the store was moved or removed, and its lease is over: the agent ends, and its jobs")
            self._failure = exc
            self._leaving.set()
        elif not self.attempts.in_hand and late > (self.identity.idle_timeout or float("inf")):
            self.errors.say("the store is away, and nothing is in hand that would wait for it: giving up")
            self.gave_up = True
            self._leaving.set()

    async def _look(self) -> None:
        watched = self.queue.watched
        await self.queue.look(self._at_work())
        self.picker.look += 1
        if self.queue.watched and not watched:
            self.beats.hurry()
        for work in list(self.attempts.live):
            self._mind(work)
        if self.queue.finished:
            await self.beats.seal()  # that nothing is left is said only once it is durable what became of it all
        await self.queue.tidy(self._at_work())
        self._idle()
        self._wake.set()

    def _at_work(self) -> set[str]:
        return {work.sweep for work in self.attempts.in_hand.values()}

    def _mind(self, work: ActiveAttempt) -> None:
        """See that an attempt is still wanted by its sweep; else by another; else release it."""
        if work.stopping or work.lock.locked() or self.queue.wanted(work.sweep, work.job):
            return
        to = self.queue.wanted_by(work.job)
        if to is None:
            self.attempts.dismiss(work, self.queue.why_not(work.sweep))
        else:
            self._spawn(self.attempts.care_for(work, lambda: self.attempts.hand_over(work, to)))

    def _idle(self) -> None:
        now = self.clock.now()
        if self.attempts.in_hand or self.queue.busy or self._watches:
            self._idle_since = None
            return
        self._idle_since = now if self._idle_since is None else self._idle_since
        patience = self.identity.idle_timeout
        # What has expired is not waited for: there are machines that are paid for until they go.
        if patience is not None and (self.queue.expired or now - self._idle_since >= patience):
            # What only lacks time is left to the next machine.
            self.taken_back = self.taken_back or self.queue.lacks_time
            self.found_nothing = not self.queue.lacks_time
            self._leaving.set()

    # -- dispatch -----------------------------------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                with self.errors.alone("handing out slots"):
                    await self.dispatcher.fill(self._leaving.is_set)
                    await self._release_abandoned()
            except StoreError as exc:
                self.troubles.note(exc)
            if self.queue.finished and self.heart.told < self.heart.journal.total:
                self.beats.hurry()  # whoever waits for the sweep's end is told at once

    async def _release_abandoned(self) -> None:
        """Release what agents that are gone hold of sweeps for which this machine has too little time.

        Raises StoreError.
        """
        watches = False
        try:
            for name, candidates in list(self.queue.by_sweep.items()) if self.time.left < float("inf") else ():
                if not (self._leaving.is_set() or self.dispatcher.closed or self.queue.over(candidates.state)):
                    watches |= await self._release_of(name, candidates)
        finally:
            self._watches = watches

    async def _release_of(self, name: str, candidates: JobCandidates) -> bool:
        most = candidates.revision.settings.timeout
        if not self.time.ever_fits(most):
            return False
        try:
            watches = await self.picker.release_abandoned(candidates)
            return (not self.time.fits(most) and await self.permits.release_abandoned(name)) or watches
        except StoreError:
            raise
        except Exception as exc:
            self.queue.set_aside(name, exc)
            return False
