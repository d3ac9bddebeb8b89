"""Notices about a sweep's end or stall: one agent claims each notice, as it would a job, sends it, and records that."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Protocol

from monkey.errors import CorruptObject, KeyMissing, StoreError
from monkey.protocol.claims import HeldClaim
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.heartbeat import decode_beat
from monkey.protocol.liveness.lease import compute_round
from monkey.protocol.notices.sweep_notices import (
    Notice,
    hash_way,
    is_told,
    make_end_notice,
    make_expiry_notice,
    make_silence_notice,
    name_forge_way,
)
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.project.notify_channel import NotifyChannel
from monkey_agent.notifications.undelivered_notice import UndeliveredNotice
from monkey_agent.scheduling.agent_context import AgentContext

#: Seconds between tries, at first and at most (they double), and after which a notice is given up.
FIRST, SLOWEST, GIVE_UP = 1.0, 60.0, 900.0
#: Seconds after which a sweep that asks for more than this machine has counts as stalled: waiting changes nothing.
UNFIT = 60.0


class FinishedJobs(Protocol):
    """The jobs of a sweep's newest revision, as far as a notice needs them."""

    @property
    def done(self) -> bool:
        """Return whether every job is final."""

    @property
    def finals(self) -> Mapping[str, tuple[str, int]]:
        """Return each job that ended without success, with its verdict and the position of that in its log."""


