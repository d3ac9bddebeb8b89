"""The lock on a fleet's machines: one process changes them at a time, over all machines, by a log in the store.

The rules are those by which agents claim jobs (monkey.protocol). A holder sends heartbeats, and works only while the
store acknowledges them. It is taken over when its heartbeats stand still. A dead holder on the same machine causes no
wait. Pulumi and its plugins hold a lock file, too, which shows whether any process of the holder is left.
"""

from __future__ import annotations

import asyncio
import getpass
import secrets
from collections.abc import Callable

from monkey.errors import FleetError, StoreError
from monkey.fleet.agent_state import make_host_name
from monkey.fleet.fleet_port import Say
from monkey.fleet.user_directories import locate_agent_state
from monkey.protocol.claims import Claims, HeldClaim
from monkey.protocol.clock import Clock, MachineClock
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.lease import compute_beat_pause
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.spec.job.lease_length import LEASE
from monkey.store.create import create_object
from monkey.store.store_port import Store
from monkey_stacks.locking.local_lock import LockDirectory

#: Largest number of seconds between looks at a lock that another process holds.
_POLL_SECONDS = 5.0
#: Seconds that the end of our claim may take to reach the store; after that, others wait until they miss our beats.
PARTING = 20.0


def _nothing(deadline: float) -> None:
    """Ignore a deadline."""


class LockHolders(Keys):
    """The keys of one fleet's machines: their state, the log of its lock, and the heartbeats of lock holders."""

    def __init__(self, project: str, fleet: str) -> None:
        """See `Keys`."""
        super().__init__(project)
        self.fleet = fleet
        self.state = f"{self.machines}{fleet}/state/"
        self.lock = f"{self.machines}{fleet}/lock/"
        # Where an Observer looks for beats, and at what others tell of them.
        self.agents = f"{self.machines}{fleet}/hands/"
        self.roster = f"{self.machines}{fleet}/roster"


class StateLock:
    """The lock on a fleet's machines, as one process uses it."""

    def __init__(
        self, store: Store, keys: LockHolders, renewed: Callable[[float], None] = _nothing, clock: Clock | None = None
    ) -> None:
        """Start without the lock. `renewed` receives each new deadline, on `clock` (default: the machine's)."""
        self._store, self._keys, self._renewed = store, keys, renewed
        self._clock = clock or MachineClock()
        self.me = f"{_user()}@{make_host_name()}/{secrets.token_hex(6)}"
        self._heart = HeartbeatWriter(store, keys.beat(self.me), self._clock)
        self._place = LockDirectory(locate_agent_state(store.url, keys.project, keys.fleet, "@machines"))
        self._held: HeldClaim | None = None
        self._claims: Claims | None = None
        self._beating: asyncio.Task[None] | None = None

    @property
    def place(self) -> LockDirectory:
        """Return the lock's directory on this machine."""
        return self._place

    def valid(self) -> bool:
        """Return whether we hold the lock now, beyond doubt."""
        return self._held is not None and self._heart.may_work(self._held.epoch)

    async def acquire(self, say: Say) -> bool:
        """Wait for the lock and take it; return whether another process held it meanwhile.

        Raises StoreError, FleetError.
        """
        waited = await self._place.enter(say)
        try:
            predecessors = self._place.begin(self.me)
            self._beating = asyncio.create_task(self._beat())
            return await self._claim(predecessors, say) or waited
        except BaseException:
            await self.release()
            raise

    async def _claim(self, predecessors: frozenset[str], say: Say) -> bool:
        observer = HeartbeatObserver(self._store, self._keys, self._clock, self.me, predecessors)
        self._claims = Claims(self._store, create_object, self._heart, observer, self._clock)
        log, waited, told = EntryLog(self._keys.lock), False, ""
        while True:
            await log.jump(self._store)
            await observer.look()
            if self._claims.free(log) and self._heart.may_work(self._heart.epoch):
                self._held = await self._claims.take(log, "")
                if self._held is not None:
                    self._renewed(self._heart.deadline)
                    return waited
            owner = getattr(log.tail, "agent", "") if not self._claims.free(log) else ""
            if owner and owner != told:
                say(f"waiting for {owner.partition('/')[0]}, who changes the machines of {self._keys.fleet} now")
                waited, told = True, owner
            await self._clock.sleep(min(_POLL_SECONDS, max(self._store.poll, 0.2)))

    async def _beat(self) -> None:
        while True:
            began = self._clock.now()
            if await self._heart.beat() and self.valid():
                self._renewed(self._heart.deadline)
            await self._clock.sleep(max(0.1, compute_beat_pause(LEASE) - (self._clock.now() - began)))

    async def release(self) -> None:
        """Release the lock. If the store does not answer, others take it over when they miss our heartbeats."""
        held, self._held = self._held, None
        try:
            if held is not None and self._claims is not None:
                async with asyncio.timeout(PARTING):
                    await self._claims.release(held, "done")
        except (StoreError, TimeoutError):
            pass
        finally:
            if self._beating is not None:
                self._beating.cancel()
                await asyncio.wait({self._beating})
            await self._forget()
            self._place.leave()

    async def _forget(self) -> None:
        """Remove our heartbeat, which is of no use after a release."""
        try:
            async with asyncio.timeout(PARTING):
                await self._store.delete(self._keys.beat(self.me))
        except (StoreError, TimeoutError):
            return


def make_lock_lost_error() -> FleetError:
    """Return the error for a lock that we lost while we worked under it."""
    return FleetError(
        "the store did not answer for so long that somebody else may change the machines now; so we ended",
        hint="apply again when the store can be reached: it goes on from there",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in many containers
        return "somebody"
