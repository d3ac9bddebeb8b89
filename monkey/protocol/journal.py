"""Journals: what each agent says has ended. An index to the jobs' logs, never the truth itself.

Records travel as columns, so that a hundred thousand of them are read in a fraction of a second.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from monkey.errors import CorruptObject
from monkey.protocol import entries, entry_shape
from monkey.protocol.entries import ClaimEnd, EndEntry

#: Records after which a segment is sealed; with 5,000, status of 100,000 jobs reads some tens of objects.
SEAL_RECORDS = 5_000
#: Bytes of extras (metrics, reasons, log lines) after which it is sealed earlier, so that heartbeats stay small.
SEAL_BYTES = 256 * 1024

#: Digits of the hash of facts that a record has: there are as many records as jobs, and hashes do not compress.
FACTS_DIGITS = 16

#: One letter an outcome; "lost" is a claim that its agent's end left without an end.
CODES = {ClaimEnd.SUCCEEDED: "s", ClaimEnd.FAILED: "f", ClaimEnd.RELEASED: "r", ClaimEnd.STOPPED: "t"}
LOST = "l"
#: The same, of an attempt that had saved a checkpoint of its own.
SAVED = "p"
#: The letter of what was given back.
RELEASED = CODES[ClaimEnd.RELEASED]


class JournalRecord(NamedTuple):
    """Something that ended."""

    job: str
    #: Position of the end (or, for a loss, of the claim that was lost) in the job's log.
    k: int
    #: "s", "f", "r", "t", "l" or "p".
    outcome: str
    sweep: str
    #: Seconds that it ran, and when it ended (the agent's wall clock, since the epoch).
    seconds: float
    at: float
    #: Whatever else is not empty: exit_code, reason, metrics, outputs, outputs_at, log_tail, met, usage, before, out;
    #: the first digits of facts; checkpoint, of an end that `EndEntry.is_cut`; agent, where that is not the journal's.
    extra: dict[str, Any]
    #: Whose journal it is in; "" where it is in none yet.
    writer: str = ""


def make_record(job: str, k: int, end: EndEntry, writer: str | None = None) -> JournalRecord:
    """Make the record of an end entry; `writer`: the agent in whose journal it is to be, if not the end's own."""
    extra: dict[str, Any] = {} if writer in (None, end.agent) else {"agent": end.agent}
    if end.exit_code:
        extra["exit_code"] = end.exit_code
    for name in ("reason", "metrics", "outputs", "outputs_at", "log_tail", "met", "usage", "before"):
        if value := getattr(end, name):
            extra[name] = value
    if end.number > 1:
        extra["number"] = end.number
    if end.facts:
        extra["facts"] = end.facts[:FACTS_DIGITS]
    if end.is_cut:
        extra["checkpoint"] = end.checkpoint
    if end.out != k - 1:
        extra["out"] = end.out
    return JournalRecord(job, k, CODES[end.outcome], end.sweep, round(end.seconds, 3), round(end.at, 3), extra)


#: What each field of a stored block is.
_SHAPE = {
    "jobs": entry_shape.is_text,
    "ks": entry_shape.is_wholes,
    "outcomes": entry_shape.is_text,
    "names": entry_shape.is_texts,
    "sweeps": entry_shape.is_wholes,
    "seconds": entry_shape.is_moments,
    "at": entry_shape.is_moments,
    "extra": entry_shape.is_object_map,
}

#: The columns of a block.
COLUMNS = ("jobs", "ks", "outcomes", "sweeps", "seconds", "at")


