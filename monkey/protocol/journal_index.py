"""The index of what has ended, by all agents' heartbeats and journals. One LIST, and GET only of what changed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress, repeat
from typing import Any

from monkey.errors import CorruptObject, KeyMissing, StoreError, StoreRefused
from monkey.protocol.entry_log import LogTally
from monkey.protocol.heartbeat import Heartbeat, decode_beat
from monkey.protocol.journal import LOST, RELEASED, SAVED, JournalBlock, JournalRecord
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
        #: Job to what its log amounts to, without successes: those are in `succeeded`.
        self.tallies: dict[str, LogTally] = {}
        #: What each agent has not sealed yet, grown beat by beat.
        self._open: dict[str, JournalBlock] = {}
        #: Keep only what decides, not what is for people (metrics, last lines): an agent may live long.
        self.lean = False
        self._own = JournalBlock()
        #: Jobs that have succeeded.
        self.succeeded: set[str] = set()
        #: Jobs of which a record, maybe not the newest, names values of metrics that are no finite numbers.
        self.nonfinite: set[str] = set()
        #: Objects that could not be read: key to why. Reported, and read again when they change.
        self.corrupt: dict[str, str] = {}

    async def refresh(self) -> None:
        """Read what changed since the last time."""
        for item in self._choose(await self._list()):
            await self._read(item)

    async def _list(self) -> list[ListedObject]:
        """List all heartbeats and segments."""
        return await self._store.list(self._keys.agents)

    def _choose(self, items: Iterable[ListedObject]) -> list[ListedObject]:
        """Return what to read of what is there."""
        return [item for item in items if self._versions.get(item.key) != item.version]

    def record(self, job: str) -> JournalRecord | None:
        """Return the newest record of the job."""
        found = self._newest.get(job)
        return found[0].row(found[1]) if found else None

    def list_agents(self, jobs: Iterable[str]) -> list[str]:
        """Return the agent of the attempt that the newest record of each job is of; "" where that is not known."""
        unknown = JournalBlock(), 0
        found = [self._newest.get(job, unknown) for job in jobs]
        return [block.extra.get(row, {}).get("agent") or block.agent for block, row in found]

    def tally(self, job: str) -> LogTally | None:
        """Return what the journals say the job's log amounts to; None where they say nothing."""
        if job in self.succeeded:
            done = LogTally()
            done.succeeded = True
            return done
        return self.tallies.get(job)

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
        self.nonfinite.update(
            block.jobs[row]
            for row, extra in block.extra.items()
            for summary in extra.get("metrics", {}).values()
            if summary.get("nonfinite")
        )
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
        tally = self.tallies.setdefault(block.jobs[row], LogTally())
        if met:
            tally.stopped[k] = StopEvidence.from_json(met)
        if outcome == RELEASED and "checkpoint" in block.extra.get(row, {}):
            tally.cut_at[k] = block.extra[row]["checkpoint"]
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
    return {name: extra[name] for name in ("met", "checkpoint") if name in extra}
