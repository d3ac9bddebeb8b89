"""The engine: runs an inline Pulumi program for one fleet, and says in our words what became of it.

A new kind of machines needs only a program, a function that registers resources, and nothing of this.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from monkey.errors import MonkeyError
from monkey.fleet.fleet_port import Say, keep_silent
from monkey.store.store_port import Store
from monkey_stacks.engine import errors, installation, plugins, state
from monkey_stacks.engine.engine_outcome import EngineOutcome, Identify, StateResource, Watch, identify_nothing
from monkey_stacks.engine.state import StackState
from monkey_stacks.engine.state_bucket import LOCKS, StateBucket
from monkey_stacks.locking.state_lock import LockHolders, StateLock, make_lock_lost_error
from monkey_stacks.state.state_rules import StateRules

if TYPE_CHECKING:
    from monkey_stacks.engine.automation import AutomationWorkspace, Program
    from monkey_stacks.engine.engine_command import EngineDeadline
    from monkey_stacks.engine.events import EventListener
    from monkey_stacks.engine.installation import PulumiCli
    from monkey_stacks.engine.s3_endpoint import StateEndpoint
    from monkey_stacks.locking.local_lock import LockDirectory

#: Seconds that Pulumi may take to end in order when we are interrupted; then it is killed, and the next one repairs.
PARTING = 30.0


@dataclass
class PulumiEngine:
    """The machines of one fleet, as a stack of Pulumi's whose state is in `store`."""

    store: Store
    project: str
    fleet: str
    #: What its state may have.
    rules: StateRules
    #: Told of what a person waits for.
    say: Say = keep_silent
    #: Told of each step, in a thread of Pulumi's.
    watch: Watch = keep_silent
    #: How a resource is found again whose creation was cut off.
    identify: Identify = identify_nothing
    #: What plugins find in their environment besides ours. Never written anywhere; the place for paths of secrets.
    env: Mapping[str, str] = field(default_factory=dict)
    #: Settings of Pulumi's provider that the state cannot change: where the fleet is.
    pinned: Mapping[str, str] = field(default_factory=dict)
    #: Raises FleetError where a resource of the state exists, and is not the fleet's own.
    check: Callable[[Sequence[StateResource]], None] = keep_silent

    @property
    def keys(self) -> LockHolders:
        """Where its state, its lock and its beats are."""
        return LockHolders(self.project, self.fleet)

    async def resources(self) -> tuple[StateResource, ...]:
        """Return what there is, by the state: asks no provider, and starts no Pulumi.

        Raises StoreError, CorruptObject, FleetError.
        """
        found = await self.read(self._space(dry=True))
        return found.resources if found is not None else ()

    async def read(self, space: StateBucket) -> StackState | None:
        """Return the state, judged; None where there is none. Raises StoreError, CorruptObject, FleetError."""
        return await state.read_state(space, self.project, self.fleet, self.rules)

    async def preview(self, program: Program, *, refresh: bool = False) -> EngineOutcome:
        """Return what `up` would do; writes nothing, locks nothing. Raises FleetError, StoreError.

        `refresh`: ask the providers first what is really there, so that drift is among it.
        """
        found = await asyncio.to_thread(installation.find_pulumi, self.say)
        from monkey_stacks.engine.engine_command import EngineDeadline

        async with self._session(found, self._space(dry=True), EngineDeadline(), None) as session:
            return await session.preview(program, refresh=refresh)

    async def up(self, program: Program, *, refresh: bool = False) -> EngineOutcome:
        """Make what `program` registers, and take away what it does not; see `EngineSession.up`."""
        async with self.hold() as session:
            return await session.up(program, refresh=refresh)

    async def refresh(self) -> EngineOutcome:
        """See `EngineSession.refresh`."""
        async with self.hold() as session:
            return await session.refresh()

    async def destroy(self) -> EngineOutcome:
        """See `EngineSession.destroy`."""
        async with self.hold() as session:
            return await session.destroy()

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[EngineSession]:
        """Lock the machines for several operations; waits while another process changes them.

        `EngineSession.waited` says whether another process did: what was counted before must then be counted again.
        Raises FleetError, StoreError.
        """
        found = await asyncio.to_thread(installation.find_pulumi, self.say)
        from monkey_stacks.engine.engine_command import EngineDeadline

        tether = EngineDeadline()
        lock = StateLock(self.store, self.keys, tether.renew)
        waited = await lock.acquire(self.say)
        try:
            space = self._space(dry=False, allowed=lock.valid)
            if theirs := await space.list_stored(LOCKS):
                raise errors.make_foreign_lock_error(len(theirs))
            async with self._session(found, space, tether, lock.place) as session:
                session.waited, session.valid = waited, lock.valid
                await session.check_recorded()  # first: what a forged state leaves out would go as an orphan
                yield session
        finally:
            await lock.release()

    def _space(self, *, dry: bool, allowed: Callable[[], bool] = lambda: True) -> StateBucket:
        return StateBucket(self.store, self.keys.state, dry=dry, allowed=allowed)

    @asynccontextmanager
    async def _session(
        self, found: PulumiCli, space: StateBucket, tether: EngineDeadline, place: LockDirectory | None
    ) -> AsyncIterator[EngineSession]:
        from monkey_stacks.engine.automation import AutomationWorkspace, make_environment
        from monkey_stacks.engine.s3_endpoint import StateEndpoint

        mark, keep = (place.mark, place.descriptors) if place is not None else ({}, ())
        runs = AutomationWorkspace(found, make_environment(self.env, mark), tether, keep)
        try:
            with StateEndpoint(space, asyncio.get_running_loop()).running() as bridge:
                yield EngineSession(self, space, bridge, runs, tether)
        finally:
            runs.close()


