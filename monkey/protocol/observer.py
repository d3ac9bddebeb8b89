"""Reading heartbeats and journals: who lives, what has ended. One LIST, and GET only of what changed.

People read all of that; agents, of whom there may be hundreds, what they need and a share of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress, repeat
from typing import Any

from monkey.errors import CorruptObject, KeyMissing, StoreError, StoreRefused
from monkey.protocol.clock import Clock
from monkey.protocol.entries import Claim, TornEntry
from monkey.protocol.entry_log import LogTally
from monkey.protocol.heartbeat import GAP, TAKE, Heartbeat, decode_beat
from monkey.protocol.journal import LOST, SAVED, JournalBlock, JournalRecord
from monkey.protocol.layout import Keys, parse_number
from monkey.spec.job.stop_when import StopEvidence
from monkey.store.store_port import ListedObject, Store


class JournalIndex:
    """What all agents say of themselves and of what has ended. Incremental: refresh() again and again."""

    def __init__(self, store: Store, keys: Keys) -> None:
        """Know nothing yet."""
        self._store, self._keys = store, keys
        self._versions: dict[str, str] = {}
        self.beats: dict[str, Heartbeat] = {}
        #: Job to its newest record, as (block, row): records are made only when asked for.
        self._newest: dict[str, tuple[JournalBlock, int]] = {}
        self._tallies: dict[str, LogTally] = {}
        #: What each agent has not sealed yet, grown beat by beat.
        self._open: dict[str, JournalBlock] = {}
        #: Keep only what decides, not what is for people (metrics, last lines): an agent may live long.
        self.lean = False
        self._own = JournalBlock()
        #: Jobs that have succeeded.
        self.succeeded: set[str] = set()
        #: Objects that could not be read: key to why. Reported, and read again when they change.
        self.corrupt: dict[str, str] = {}

    async def refresh(self) -> None:
        """Read what changed since the last time."""
        for item in self._choose(await self._store.list(self._keys.agents)):
            await self._read(item)

    def _choose(self, items: Iterable[ListedObject]) -> list[ListedObject]:
        """Return what to read of what is there."""
        return [item for item in items if self._versions.get(item.key) != item.version]

    def record(self, job: str) -> JournalRecord | None:
        """Return the newest record of the job."""
        found = self._newest.get(job)
        return found[0].row(found[1]) if found else None

    def find_agent(self, job: str) -> str:
        """Return the agent of the attempt that the newest record of the job is of; "" where that is not known."""
        block, row = self._newest.get(job, (None, 0))
        return (block.extra.get(row, {}).get("agent") or block.agent) if block else ""

    def tally(self, job: str) -> LogTally | None:
        """Return what the journals say the job's log amounts to; None where they say nothing."""
        if job in self.succeeded:
            done = LogTally()
            done.succeeded = True
            return done
        return self._tallies.get(job)

    def note(self, record: JournalRecord) -> None:
        """Take in one record of our own."""
        self._own.add(record._replace(extra=_deciding(record.extra)) if self.lean else record)
        self.add(self._own, len(self._own) - 1)

    def add(self, block: JournalBlock, start: int = 0) -> None:
        """Take a block's records in, from row `start` on."""
        jobs, outcomes = block.jobs[start:], block.outcomes[start:]
        rows = zip(repeat(block), range(start, start + len(jobs)))
        if self._newest.keys().isdisjoint(jobs) and len(set(jobs)) == len(jobs):
            self._newest.update(zip(jobs, rows, strict=True))
        else:
            self._add_one_by_one(zip(jobs, rows, strict=True))
        self.succeeded.update(compress(jobs, map("s".__eq__, outcomes)))
        for row, outcome in enumerate(outcomes, start):
            if outcome != "s":
                self._count(block, row, outcome)

    def _add_one_by_one(self, rows: Iterable[tuple[str, tuple[JournalBlock, int]]]) -> None:
        """Keep of each job the record that is newest in its log, whatever the order of reading."""
        newest = self._newest
        for job, (block, row) in rows:
            known = newest.get(job)
            if known is None or known[0].ks[known[1]] <= block.ks[row]:
                newest[job] = (block, row)

    def _count(self, block: JournalBlock, row: int, outcome: str) -> None:
        k, met = block.ks[row], block.extra.get(row, {}).get("met")
        tally = self._tallies.setdefault(block.jobs[row], LogTally())
        if met:
            tally.stopped[k] = StopEvidence.from_json(met)
        positions = {"f": tally.failed_at, LOST: tally.lost_at, SAVED: tally.saved_at}.get(outcome)
        if positions is not None and k not in positions:
            positions.append(k)

    def _whose(self, item: ListedObject) -> tuple[str, str]:
        """Return which agent wrote it, and its name there."""
        agent, _, name = item.key.removeprefix(self._keys.agents).rpartition("/")
        return agent, name

    async def _read(self, item: ListedObject) -> None:
        agent, name = self._whose(item)
        try:
            data = await self._store.get(item.key)
            if name == "beat":
                self._take(decode_beat(agent, item.key, data))
            elif parse_number(name):
                block = JournalBlock.decode(item.key, data)
                block.agent = agent
                if self.lean:
                    _thin(block.extra)
                self.add(block)
            self.corrupt.pop(item.key, None)
        except KeyMissing:
            return
        except (CorruptObject, StoreRefused) as exc:
            # One object that may not be read keeps nobody from reading the others: the listing was answered.
            self.corrupt[item.key] = f"{item.key}: {exc.message.removeprefix(f'{item.key}: ')}"
        except StoreError:
            raise
        except Exception as exc:  # pragma: no cover - none is known; it is wrong with this object alone
            self.corrupt[item.key] = f"{item.key}: it cannot be read ({exc!r:.200})"
        self._versions[item.key] = item.version

    def _take(self, beat: Heartbeat) -> None:
        before = self.beats.get(beat.agent)
        if before is not None and beat.seq < before.seq:
            return  # a late write of an older beat: what was read later is newer
        self.beats[beat.agent] = beat
        block = self._open.get(beat.agent)
        if before is None or block is None or before.sealed != beat.sealed:
            block = self._open[beat.agent] = JournalBlock()
            block.agent = beat.agent
        start = len(block)
        if self.lean:
            _thin(beat.block.extra)
            beat.ship.clear()
        block.extend(beat.block, start)
        self.add(block, start)