class Notifier:
    """The sender of notices to people, about the sweeps of one fleet."""

    def __init__(self, context: AgentContext) -> None:
        """Notify for the agent's fleet; agents claim each notice, so that one of them sends it."""
        self._store, self._keys, self._claims, self._heart = context.store, context.keys, context.claims, context.heart
        self._clock, self._random, self._spawn = context.clock, context.random, context.spawn
        self._observer, self._errors = context.observer, context.errors
        #: Sends one notice. Raises UndeliveredNotice.
        self.deliver: Callable[[NotifyChannel, Notice], Awaitable[None]] = partial(_deliver, context)
        #: Logs of notices that need no more work, and of those that a task of ours works on.
        self._settled: set[str] = set()
        self._at_work: set[str] = set()
        #: Sweep to its silence: since when, its log's head then, and the heartbeats seen at the end of it.
        self._quiet: dict[str, tuple[float, int, dict[str, str] | None]] = {}
        #: Sweeps whose end, or whose silence, may still need a notice.
        self._telling: set[str] = set()
        self._listening: set[str] = set()
        #: Channel to the reason why a notice could not be sent, for people.
        self.troubles: dict[str, str] = {}

    # -- what there is to tell ----------------------------------------------------------------------------------------

    def told(self, state: SweepState, candidates: FinishedJobs | None) -> bool:
        """Return whether all notices of the sweep's end are sent, or none is due; if not, start to send them."""
        notice = self._ending(state, candidates)
        done = notice is None or self._tell(state, notice)
        (self._telling.discard if done else self._telling.add)(state.name)
        return done

    def forget(self, left: Collection[str]) -> None:
        """Forget the sweeps that are not in `left`: no notice of their end is awaited."""
        self._telling.intersection_update(left)

    @property
    def waits(self) -> bool:
        """Return whether a notice may still have to be sent: the agent stays for it, as it may be the last agent."""
        return bool(self._telling or self._listening)

    def _ending(self, state: SweepState, candidates: FinishedJobs | None) -> Notice | None:
        """Return the notice of a sweep that has ended; None for one that has not, or that a person cancelled."""
        if state.revision is None or not state.revision.settings.notify:
            return None
        finals = candidates.finals if candidates is not None and candidates.done else None
        return make_end_notice(self._keys.project, state, finals)

    # -- silence ------------------------------------------------------------------------------------------------------

    async def listen(
        self, states: Collection[SweepState], unfit: Collection[str], over: Callable[[SweepState], bool], *, busy: bool
    ) -> None:
        """Send notices of sweeps whose jobs have not run anywhere for too long, and at once of those that are `over`.

        `unfit`: sweeps that ask for more than this machine has. `busy`: this agent has a job of a sweep in hand.
        Raises StoreError.
        """
        names = {state.name for state in states}
        self._quiet = {name: known for name, known in self._quiet.items() if name in names and not busy}
        self._listening.clear()
        for state in states:
            told = state.revision.settings.notify if state.revision else []
            after = min((channel.after for channel in told if "stalled" in channel.on), default=None)
            if after is None or busy:
                continue
            if over(state):
                if not self._expired(state):
                    self._listening.add(state.name)
                continue
            after = min(after, UNFIT) if state.name in unfit else after
            if not await self._silent(state, after) or not self._stalled(state, after):
                self._listening.add(state.name)

    def _expired(self, state: SweepState) -> bool:
        return self._tell(state, make_expiry_notice(self._keys.project, state))

    def _stalled(self, state: SweepState, after: float) -> bool:
        return self._tell(state, make_silence_notice(self._keys.project, state, after))

    async def _silent(self, state: SweepState, after: float) -> bool:
        """Return whether no job ran for `after` seconds: none here, and none of an agent that beat at their end."""
        now, fresh = self._clock.now(), (self._clock.now(), state.changed_at, None)
        since, head, seen = self._quiet.setdefault(state.name, fresh)
        if head != state.changed_at:
            since, head, seen = self._quiet[state.name] = fresh
        if now - since < after:
            return False
        if seen is None:
            self._quiet[state.name] = since, head, await self._beats()
            return False
        if now - since < after + compute_round(self._observer.longest_lease):
            return False
        if await self._works(seen):
            self._quiet[state.name] = fresh
            return False
        return True

    async def _beats(self) -> dict[str, str]:
        items = await self._store.list(self._keys.agents)
        return {item.key: item.version for item in items if item.key.endswith("/beat")}

    async def _works(self, seen: Mapping[str, str]) -> bool:
        """Return whether an agent whose heartbeat changed since `seen` has a running job. Raises StoreError."""
        for key, version in (await self._beats()).items():
            if seen.get(key) == version:
                continue
            try:
                agent = key.removeprefix(self._keys.agents).rpartition("/")[0]
                if decode_beat(agent, key, await self._store.get(key)).vitals.get("running"):
                    return True
            except (KeyMissing, CorruptObject):
                continue
        return False

    # -- telling it ---------------------------------------------------------------------------------------------------

    def _tell(self, state: SweepState, notice: Notice) -> bool:
        """Return whether the notice is sent to all channels, or cannot be; start to send it to the others."""
        assert state.revision is not None
        done = True
        for channel in state.revision.settings.notify:
            if notice["kind"] not in channel.on:
                continue
            base = self._keys.notice_log(state.name, notice["event"], _name_way(channel))
            if base in self._settled:
                continue
            done = False
            if base not in self._at_work:
                self._at_work.add(base)
                self._spawn(self._see_to(base, channel, notice))
        return done

    async def _see_to(self, base: str, channel: NotifyChannel, notice: Notice) -> None:
        """Send the notice to one channel, unless another agent does or did."""
        try:
            log = EntryLog(base)
            await log.refresh(self._store)
            if is_told(log) or (self._claims.free(log) and await self._claim(log, channel, notice)):
                self._settled.add(base)
        except StoreError:
            pass  # looked at again with the next look
        except Exception as exc:
            self._settled.add(base)
            self.troubles[base] = f"{base}: nobody is told: {self._errors.tell(base, exc)}"
        finally:
            self._at_work.discard(base)

    async def _claim(self, log: EntryLog, channel: NotifyChannel, notice: Notice) -> bool:
        """Claim the notice, send it and record that; return whether its end is recorded."""
        held = await self._claims.take(log, notice["sweep"])
        if held is None:
            return False
        began, who = self._clock.now(), f"{channel.kind} {channel.to}"
        for turn in itertools.count():
            try:
                outcome: ClaimEnd | None = await self._try(held, channel, notice)
                reason = ""
            except UndeliveredNotice as exc:
                self.troubles[who] = f"{who} could not be told that {notice['text']}: {exc}"
                given_up = exc.final or self._clock.now() - began > GIVE_UP
                outcome, reason = ClaimEnd.FAILED if given_up else None, str(exc)
            else:
                self.troubles.pop(who, None)
            if outcome is not None:
                return await self._claims.end(held, self._claims.ending(held, outcome, reason))
            pause = min(FIRST * 2.0**turn, SLOWEST) * self._random.uniform(0.5, 1.0)
            again = await self._hold(held, pause, notice["sweep"])
            if again is None:
                return False
            held = again
        raise AssertionError("unreachable")

    async def _try(self, held: HeldClaim, channel: NotifyChannel, notice: Notice) -> ClaimEnd:
        try:
            await self.deliver(channel, notice)
        except asyncio.CancelledError:
            self._claims.drop(held)  # the last heartbeat frees it for others
            raise
        return ClaimEnd.SUCCEEDED

    async def _hold(self, held: HeldClaim, pause: float, sweep: str) -> HeldClaim | None:
        """Wait `pause` seconds; return the claim, claimed again where it may be lost, or None where another has it."""
        try:
            await self._clock.sleep(pause)
        except asyncio.CancelledError:
            self._claims.drop(held)
            raise
        return held if self._heart.may_work(held.epoch) else await self._claims.again(held, sweep)


def _name_way(channel: NotifyChannel) -> str:
    """Return the channel's name in the keys of notices; a forge's is that of its repository, as CI's runs have it."""
    return name_forge_way(channel.forge.repository) if channel.forge else hash_way(channel.kind, channel.to)


async def _deliver(context: AgentContext, channel: NotifyChannel, notice: Notice) -> None:
    from monkey_agent.notifications.delivery import send_notice  # slow to import: it speaks HTTP

    await send_notice(context, channel, notice)
