"""Machines that run jobs on virtual time: what the real runner and supervisor do, as the protocol sees it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from monkey.errors import JobFailed
from monkey.protocol.layout import Keys
from monkey.protocol.record.shipment import Piece
from monkey.spec.job.stop_when import StopEvidence
from monkey_agent.checkpoints.checkpoint_saver import ship_nothing
from monkey_agent.ports import Attempt, AttemptEnd, AttemptOutcome, LiveAttempt, SlotGrant

if TYPE_CHECKING:
    from tests.simulation.net import Host
    from tests.simulation.world import World

KEYS = Keys("p")


def job_id(n: int) -> str:
    return f"{n:016x}"


#: What the results of every other job came from; of the rest it is not known.
FACTS = "f" * 64


class Execution:
    """The processes of one attempt. `active` means that they do something at this very moment."""

    def __init__(self, body: Body, attempt: Attempt) -> None:
        self.body, self.attempt, self.world = body, attempt, body.world
        self.frozen = self.stopped_by_supervisor = self.begun = self.called = False
        #: Begins when this one has exited by itself.
        self.follower: Execution | None = None
        self.over = asyncio.Event()
        self.outcome: AttemptOutcome | None = None
        rnd = self.world.random
        self.left = rnd.uniform(*self.world.jobs)
        self.verdict = rnd.choices([AttemptEnd.SUCCEEDED, AttemptEnd.FAILED, AttemptEnd.LOST], [16, 3, 0.3])[0]
        if not self.world.weather.flaky:
            self.verdict = AttemptEnd.SUCCEEDED
        #: When it saves a checkpoint: seconds before its end.
        own = random.Random(f"{attempt.job} {attempt.k}")
        self.saves = own.uniform(0, self.left) if own.random() < 0.5 else None
        self.world.pilots.size(self)
        self.met = self._meets() if self.world.weather.flaky else None
        self._since = self.ran = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def _meets(self) -> StopEvidence | None:
        """Say what it shows of its sweep's conditions: it is ended for that, or ends a moment before that is seen."""
        rules, own = self.attempt.settings.stop_when, random.Random(f"meets {self.attempt.job} {self.attempt.k}")
        if not rules or own.random() > 0.3:
            return None
        rule = own.choice(rules)
        ended = not rule.sweep or own.random() < 0.5
        self.verdict = AttemptEnd.MET if ended else AttemptEnd.SUCCEEDED
        value = float("nan") if rule.above is None else own.choice([rule.above + 0.05, 0.95])
        return StopEvidence(rule.metric, value)

    @property
    def active(self) -> bool:
        return self.begun and self.outcome is None and not self.frozen and not self.stopped_by_supervisor

    def begin(self) -> None:
        self.called = True
        if self.begun or self.frozen or self.outcome is not None:
            return
        if self.body.late:
            self.end(AttemptOutcome(AttemptEnd.STOPPED, "refused"))
            return
        self.begun = True
        self.world.launched(self)
        self._run()

    def _run(self) -> None:
        self._since = self.world.loop.time()
        self._timer = self.world.loop.call_later(self.left, self._finish)
        self.world.works(self)

    def _halt(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
            self.left -= self.world.loop.time() - self._since
            self.ran += self.world.loop.time() - self._since
            self._save()

    def _save(self) -> None:
        """Have a checkpoint in the store, if it came so far: nobody waits for it, and no answer decides anything."""
        if self.saves is not None and self.left <= self.saves and not self.world.away(self.world.loop.time()):
            self.saves = None
            self.world.pilots.save(self)

    def _finish(self) -> None:
        failed = self.verdict is AttemptEnd.FAILED
        summary = {self.met.metric: {"nonfinite": 1}} if self.met and self.met.value != self.met.value else {}
        facts = FACTS if int(self.attempt.job, 16) % 2 else ""
        outcome = AttemptOutcome(
            self.verdict, "exit code 1" if failed else "", 1 if failed else 0, summary, met=self.met, facts=facts
        )
        if self.verdict in (AttemptEnd.SUCCEEDED, AttemptEnd.FAILED):
            self.body.host.exits[self.attempt.job] = (self.attempt.k, outcome)
        if self.verdict is not AttemptEnd.LOST:
            self.body.on_exit()
        self.end(outcome)
        if (
            self.follower
            and self.verdict in (AttemptEnd.SUCCEEDED, AttemptEnd.FAILED)
            and not (self.follower.frozen or self.body.late)
        ):
            self.world.counts["begun in line"] += not self.follower.begun
            self.follower.begin()

    def end(self, outcome: AttemptOutcome) -> None:
        if self.outcome is None:
            self._halt()
            self.outcome = self.world.pilots.measure(self, outcome)
            self.body.executions.pop(self, None)
            self.over.set()

    # -- Running ------------------------------------------------------------------------------------------------------

    def freeze(self) -> None:
        self.world.counts["freeze"] += not self.frozen and self.outcome is None
        if self.active:
            self._halt()
        self.frozen = True

    def thaw(self) -> None:
        if self.frozen and self.outcome is None:
            self.world.counts["resumption"] += 1
            self.frozen = False
            if self.active:
                self._run()
            elif self.called and not self.begun:
                self.begin()

    def supervisor(self, stop: bool) -> None:
        if stop and self.active:
            self.world.counts["freeze by the supervisor"] += 1
            self._halt()
        was, self.stopped_by_supervisor = self.stopped_by_supervisor, stop
        if was and not stop and self.active:
            self._run()

    async def stop(self, reason: str) -> None:
        if self.begun and not self.frozen:
            await self.body.host.sleep(self.world.random.choice([0.1, self.attempt.settings.grace]))
        self.end(AttemptOutcome(AttemptEnd.STOPPED, reason))
        await self.over.wait()

    async def wait(self) -> AttemptOutcome:
        await self.over.wait()
        await self.body.host.awake()
        assert self.outcome is not None
        return self.outcome

    def leave(self, *, recorded: bool) -> None:
        assert self.outcome is not None, "left before it ended"
        self.body.host.exits.pop(self.attempt.job, None)

    async def keep_files(self) -> None:
        """Nothing rode in its end."""

    @property
    def merged(self) -> bool:
        return True

    def progress(self) -> dict[str, dict[str, Any]]:
        return {}

    def usage(self) -> dict[str, float]:
        return {}


class Body:
    """The runner and the supervisor of one life of an agent."""

    def __init__(self, world: World, host: Host) -> None:
        self.world, self.host = world, host
        self.executions: dict[Execution, None] = {}
        self.deadline = float("inf")
        self.supervised, self.killed = True, False
        self.on_exit: Callable[[], None] = lambda: None
        self.ship: Callable[[], Awaitable[None]] = ship_nothing
        self._alarm: asyncio.TimerHandle | None = None
        for execution in host.left:
            execution.end(AttemptOutcome(AttemptEnd.LOST, "left behind"))

    @property
    def late(self) -> bool:
        return self.supervised and self.host.now() >= self.deadline

    def make(self, attempt: Attempt) -> Execution:
        """Return the processes of an attempt."""
        return Execution(self, attempt)

    async def start(self, attempt: Attempt, turn: Callable[[], Awaitable[SlotGrant | None]]) -> LiveAttempt | None:
        k, outcome = self.host.exits.get(attempt.job, (0, None))
        if outcome and attempt.ours_since <= k < attempt.k:
            self.world.counts["exit of an earlier life"] += 1
            execution = self.make(attempt)
            execution.begun = True
            execution.end(outcome)
            return execution
        try:
            return await self._start(attempt, turn)
        except asyncio.CancelledError:
            if not self.killed:
                self.world.counts["given up while it was prepared"] += 1
                # A build that is ended takes a while to go, and what was made of it to be removed.
                await self.host.sleep(self.world.random.choice([0, 0, 3]))
            raise

    async def _start(self, attempt: Attempt, turn: Callable[[], Awaitable[SlotGrant | None]]) -> LiveAttempt | None:
        rnd = self.world.random
        await self.host.sleep(self._preparation())
        if rnd.random() < 0.01 and not self.world.calm and self.world.weather.flaky:
            raise JobFailed("the environment does not build")
        ready = self.world.loop.time()
        try:
            given = await turn()
        except asyncio.CancelledError:
            self.world.counts["claimed ahead, never begun"] += not self.killed
            raise
        waited = self.world.loop.time() > ready
        if given is None or self.host.now() >= self.deadline:
            self.world.counts["claimed ahead, never begun" if waited else "not launched"] += 1
            return None
        self.world.counts["begun after a claim ahead"] += waited
        execution = self.make(attempt)
        self.executions[execution] = None
        if isinstance(given.after, Execution):
            given.after.follower = execution
        else:
            execution.begin()
        return execution

    def _preparation(self) -> float:
        """Return seconds; now and then so many that whoever is not heard while it lasts is not heard in time."""
        rnd = self.world.random
        if self.world.calm:
            return 0.1
        if self.world.quick and rnd.random() < 0.9:
            return rnd.choice([0, 0.01])
        return 800 if rnd.random() < 0.01 else rnd.choice([0.1, 0.5, rnd.uniform(0, 100)])

    def renew(self, deadline: float) -> None:
        self.deadline = deadline
        if self._alarm:
            self._alarm.cancel()
        if self.supervised and deadline < float("inf"):
            for execution in self.executions:
                execution.supervisor(stop=False)
            delay = max(0.0, (deadline - self.host.now()) / self.host.drift)
            self._alarm = self.world.loop.call_later(delay, self._strike)

    def _strike(self) -> None:
        for execution in list(self.executions):
            execution.supervisor(stop=True)

    def take_unshipped(self, most: int) -> Iterable[Piece]:
        return ()

    async def close(self) -> None:
        self.kill()

    def kill(self) -> None:
        """End everything, as the supervisor and its guards do when the agent dies, whichever of them dies with it."""
        self.killed = True
        if self._alarm:
            self._alarm.cancel()
        if self.world.mutant.unguarded:
            self.host.left = list(self.executions)
            return
        for execution in list(self.executions):
            execution.end(AttemptOutcome(AttemptEnd.LOST, "killed"))