@dataclass
class EngineSession:
    """Some operations on one fleet, one after another; those that change something need `PulumiEngine.hold`."""

    engine: PulumiEngine
    space: StateBucket
    bridge: StateEndpoint
    runs: AutomationWorkspace
    tether: EngineDeadline
    #: Somebody else changed the machines while we waited for the lock.
    waited: bool = False
    valid: Callable[[], bool] = lambda: True

    async def check_recorded(self) -> None:
        """Raise FleetError or CorruptObject where the state has anything that is not the fleet's own."""
        found = await self.engine.read(self.space)
        if found is not None:
            await asyncio.to_thread(self.engine.check, found.entries)

    async def preview(self, program: Program, *, refresh: bool = False) -> EngineOutcome:
        """Return what `up` would do, now; what was cut off is counted as it will be repaired."""
        warnings, _ = await self._open()
        listener = self._listener(keep_silent)
        guarded = _Guarded(program)
        await self._run(lambda: self.runs.preview(guarded, listener, refresh), listener, guarded)
        return _with(listener.outcome(), warnings)

    async def up(self, program: Program, *, refresh: bool = False) -> EngineOutcome:
        """Make what `program` registers, and take away what it does not; `refresh`: ask first what is really there.

        A resource that fails is one of the outcome's failures, and does not keep the others. Raises FleetError where
        the whole fails, what `program` raises, and StoreError.
        """
        warnings, leftovers = await self._open()
        before = await self._destroy(leftovers) if leftovers else EngineOutcome()
        listener, guarded = self._listener(self.engine.watch), _Guarded(program)
        await self._run(lambda: self.runs.up(guarded, listener, refresh), listener, guarded)
        await self.space.prune()
        return _with(listener.outcome(), warnings, before)

    async def refresh(self) -> EngineOutcome:
        """Ask the providers what is there, and write it down: what is gone is made again by the next `up`."""
        warnings, _ = await self._open()
        from monkey_stacks.engine.events import EventListener

        listener = EventListener(self.engine.watch, drift=True)
        await self._run(lambda: self.runs.refresh(listener), listener)
        await self.space.prune()
        return _with(listener.outcome(), warnings)

    async def destroy(self) -> EngineOutcome:
        """Take everything away, and the state with it, unless something would not go."""
        if await self.engine.read(self.space) is None:
            return EngineOutcome()
        warnings, _ = await self._open()
        done = await self._destroy(())
        if not done.failures and not await self.engine.resources():
            await self.space.clear()
        return _with(done, warnings)

    async def _destroy(self, only: tuple[str, ...]) -> EngineOutcome:
        listener = self._listener(self.engine.watch)
        await self._run(lambda: self.runs.destroy(listener, only), listener)
        return listener.outcome()

    def _listener(self, watch: Watch) -> EventListener:
        from monkey_stacks.engine.events import EventListener

        return EventListener(watch)

    async def _open(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Take the stack, judged and repaired; returns warnings, and what is to be deleted first."""
        project, fleet = self.engine.project, self.engine.fleet
        found = await self.engine.read(self.space)
        warnings, leftovers = await self._mend(found) if found is not None else ((), ())
        await self._run(lambda: self.runs.open(project, fleet, self.bridge.url, new=found is None))
        return warnings, leftovers

    def _settle(self, package: str, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of Pulumi's provider: the state says neither where it works nor which program it is."""
        kept = {name: value for name, value in found.items() if name != "version"}
        return {**kept, **self.engine.pinned, **plugins.select_version(package, found.get("version"))}

    async def _mend(self, found: StackState) -> tuple[tuple[str, ...], tuple[str, ...]]:
        mended = found.mend(self.engine.identify)
        if mended.changed:
            await self.space.put(found.key, found.encode())
        await asyncio.to_thread(self.engine.check, found.entries)
        found.give_own(self.engine.rules.pickle(), self._settle)
        self.space.show(found.key, found.encode())
        warnings = [
            f"making {name} was cut off, and what is there of it cannot be found by us: look whether it is there"
            for name in mended.forgotten
        ]
        return tuple(warnings), tuple(mended.leftovers)

    async def _run(
        self, call: Callable[[], None], listener: EventListener | None = None, guarded: _Guarded | None = None
    ) -> None:
        """Run it in a thread; one that is cancelled lets Pulumi end in order. Raises FleetError, StoreError."""
        from pulumi.automation import CommandError, InvalidVersionError

        self.bridge.trouble = None
        try:
            await self._wait(asyncio.ensure_future(asyncio.to_thread(call)))
        except (CommandError, InvalidVersionError, RuntimeError, OSError) as exc:
            if guarded is not None and guarded.raised is not None:
                raise guarded.raised from None
            if not self.valid():
                raise make_lock_lost_error() from exc
            if listener is not None and listener.partial and self.bridge.trouble is None:
                return
            raise self._translated(exc, listener) from exc

    def _translated(self, exc: Exception, listener: EventListener | None) -> MonkeyError:
        said = listener.errors if listener is not None else ()
        key = self.space.prefix + state.spell_state_key(self.engine.project, self.engine.fleet)
        return errors.translate_engine_error(exc, tuple(said), self.bridge.trouble, key)

    async def _wait(self, task: asyncio.Future[None]) -> None:
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            self.tether.interrupt()
            done, _ = await asyncio.wait({task}, timeout=PARTING)
            if not done:
                self.tether.cut()
                await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # it was interrupted: that it failed is no news
            raise


class _Guarded:
    """A program that remembers what it raised: by way of Pulumi nothing but text would come back."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.raised: BaseException | None = None

    def __call__(self) -> None:
        try:
            self._program()
        except BaseException as exc:
            self.raised = exc
            raise


def _with(outcome: EngineOutcome, warnings: tuple[str, ...], before: EngineOutcome | None = None) -> EngineOutcome:
    if before is None:
        before = EngineOutcome()
    return replace(
        outcome,
        changes=(*before.changes, *outcome.changes),
        failures=(*before.failures, *outcome.failures),
        warnings=(*warnings, *before.warnings, *outcome.warnings),
    )
