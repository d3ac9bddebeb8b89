"""Handing out slots: as long as one is free, the most urgent sweep's next job is claimed and begun.

While a sweep's jobs are short, more are claimed and prepared than there are slots (claimed ahead): a slot that is left
is then taken at once. While they are over in a moment, each is put in line behind one that runs: the machine begins it
without asking. What got no slot for a while is released, so that others may have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from monkey.errors import StoreError
from monkey.protocol.claims import HeldClaim
from monkey.protocol.clock import Clock
from monkey.protocol.entries import Claim
from monkey.protocol.sweeps.permits import Permits
from monkey.spec.job.recipe import JobResources
from monkey_agent.ports import Attempt, Slot
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.attempts import Attempts
from monkey_agent.scheduling.claiming import JobPicker
from monkey_agent.scheduling.job_candidates import JobCandidates
from monkey_agent.scheduling.sweep_queue import SweepQueue

#: Seconds that a sweep's last job ran at most for its next ones to be claimed ahead, and for them to be put in line: an
#: agent cannot see to all jobs that are over in a moment one by one.
SHORT, INSTANT = 10.0, 0.1
#: Jobs that are claimed ahead for each slot.
_FEW, _MANY = 0.5, 2.0
#: Seconds after which what was claimed ahead and got no slot is released.
_AHEAD = 5.0


class SlotPort(Protocol):
    """The machine's capacity, packed."""

    @property
    def lacking(self) -> str:
        """What hinders any job from beginning here now, in words; "" for nothing."""

    def take(self, resources: JobResources) -> Slot | None:
        """Return a slot, or None when none is free now."""

    def give(self, slot: Slot) -> None:
        """Give a slot back."""

    def fits(self, resources: JobResources) -> bool:
        """Could the machine ever have such a slot?"""


