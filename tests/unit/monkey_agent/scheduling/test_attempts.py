"""Attempts in hand: frozen once nobody knows that their claim holds, and ended with what is known of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

from monkey.errors import JobFailed, StoreUnavailable
from monkey.protocol.claims import RETRY_SECONDS, Claims, HeldClaim
from monkey.protocol.entries import Claim, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.record.end_files import EndFiles
from monkey.spec.job.lease_length import LEASE
from monkey.store.create import create_object
from monkey.store.memory import MemoryStore
from monkey_agent.ports import Attempt, AttemptEnd, AttemptOutcome, Slot
from monkey_agent.scheduling.active_attempt import ActiveAttempt
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity, ProtocolParts
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.scheduling.test_idle_hints import KEYS
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock
from tests.unit.protocol.sweeps.test_sweep_log import JOBS, REVISION

JOB = JOBS[1]
ME = "f/m/0"
#: Turns of the event loop in which all that waits for nothing outside comes to its end.
TURNS = 200


class YieldingClock(SleptClock):
    """A clock that moves where somebody sleeps, and lets others work meanwhile."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        await asyncio.sleep(0)


class Running:
    """An attempt's processes, which note what they are told."""

    begun = merged = True

    def __init__(self, outcome: AttemptOutcome | None = None) -> None:
        self.outcome, self.told = outcome, list[str]()
        #: How often the store does not answer while files are kept.
        self.refusals = 0

    def begin(self) -> None:
        """They have begun."""

    def freeze(self) -> None:
        self.told.append("freeze")

    def thaw(self) -> None:
        self.told.append("thaw")

    async def stop(self, reason: str) -> None:
        self.told.append(f"stop: {reason}")

    async def wait(self) -> AttemptOutcome:
        assert self.outcome is not None
        return self.outcome

    async def keep_files(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise StoreUnavailable
        self.told.append("keep files")

    def usage(self) -> dict[str, float]:
        return {}

    def progress(self) -> dict[str, Any]:
        return {}

    def leave(self, *, recorded: bool) -> None:
        self.told.append(f"leave, recorded: {recorded}")


class Desk:
    """An agent whose jobs are begun by hand."""

    def __init__(
        self,
        start: Callable[..., Awaitable[Running | None]] | None = None,
        parts: ProtocolParts | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.store, self.clock = MemoryStore(), YieldingClock()
        slots = SimpleNamespace(take=lambda _: None, give=lambda _: None, fits=lambda _: True, held_by_others=False)
        identity = AgentIdentity("p", "f", "m", "0", [], 1.0)
        runner, rng = cast(Any, SimpleNamespace(start=start)), random.Random(1)
        self.agent = AgentDaemon(
            self.store, identity, SIGNERS, self.clock, runner, cast(Any, slots), rng, parts or ProtocolParts()
        )
        self.agent.errors.say = say
        self.agent.heart.vitals, self.agent.heart.collect = dict, lambda: None
        self.log = EntryLog(KEYS.job_log(JOB))

    async def claim(self) -> ActiveAttempt:
        """Claim the job."""
        assert await self.agent.heart.beat()
        held = await self.agent.attempts._claims.take(self.log, "s")
        assert held
        attempt = Attempt(JOB, held.k, "s", REVISION.recipe, REVISION.settings, {}, 1, held.k)
        return ActiveAttempt(attempt, held, "s", Slot(1, (), 0))

    async def lose_touch(self, work: ActiveAttempt) -> Running:
        """Let its processes run until nobody knows that the claim holds."""
        running = Running()
        work.running = cast(Any, running)
        self.agent.attempts.check(work)
        assert not running.told, "its claim holds"
        self.clock.at += LEASE
        for _ in range(2):
            self.agent.attempts.check(work)
        return running

    async def settle(self) -> None:
        """Let all that can be done be done."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def read_log(self) -> list[str]:
        """Return what the job's log says."""
        log = EntryLog(self.log.base)
        await log.refresh(self.store)
        return [
            f"{entry.outcome}: {entry.reason}" if isinstance(entry, EndEntry) else f"{entry.agent}, {entry.continues}"
            for entry in log.entries
            if isinstance(entry, Claim | EndEntry)
        ]


def test_job_is_frozen_until_its_claim_was_made_again(run: Run) -> None:
    async def live() -> None:
        desk = Desk()
        work = await desk.claim()
        running = await desk.lose_touch(work)
        await desk.settle()
        assert running.told == ["freeze"] and work.frozen, "no heartbeat came through"
        assert await desk.agent.heart.beat()
        await desk.settle()
        assert running.told == ["freeze", "thaw"] and not work.frozen
        assert work.held and work.held.k == 2 and work.held.epoch == desk.agent.heart.epoch
        assert await desk.read_log() == [f"{ME}, False", f"{ME}, True"]
        desk.agent.attempts.check(work)
        assert running.told == ["freeze", "thaw"]
        await desk.agent._abandon()

    run(live())


def test_job_that_another_agent_took_over_meanwhile_is_stopped(run: Run) -> None:
    async def live() -> None:
        desk = Desk()
        work = await desk.claim()
        running = await desk.lose_touch(work)
        theirs = EntryLog(desk.log.base)
        await theirs.refresh(desk.store)
        assert await theirs.append(desk.store, create_object, 2, Claim("f/other/0", 1, 1, "s"))
        assert await desk.agent.heart.beat()
        await desk.settle()
        assert running.told == ["freeze", "stop: another agent took it over"] and work.held is None
        desk.clock.at += LEASE
        desk.agent.attempts.check(work)
        assert len(running.told) == 2, "it has no claim to ask for"
        await desk.agent._abandon()

    run(live())


def test_job_that_could_not_be_started_fails_with_what_its_preparation_said(run: Run) -> None:
    async def refuse(*_: object) -> Running:
        raise JobFailed("the environment could not be built", log_tail=["no such package"])

    async def live() -> None:
        said: list[str] = []
        desk = Desk(refuse, say=said.append)
        desk.agent.attempts.begin(await desk.claim())
        await desk.settle()
        assert await desk.read_log() == [f"{ME}, False", "failed: the environment could not be built"]
        await desk.log.refresh(desk.store)
        assert isinstance(desk.log.tail, EndEntry) and desk.log.tail.log_tail == ["no such package"]
        assert not said, "that is nothing unexpected"
        await desk.agent._abandon()

    run(live())


class BrokenClaims(Claims):
    """Cannot end any claim."""

    async def end(self, held: HeldClaim, end: EndEntry) -> bool:
        raise RuntimeError("it cannot be encoded")


def test_files_of_an_end_that_could_not_be_recorded_go_to_the_store(run: Run) -> None:
    running = Running(AttemptOutcome(AttemptEnd.SUCCEEDED, files=EndFiles()))

    async def start(*_: object) -> Running:
        return running

    async def live() -> None:
        said: list[str] = []
        desk = Desk(start, ProtocolParts(claims=BrokenClaims), said.append)
        desk.agent.attempts.begin(await desk.claim())
        await desk.settle()
        assert running.told == ["keep files", "leave, recorded: False"]
        assert len(said) == 1 and "it cannot be encoded" in said[0]
        await desk.agent._abandon()

    run(live())


def test_files_that_the_store_did_not_take_are_kept_once_it_answers(run: Run) -> None:
    running = Running(AttemptOutcome(AttemptEnd.SUCCEEDED, files=EndFiles()))
    running.refusals = 2

    async def start(*_: object) -> Running:
        return running

    async def live() -> None:
        desk = Desk(start, ProtocolParts(claims=BrokenClaims), lambda _: None)
        desk.agent.attempts.begin(await desk.claim())
        began = desk.clock.at
        await desk.settle()
        assert running.told == ["keep files", "leave, recorded: False"]
        assert desk.agent.troubles.messages, "people see that the store does not answer"
        assert desk.clock.at - began == 2 * RETRY_SECONDS, "a store that is away is not asked again and again"
        await desk.agent._abandon()

    run(live())


def test_files_of_an_end_that_was_recorded_are_in_it(run: Run) -> None:
    running = Running(AttemptOutcome(AttemptEnd.SUCCEEDED, files=EndFiles()))

    async def start(*_: object) -> Running:
        return running

    async def live() -> None:
        desk = Desk(start)
        desk.agent.attempts.begin(await desk.claim())
        await desk.settle()
        assert await desk.read_log() == [f"{ME}, False", "succeeded: "]
        assert running.told == ["leave, recorded: True"], "they are not stored once more"
        await desk.agent._abandon()

    run(live())


def test_job_that_was_not_started_as_its_claim_may_not_hold_is_released(run: Run) -> None:
    async def refuse(*_: object) -> None:
        return None

    async def live() -> None:
        desk = Desk(refuse)
        desk.agent.attempts.begin(await desk.claim())
        await desk.settle()
        assert await desk.read_log() == [f"{ME}, False", "released: out of touch with the store"]
        assert not desk.agent.attempts.in_hand and not desk.agent.heart.held
        await desk.agent._abandon()

    run(live())


def test_job_whose_supervisor_died_is_left_to_whoever_claims_it_next(run: Run) -> None:
    running = Running(AttemptOutcome(AttemptEnd.LOST))

    async def start(*_: object) -> Running:
        return running

    async def live() -> None:
        desk = Desk(start)
        desk.agent.attempts.begin(await desk.claim())
        await desk.settle()
        assert await desk.read_log() == [f"{ME}, False"]
        assert not desk.agent.heart.held, "nobody would ever run it"
        await desk.agent._abandon()

    run(live())