@dataclass
class JournalBlock:
    """Records as columns: what a segment holds, and what rides in a heartbeat."""

    jobs: list[str] = field(default_factory=list)
    ks: list[int] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    sweeps: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    #: Row to what else is known of it.
    extra: dict[int, dict[str, Any]] = field(default_factory=dict)
    # Not stored: whose journal it is, which the block's key says. "" where it has records of several agents.
    agent = ""

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, record: JournalRecord) -> None:
        """Append one record."""
        if record.extra:
            self.extra[len(self.jobs)] = record.extra
        self.jobs.append(record.job)
        self.ks.append(record.k)
        self.outcomes.append(record.outcome)
        self.sweeps.append(record.sweep)
        self.seconds.append(record.seconds)
        self.at.append(record.at)

    def extend(self, other: JournalBlock, start: int) -> None:
        """Append the records of another block from row `start` on."""
        shift = len(self.jobs) - start
        self.extra.update({row + shift: extra for row, extra in other.extra.items() if row >= start})
        for name in COLUMNS:
            getattr(self, name).extend(getattr(other, name)[start:])

    def row(self, i: int) -> JournalRecord:
        """Return the i-th record."""
        return JournalRecord(
            self.jobs[i],
            self.ks[i],
            self.outcomes[i],
            self.sweeps[i],
            self.seconds[i],
            self.at[i],
            self.extra.get(i, {}),
            self.agent,
        )

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads; sweeps are numbered, since there are few."""
        names = list(dict.fromkeys(self.sweeps))
        place = {name: i for i, name in enumerate(names)}
        return {
            "jobs": "".join(self.jobs),
            "ks": self.ks,
            "outcomes": "".join(self.outcomes),
            "names": names,
            "sweeps": [place[name] for name in self.sweeps],
            "seconds": self.seconds,
            "at": self.at,
            "extra": self.extra,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> JournalBlock:
        """Read what `to_json` wrote. Raises ValueError, KeyError or IndexError for anything else."""
        entry_shape.check_shape(data, _SHAPE)
        jobs, names = data["jobs"], data["names"]
        block = cls(
            jobs=[jobs[at : at + 16] for at in range(0, len(jobs), 16)],
            ks=data["ks"],
            outcomes=list(data["outcomes"]),
            sweeps=[names[i] for i in data["sweeps"]],
            seconds=data["seconds"],
            at=data["at"],
            extra={int(row): extra for row, extra in data["extra"].items()},
        )
        if any(len(getattr(block, name)) != len(block) for name in COLUMNS):
            raise entry_shape.MalformedEntry("its columns differ in length")
        for extra in block.extra.values():
            entry_shape.check_shape(extra, entries._SHAPE)
        return block

    def encode(self) -> bytes:
        """Return the bytes of a segment."""
        return json.dumps(self.to_json(), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, key: str, data: bytes) -> JournalBlock:
        """Read a segment; raises CorruptObject."""
        try:
            return cls.from_json(entry_shape.parse_object(data))
        except (ValueError, KeyError, TypeError, IndexError) as exc:
            raise CorruptObject(key, f"not a segment of a journal ({exc!r})") from exc


class Journal:
    """What this agent has written of its journal: sealed segments, and the rest, which rides in the heartbeat."""

    def __init__(self) -> None:
        """Begin an empty journal."""
        self.sealed = 0
        #: Records after which a segment is due.
        self.limit = SEAL_RECORDS
        #: Records ever written.
        self.total = 0
        self.open = JournalBlock()
        self._bytes = 0
        self._pending: JournalBlock | None = None

    def record(self, record: JournalRecord) -> None:
        """Add one record to the unsealed rest."""
        self.total += 1
        self.open.add(record)
        if record.extra:
            self._bytes += len(str(record.extra))

    @property
    def full(self) -> bool:
        """Is it time to seal?"""
        return len(self.open) >= self.limit or self._bytes >= SEAL_BYTES

    def pending(self) -> tuple[int, JournalBlock]:
        """Return the number and the records of the segment to be written; the same until seal() is called."""
        if not self._pending:
            self._pending = JournalBlock(**{f.name: getattr(self.open, f.name).copy() for f in fields(JournalBlock)})
        return self.sealed + 1, self._pending

    def seal(self) -> None:
        """Drop the pending records: they are in a segment now."""
        assert self._pending is not None, "nothing is pending"
        rest = JournalBlock()
        rest.extend(self.open, len(self._pending))
        self.open, self._pending, self.sealed = rest, None, self.sealed + 1
        self._bytes = sum(len(str(extra)) for extra in rest.extra.values())
