"""An agent's view of the others: whose heartbeat moved, whose claims may be taken over, what has ended elsewhere.

An agent reads what it needs, and a share of the rest: there may be hundreds of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from monkey.concurrency import run_in_lanes
from monkey.errors import CorruptObject, KeyMissing, StoreError
from monkey.protocol.clock import Clock
from monkey.protocol.entries import Claim, TornEntry
from monkey.protocol.heartbeat import decode_beat
from monkey.protocol.journal_index import JournalIndex
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.lease import compute_gap
from monkey.protocol.liveness.roster import SharedListing, shorten_version
from monkey.protocol.wakeup import MANY, SELDOM
from monkey.spec.job.lease_length import LEASE
from monkey.store.store_port import ListedObject, Store

#: Heartbeats that moved and are read again at one look, beside those that are wanted. Each agent reading all would be
#: N² requests, and gain little: whatever has ended elsewhere is learned, too, when its job is met.
READS = 16
#: Of so many that moved, where they are more than that: a large fleet would pay for its reading alone.
_SHARE_READ = 4
#: Objects from which on many are read at once.
_MANY_READ = 8
#: Of heartbeats that moved and are not wanted, in a fleet that shares a roster.
_CROWD_READS = 1


class HeartbeatObserver(JournalIndex):
    """An index with a clock: knows since when each owner's heartbeat has not moved, as seen from here."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        clock: Clock,
        me: str,
        predecessors: frozenset[str] = frozenset(),
        lease: float = LEASE,
    ) -> None:
        """Observe for the agent `me` ("fleet/name/boot"), whose own lease is of `lease` seconds.

        `predecessors`: earlier lives of it on this machine, of which nothing runs any more.
        """
        super().__init__(store, keys)
        self._clock, self.me, self._predecessors, self.lease = clock, me, predecessors, lease
        self.lean = True
        self.reads = READS
        #: Whose claims were met since the last look, with their leases: they are read as often as they move.
        self._wanted: dict[str, float] = {}
        #: Of heartbeats that moved and are not wanted: agent to the version, and since when it is there.
        self._moved: dict[str, tuple[str, float]] = {}
        #: Agent to the look at which it was its turn to be read last.
        self._turns: dict[str, float] = {}
        #: Agent to the number of its newest heartbeat, and since when that is known: from here, or from a roster.
        self._seen: dict[str, tuple[int | None, float]] = {}
        #: Number of other agents whose heartbeat moved lately, and that above which they share a roster.
        self.living, self.crowd = 0, MANY
        self._roster = SharedListing(store, keys, clock, me, compute_gap(lease))
        #: What the last listing says, and what a roster says of heartbeats: agent to the number of one, and since when.
        self._listed: list[ListedObject] = []
        self._heard: dict[str, tuple[int, float]] = {}
        #: The number of this agent's own newest heartbeat, and when it started; a roster has it beside the others'.
        self.own_beat: Callable[[], tuple[int, float]] | None = None
        #: Is it this agent's turn to make the roster?
        self.leads = False
        self._looked = float("-inf")
        self._started = float("-inf")

    @property
    def crowded(self) -> bool:
        """Do so many agents live that they share a roster, where a listing costs money?"""
        return self.living > self.crowd and self._store.poll >= SELDOM

    @property
    def due(self) -> float:
        """Return when the next agent may have been silent for its lease, by this machine's clock; inf for none.

        Those that the last look found silent are left out.
        """
        moments = (
            since + self._wanted.get(agent, self._find_lease(agent))
            for agent, (_, since) in self._seen.items()
            if agent != self.me
        )
        return min((moment for moment in moments if moment >= self._started), default=float("inf"))

    @property
    def longest_lease(self) -> float:
        """Return the longest lease of this agent and of those whose heartbeats are known, in seconds."""
        return max([self.lease, *(beat.lease for beat in self.beats.values())])

    async def look(self) -> None:
        """Refresh, and note whose heartbeat moved. After a gap all observations start again. Raises StoreError."""
        started = self._clock.now()
        await self.refresh()
        away = started - self._looked
        if away > compute_gap(LEASE):
            self._seen = {of: seen for of, seen in self._seen.items() if away <= compute_gap(self._find_lease(of))}
        self._started, self._looked = started, self._clock.now()
        for agent, beat in self.beats.items():
            self._note(agent, beat.seq)
        for agent, (seq, since) in self._heard.items():
            self._hear(agent, seq, since)
        self.living = len(self._list_living())
        if self.leads:
            with suppress(StoreError):
                await self._roster.share(self._listed, self._tell_silence(), started)

    def _list_living(self) -> list[str]:
        return [one for one, (_, since) in self._seen.items() if self._looked - since <= self._find_lease(one)]

    def find_silent(self) -> set[str]:
        """Return the other agents that the last look found silent for longer than their lease, by their heartbeats."""
        silent = {one for one, (_, since) in self._seen.items() if self._started - since > self._find_lease(one)}
        return silent - {self.me}

    def _find_lease(self, agent: str) -> float:
        """Return an agent's lease by the newest of its heartbeats that is known."""
        return self.beats[agent].lease if agent in self.beats else LEASE

    def _tell_silence(self) -> dict[str, tuple[int, float]]:
        """Return what a roster says of heartbeats: the newest one known, and the seconds since then, rounded down."""
        known = {agent: (seq, since) for agent, (seq, since) in self._seen.items() if seq is not None}
        known |= {self.me: self.own_beat()} if self.own_beat else {}
        return {agent: (seq, int(max(0.0, self._started - since) * 10) / 10) for agent, (seq, since) in known.items()}

    async def refresh(self) -> None:
        """See `JournalIndex.refresh`; many objects are read at once."""
        chosen = self._choose(await self._list())
        if self.leads or len(chosen) > _MANY_READ:
            await run_in_lanes(chosen, self._read, READS)
            return
        for item in chosen:
            await self._read(item)

    async def _list(self) -> list[ListedObject]:
        """List all heartbeats and segments, or take another agent's listing of them, in a crowd."""
        self._heard, self.leads = {}, False
        if self.crowded:
            roster = await self._roster.read()
            if roster is not None:
                now = self._clock.now()  # not before it was read: what it tells may be as young as that
                self._heard = {agent: (seq, now - ago) for agent, (seq, ago) in roster.silence.items()}
                return roster.list_objects(self._keys.agents)
            self.leads = self._roster.is_turn(self._list_living())
        listed = await super()._list()
        self._listed = [item._replace(version=shorten_version(item.version)) for item in listed]
        return self._listed

    def _choose(self, items: Iterable[ListedObject]) -> list[ListedObject]:
        """Return what is new, and of the heartbeats that moved those that are wanted and a few others."""
        chosen, wanted, others = [], {}, {}
        for item in super()._choose(items):
            agent, name = self._whose(item)
            if agent == self.me:
                continue  # it knows its own journal
            if name != "beat" or item.key not in self._versions or self.leads:
                chosen.append(item)
            elif not self._is_wanted(agent):
                others[agent] = item
            elif self.crowded:
                wanted[agent] = item
            else:
                chosen.append(item)
        self._wanted = {}
        return chosen + self._a_few(wanted, others)

    def _is_wanted(self, agent: str) -> bool:
        """Was its claim met since the last look, or does the roster say that it was silent for its lease?"""
        _, since = self._heard.get(agent, (0, float("inf")))
        return agent in self._wanted or self._clock.now() - since > self._find_lease(agent)

    def _a_few(self, wanted: dict[str, ListedObject], others: dict[str, ListedObject]) -> list[ListedObject]:
        """Return those that have stood still for longest since they moved: each may be a last one. Else all in turn."""
        now, before, self._moved = self._clock.now(), self._moved, {}
        for agent, item in (wanted | others).items():
            version, since = before.get(agent, ("", now))
            if version != item.version:
                since = now
                self._seen.pop(agent, None)  # it lives, whatever is in its heartbeat
            self._moved[agent] = item.version, since
        most = self.reads if len(others) <= self.reads else self.reads // _SHARE_READ or self.reads
        if self.crowded:
            most = min(most, _CROWD_READS)
        order = self._line_up(wanted)[:READS] + self._line_up(others)[:most]
        self._turns.update(dict.fromkeys(order, now))
        return [(wanted | others)[agent] for agent in order]

    def _line_up(self, moved: Iterable[str]) -> list[str]:
        return sorted(moved, key=lambda agent: (self._moved[agent][1], self._turns.get(agent, 0.0)))

    def _note(self, agent: str, seq: int | None) -> None:
        known = self._seen.get(agent, (None, 0.0))[0]
        if agent not in self._seen or (seq is not None and (known is None or seq > known)):
            self._seen[agent] = (seq, self._clock.now())

    def _hear(self, agent: str, seq: int, since: float) -> None:
        """Take in that a roster's author read a heartbeat `seq` of the agent at `since`, on this machine's clock."""
        known, noted = self._seen.get(agent, (None, 0.0))
        if known is None or seq > known:
            self._seen[agent] = seq, since
        elif seq == known:
            self._seen[agent] = seq, min(since, noted)

    def predecessor(self, agent: str) -> bool:
        """Is it an earlier life of this agent? We hold the machine's lock and have ended what it left."""
        return agent in self._predecessors

    def judge_lease(self, claim: Claim | TornEntry) -> float:
        """Return the lease of a claim's owner, in seconds: the longer of what its claim and its heartbeat tell."""
        return LEASE if isinstance(claim, TornEntry) else max(claim.lease, self._find_lease(claim.agent))

    def gone(self, claim: Claim | TornEntry) -> bool:
        """Is its owner gone, as far as this look tells: an earlier life of this agent, or silent for a whole lease?"""
        owner = claim.agent
        if self.predecessor(owner):
            return True
        self._wanted[owner] = lease = self.judge_lease(claim)
        beat = self.beats.get(owner)
        self._note(owner, beat.seq if beat else None)
        return self._started - self._seen[owner][1] > lease

    def silent_since(self, agent: str) -> float:
        """Return since when the owner of a claim is silent, on this machine's clock; `gone` was asked of it before."""
        return self._seen[agent][1]

    def lost(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        """May this claim be taken over, as far as this look tells? `base`, `k`: as heartbeats list it."""
        if self.gone(claim):
            return True
        beat = self.beats.get(claim.agent)
        return isinstance(claim, Claim) and beat is not None and beat.seq > claim.seq and (base, k) not in beat.held

    async def confirm(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        """Ask again for the owner's newest heartbeat, in case the listing or this machine's cache lagged behind."""
        if self.predecessor(claim.agent) or isinstance(claim, TornEntry):
            return True
        known, key = self.beats.get(claim.agent), self._keys.beat(claim.agent)
        try:
            found = decode_beat(claim.agent, key, await self._store.get_newest(key))
        except (KeyMissing, CorruptObject):
            return True
        newest = max(known.seq if known else 0, self._seen.get(claim.agent, (0, 0.0))[0] or 0)
        if found.seq < newest:
            # An older beat, written late, lies over whatever came after the one we saw: no sign of death at all.
            self._seen[claim.agent] = (newest, self._clock.now())
            return False
        self._take(found)
        self._note(claim.agent, found.seq)
        return self.lost(claim, base, k)