class Dispatcher:
    """Begins attempts, and puts back what they leave free."""

    def __init__(
        self,
        desk: SweepQueue,
        picker: JobPicker,
        permits: Permits,
        slots: SlotPort,
        attempts: Attempts,
        clock: Clock,
        ours: Callable[[str], bool],
    ) -> None:
        """Hand out `slots` to the jobs of the desk's sweeps.

        `ours` says of an agent whether it is this one or an earlier life of it on this machine.
        """
        self._ours = ours
        self._desk, self._picker, self._permits = desk, picker, permits
        self._slots, self._attempts, self._clock = slots, attempts, clock
        #: Claimed ahead: in the order in which they are called.
        self._ahead: list[ActiveAttempt] = []
        #: Sweep to the seconds that its last attempt here had a slot.
        self._lasted: dict[str, float] = {}
        attempts.on_vacant, attempts.on_over, attempts.on_started = self._vacant, self._over, self._line_up
        #: No job is begun any more.
        self.closed = False
        #: Told that it is worth to fill the slots again.
        self.on_change: Callable[[], None] = lambda: None

    def close(self) -> None:
        """Begin no job any more, and release what waits for a slot."""
        self.closed = True
        self.on_change()

    @property
    def alerts(self) -> list[str]:
        """What people should know."""
        return [*self._desk.alerts, self._slots.lacking]

    async def fill(self, leaving: Callable[[], bool]) -> None:
        """Begin attempts until no slot is free or no job is left before the next look. Raises StoreError."""
        self._call()
        while not leaving() and not self.closed and await self._begin_any():
            pass
        self._dismiss()
        for sweep in self._permits.idle:
            await self._permits.release(sweep)

    async def _begin_any(self) -> bool:
        urgent: int | None = None
        for name in self._desk.order():
            board = self._desk.boards.get(name)
            if board is None:
                continue  # a look came between
            if urgent is not None and board.revision.settings.priority < urgent:
                return False  # slots are kept free for a larger job that is more urgent
            try:
                if not self._slots.fits(board.revision.settings.resources):
                    self._desk.unfit[name] = board.revision.settings.resources
                    continue
                slot = self._slots.take(board.revision.settings.resources)
                if (slot or self._may_claim_ahead(board)) and await self._begin(board, slot):
                    return True
                if slot is None and len(self._desk.boards) > 1 and await self._waits(board):
                    urgent = board.revision.settings.priority
            except StoreError:
                raise
            except Exception as exc:
                self._desk.set_aside(name, exc)
        return False

    def _may_claim_ahead(self, board: JobCandidates) -> bool:
        """Not of capped sweeps: what waits would hold a permit that another could use."""
        lasted = self._lasted.get(board.state.name, SHORT)
        ahead = len(self._ahead)
        enough = (len(self._attempts.live) - ahead) * (_MANY if lasted < INSTANT else _FEW)
        short = lasted < SHORT and ahead < enough and board.revision.settings.max_concurrent_jobs is None
        return short and not self._slots.lacking

    def _call(self) -> bool:
        """Give slots that are free to those that wait for one, in their order; says whether any got one."""
        called = False
        for work in [work for work in self._ahead if not work.stopping]:
            if self.closed and not (work.running and work.running.begun):
                continue
            slot = self._slots.take(work.attempt.settings.resources)
            if slot is None:
                break
            self._ahead.remove(work)
            self._attempts.give_slot(work, slot)
            called = True
        return called

    def _line_up(self) -> None:
        """Put those that wait for a slot in line behind attempts that will leave one in a moment."""
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
            before.running is not None
            and before.follower is None
            and (before.slot is not None or before.follows is not None)
            and not (before.frozen or before.stopping)
            and before.attempt.settings.resources == work.attempt.settings.resources
            and self._lasted.get(before.sweep, SHORT) < INSTANT
        )

    def _dismiss(self) -> None:
        now = self._clock.now()
        for work in self._ahead:
            begun = work.running and work.running.begun
            if (self.closed or now - work.since > _AHEAD) and not work.stopping and not begun:
                self._attempts.dismiss(work, "it was claimed ahead, and no slot came free")

    async def _waits(self, board: JobCandidates) -> bool:
        """Has it a job that only a slot is missing for?"""
        if board.revision.settings.max_concurrent_jobs is not None and not await self._permits.any_free(board.state):
            return False
        found = await self._picker.find(board)
        if found:
            board.wait(found[0], 0)
        return found is not None

    async def _begin(self, board: JobCandidates, slot: Slot | None) -> bool:
        work = None
        try:
            work = await self._claim(board, slot)
        finally:
            if work is None and slot:
                self._slots.give(slot)
        if work:
            if slot is None:
                self._ahead.append(work)
            self._attempts.begin(work)
            self._call()
            self._line_up()
        return work is not None

    async def _claim(self, board: JobCandidates, slot: Slot | None) -> ActiveAttempt | None:
        """Claim a job of the board, and before it a permit where the sweep is capped."""
        capped = board.revision.settings.max_concurrent_jobs is not None
        permit = held = None
        try:
            while found := await self._picker.find(board):
                job, log = found
                permit = permit or (await self._permits.take(board.state) if capped else None)
                if capped and permit is None:
                    board.wait(job, 0)
                    return None
                held = await self._picker.claim(board, job, log)
                if held:
                    return ActiveAttempt(self._attempt(board, job, held), held, board.state.name, slot, permit=permit)
            return None
        finally:
            if permit and not held:
                self._permits.give(board.state.name, permit)

    def _vacant(self, work: ActiveAttempt) -> bool:
        next_one, slot = work.follower, work.slot
        work.step_out()
        called = False
        if slot is None:
            self._ahead.remove(work)
        else:
            self._lasted[work.sweep] = self._clock.now() - work.since
            if next_one:
                self._ahead.remove(next_one)
                self._attempts.give_slot(next_one, slot)
                called = True
            else:
                self._slots.give(slot)
                called = self._call()
        self.on_change()  # last: who was called begins before the next is claimed
        return called

    def _over(self, work: ActiveAttempt, held: HeldClaim | None) -> None:
        if work.permit:
            self._permits.give(work.sweep, work.permit)
        board = self._desk.boards.get(work.sweep)
        if board and held and self._desk.wanted(work.sweep, work.job):
            board.busy(work.job, self._picker.look)
            self._picker.settle(board, work.job, held.log)
        self.on_change()

    def _attempt(self, board: JobCandidates, job: str, held: HeldClaim) -> Attempt:
        revision, claims = board.revision, held.log.entries
        since = held.k
        for entry in reversed(claims[:-1]):
            if not (isinstance(entry, Claim) and self._ours(entry.agent)):
                break
            since -= 1
        return Attempt(
            job=job,
            k=held.k,
            sweep=board.state.name,
            recipe=revision.recipe,
            settings=revision.settings,
            parameters=revision.table.parameters(revision.rows[job]),
            # Claims that only went on with a job are no tries of their own.
            number=sum(isinstance(entry, Claim) and not entry.continues for entry in claims),
            ours_since=since,
            withheld=self._desk.secrets,
        )