def _thin(extra: dict[int, dict[str, Any]]) -> None:
    """Drop what is only for people."""
    kept = {row: met for row, of in extra.items() if (met := _deciding(of))}
    extra.clear()
    extra.update(kept)


def _deciding(extra: dict[str, Any]) -> dict[str, Any]:
    return {"met": extra["met"]} if "met" in extra else {}


#: Heartbeats that moved and are read again at one look, beside those that are wanted. Each agent reading all would be
#: N² requests, and gain little: whatever has ended elsewhere is learned, too, when its job is met.
READS = 16


class HeartbeatObserver(JournalIndex):
    """An index with a clock: knows since when each owner's heartbeat has not moved, as seen from here."""

    def __init__(
        self, store: Store, keys: Keys, clock: Clock, me: str, predecessors: frozenset[str] = frozenset()
    ) -> None:
        """Observe for the agent `me` ("fleet/name/boot").

        `predecessors`: earlier lives of it on this machine, of which nothing runs any more.
        """
        super().__init__(store, keys)
        self._clock, self.me, self._predecessors = clock, me, predecessors
        self.lean = True
        self.reads = READS
        #: Whose claims were met since the last look: their heartbeats are read as often as they move.
        self._wanted: set[str] = set()
        #: Of heartbeats that moved and are not wanted: agent to the version, and since when it is there.
        self._moved: dict[str, tuple[str, float]] = {}
        #: Agent to the look at which it was its turn to be read last.
        self._turns: dict[str, float] = {}
        self._seen: dict[str, tuple[int | None, float]] = {}
        self._looked = float("-inf")
        self._started = float("-inf")

    async def look(self) -> None:
        """Refresh, and note whose heartbeat moved. After a gap all observations start again."""
        started = self._clock.now()
        await self.refresh()
        if started - self._looked > GAP:
            self._seen.clear()
        self._started, self._looked = started, self._clock.now()
        for agent, beat in self.beats.items():
            self._note(agent, beat.seq)

    def _choose(self, items: Iterable[ListedObject]) -> list[ListedObject]:
        """Return what is new, and of the heartbeats that moved those that are wanted and a few others."""
        chosen, others = [], {}
        for item in super()._choose(items):
            agent, name = self._whose(item)
            if agent == self.me:
                continue  # it knows its own journal
            if name == "beat" and item.key in self._versions and agent not in self._wanted:
                others[agent] = item
            else:
                chosen.append(item)
        self._wanted = set()
        return chosen + self._a_few(others)

    def _a_few(self, moved: dict[str, ListedObject]) -> list[ListedObject]:
        """Return those that have stood still for longest since they moved: each may be a last one. Else all in turn."""
        now, before, self._moved = self._clock.now(), self._moved, {}
        for agent, item in moved.items():
            version, since = before.get(agent, ("", now))
            if version != item.version:
                since = now
                self._seen.pop(agent, None)  # it lives, whatever is in its heartbeat
            self._moved[agent] = item.version, since
        order = sorted(moved, key=lambda agent: (self._moved[agent][1], self._turns.get(agent, 0.0)))[: self.reads]
        self._turns.update(dict.fromkeys(order, now))
        return [moved[agent] for agent in order]

    def _note(self, agent: str, seq: int | None) -> None:
        known = self._seen.get(agent)
        if known is None or known[0] != seq:
            self._seen[agent] = (seq, self._clock.now())

    def predecessor(self, agent: str) -> bool:
        """Is it an earlier life of this agent? We hold the machine's lock and have ended what it left."""
        return agent in self._predecessors

    def lost(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        """May this claim be taken over, as far as this look tells? `base`, `k`: as heartbeats list it."""
        owner = claim.agent
        if self.predecessor(owner):
            return True
        self._wanted.add(owner)
        beat = self.beats.get(owner)
        self._note(owner, beat.seq if beat else None)
        if self._started - self._seen[owner][1] > TAKE:
            return True
        return isinstance(claim, Claim) and beat is not None and beat.seq > claim.seq and (base, k) not in beat.held

    async def confirm(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        """Ask again for the owner's heartbeat itself, in case the listing lagged behind."""
        if self.predecessor(claim.agent) or isinstance(claim, TornEntry):
            return True
        known, key = self.beats.get(claim.agent), self._keys.beat(claim.agent)
        try:
            found = decode_beat(claim.agent, key, await self._store.get(key))
        except (KeyMissing, CorruptObject):
            return True
        if known and found.seq < known.seq:
            # An older beat, written late, lies over whatever came after the one we saw: no sign of death at all.
            self._seen[claim.agent] = (known.seq, self._clock.now())
            return False
        self._take(found)
        self._note(claim.agent, found.seq)
        return self.lost(claim, base, k)
