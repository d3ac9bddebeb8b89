"""Claims: what an agent holds, and what it must not believe that it holds."""

from __future__ import annotations

from monkey.protocol.claims import Claims, HeldClaim
from monkey.protocol.entries import Claim
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.spec.job.lease_length import LEASE
from monkey.store.create import Lost, Won, create_object
from monkey.store.memory import MemoryState, MemoryStore
from monkey.store.store_port import Store
from tests.loops import Run
from tests.unit.monkey_agent.scheduling.test_polling import SleptClock

KEYS = Keys("p")
JOB = "0" * 16


class Agent:
    """One that claims; those of one state and clock meet."""

    def __init__(self, name: str, state: MemoryState, clock: SleptClock) -> None:
        self.name, self.store = f"f/{name}/b", MemoryStore(state)
        self.heart = HeartbeatWriter(self.store, KEYS.beat(self.name), clock)
        self.observer = HeartbeatObserver(self.store, KEYS, clock, self.name)
        #: Seconds that the store takes for an entry, and the clock that tells them.
        self.slow, self.clock = 0.0, clock
        #: What its heartbeat would have listed while it wrote each entry.
        self.listed: list[set[tuple[str, int]]] = []
        self.claims = Claims(self.store, self._create, self.heart, self.observer, clock)
        self.log = EntryLog(KEYS.job_log(JOB))

    async def _create(self, store: Store, key: str, data: bytes, *, durable: bool = True) -> Won | Lost:
        self.listed.append(set(self.heart.held))
        self.clock.at += self.slow
        return await create_object(store, key, data, durable=durable)

    async def take(self) -> HeldClaim | None:
        """Claim the job as an agent does: it beats, looks and reads the log before."""
        assert await self.heart.beat()
        await self.observer.look()
        await self.log.refresh(self.store)
        return await self.claims.take(self.log, "s")


async def read_claims(state: MemoryState) -> list[tuple[str, bool]]:
    """Return whose the claims of the job are, and whether they say that they continue the one before."""
    log = EntryLog(KEYS.job_log(JOB))
    await log.refresh(MemoryStore(state))
    assert all(isinstance(entry, Claim) for entry in log.entries)
    return [(entry.agent, entry.continues) for entry in log.entries if isinstance(entry, Claim)]


def test_claim_of_a_living_agent_is_not_taken(run: Run) -> None:
    async def meet() -> None:
        state, clock = MemoryState(), SleptClock()
        owner, other = Agent("owner", state, clock), Agent("other", state, clock)
        assert await owner.take()
        assert await owner.heart.beat()
        assert await other.take() is None
        assert not other.heart.held, "it would hold a claim that nobody wrote"
        assert await read_claims(state) == [("f/owner/b", False)]

    run(meet())


def test_claim_of_an_agent_that_is_gone_is_taken_and_begins_anew(run: Run) -> None:
    async def meet() -> None:
        state, clock = MemoryState(), SleptClock()
        owner, other = Agent("owner", state, clock), Agent("other", state, clock)
        assert await owner.take()
        for _ in range(5):
            await other.observer.look()
            clock.at += LEASE / 3
        taken = await other.take()
        assert taken and other.heart.held == {taken.spot} == {(other.log.base, 2)}
        assert await read_claims(state) == [("f/owner/b", False), ("f/other/b", False)]

    run(meet())


def test_claim_made_again_is_in_heartbeats_before_it_is_in_the_log(run: Run) -> None:
    async def ask() -> None:
        state = MemoryState()
        agent = Agent("owner", state, SleptClock())
        first = await agent.take()
        assert first
        again = await agent.claims.again(first, "s")
        assert again and again.k == first.k + 1
        assert agent.listed == [{first.spot}, {first.spot, again.spot}], "who reads it takes what is not listed"
        assert agent.heart.held == {again.spot}
        assert await read_claims(state) == [("f/owner/b", False), ("f/owner/b", True)]

    run(ask())


def test_claim_that_was_answered_after_the_lease_is_not_held(run: Run) -> None:
    async def claim() -> None:
        state = MemoryState()
        agent = Agent("owner", state, SleptClock())
        agent.slow = LEASE
        assert await agent.take() is None, "others may have taken it over by now"
        assert await read_claims(state) == [("f/owner/b", False)]
        assert not agent.heart.held, "nobody else would ever run the job"
        agent.slow = 0.0
        again = await agent.take()
        assert again and again.k == 2

    run(claim())


def test_agent_is_suspected_while_it_is_not_heard_of(run: Run) -> None:
    async def watch() -> None:
        state, clock = MemoryState(), SleptClock()
        owner, other = Agent("owner", state, clock), Agent("other", state, clock)
        assert await owner.take() and await owner.heart.beat()
        suspected = []
        for beats in (False, False, True, False):
            if beats:
                assert await owner.heart.beat()
            await other.observer.look()
            await other.log.refresh(other.store)
            suspected.append(other.claims.is_suspect(other.log))
            clock.at += LEASE / 6
        assert suspected == [True, True, False, False]

    run(watch())
