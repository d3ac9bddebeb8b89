"""A numbered log in the store, and the protocol's one primitive: append, the resolved create of the next entry.

Claim, takeover, release, failure and success of a job exclude each other because all of them want the same next number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from monkey.errors import KeyMissing
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, JobEntry, TornEntry, decode_entry
from monkey.protocol.layout import parse_number, spell_number
from monkey.spec.job.stop_when import StopEvidence
from monkey.store.create import Lost, Won
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store

#: The resolved create (monkey.store.create.create) with the caller's clock; the simulation passes its own.
Create = Callable[..., Awaitable[Won | Lost]]


class EntryLog:
    """One log, as far as this process has read it. Entries never change, so what was read stays true."""

    __slots__ = ("base", "entries", "skipped")

    def __init__(self, base: str) -> None:
        """Know nothing yet of the log whose entries are `base` + number."""
        self.base = base
        self.entries: list[JobEntry] = []
        #: Entries before the first of `entries` that were not read (jump).
        self.skipped = 0

    @property
    def head(self) -> int:
        """The number of the last entry known; 0 for none."""
        return self.skipped + len(self.entries)

    @property
    def tail(self) -> JobEntry | None:
        """The last entry known."""
        return self.entries[-1] if self.entries else None

    def key(self, k: int) -> str:
        """Return the key of entry k."""
        return self.base + spell_number(k)

    async def refresh(self, store: Store) -> None:
        """Read what was appended since."""
        while True:
            k = self.head + 1
            try:
                data = await read_entry(store, self.key(k))
            except KeyMissing:
                return
            self._learn(k, decode_entry(self.key(k), data))

    async def jump(self, store: Store) -> None:
        """Read the last entry alone, by one listing: for logs of which only the end matters (permits)."""
        names = [item.key.removeprefix(self.base) for item in await store.list(self.base, after=self.key(self.head))]
        last = max(filter(None, map(parse_number, names)), default=0)
        if last > self.head + 1:
            self.skipped, self.entries = last - 1, []
        await self.refresh(store)

    async def append(
        self, store: Store, create: Create, k: int, entry: Claim | EndEntry, *, durable: bool = True
    ) -> bool:
        """Append the entry as number `k`, the next one. False: another's is there (and is known now).

        Raises CreateUnresolved where the outcome could not be found out, and whatever else the store raises.
        """
        if self.head + 1 != k:  # pragma: no cover - another task of this process has read on; none should have
            return False
        answer = await create(store, self.key(k), entry.encode(), durable=durable)
        won = isinstance(answer, Won)
        self._learn(k, entry if isinstance(answer, Won) else decode_entry(self.key(k), answer.existing))
        return won

    def _learn(self, k: int, entry: JobEntry) -> None:
        """Take in entry k, unless another task of this process was faster."""
        if k == self.head + 1:  # pragma: no branch - two tasks seldom read on at once
            self.entries.append(entry.without_files() if isinstance(entry, EndEntry) else entry)


class LogTally:
    """What a log amounts to: built from the log itself, or from journals that index it."""

    __slots__ = ("cut_at", "failed_at", "lost_at", "saved_at", "stopped", "succeeded")

    def __init__(self) -> None:
        """Start from an empty log."""
        self.succeeded = False
        self.failed_at: list[int] = []
        self.lost_at: list[int] = []
        #: Losses, too, but of attempts that had saved a checkpoint of their own: the job gets on.
        self.saved_at: list[int] = []
        #: Position of an end to what the attempt met of `stop_when`: it was ended for that, or succeeded all the same.
        self.stopped: dict[int, StopEvidence] = {}
        #: Position of an end that came with the end of the machine's time, and of an attempt that had saved nothing: to
        #: the newest attempt before it that has a checkpoint, 0 for none.
        self.cut_at: dict[int, int] = {}

    @property
    def any_failure(self) -> bool:
        """Is there anything that may make the job a failed one?"""
        return bool(self.failed_at or self.lost_at or self.saved_at or self.cut_at)

    @property
    def last_at(self) -> int:
        """The position of the last of what may make the job a failed one."""
        return max([*self.failed_at, *self.lost_at, *self.saved_at, *self.cut_at])


def tally_log(log: EntryLog) -> LogTally:
    """Count a log's successes, failures and losses (claims whose agent vanished: another's claim follows)."""
    result = LogTally()
    before: JobEntry | None = None
    for k, entry in enumerate(log.entries, log.skipped + 1):
        if isinstance(entry, EndEntry):
            if entry.met:
                result.stopped[k] = StopEvidence.from_json(entry.met)
            if entry.outcome is ClaimEnd.SUCCEEDED:
                result.succeeded = True
            elif entry.outcome is ClaimEnd.FAILED:
                result.failed_at.append(k)
            elif entry.is_cut:
                result.cut_at[k] = entry.checkpoint
        elif isinstance(before, Claim | TornEntry) and not (isinstance(entry, Claim) and entry.continues):
            (result.saved_at if has_own_checkpoint(log, k) else result.lost_at).append(k - 1)
        before = entry
    return result


def has_own_checkpoint(log: EntryLog, k: int) -> bool:
    """Had the attempt that the claim at `k` took over saved a checkpoint of its own, by what the claim tells?"""
    first = log.skipped + 1
    claim, began = log.entries[k - first], k - 1
    while began > first and isinstance(entry := log.entries[began - first], Claim) and entry.continues:
        began -= 1
    return isinstance(claim, Claim) and claim.checkpoint >= began


async def find_newest_checkpoint(store: Store, prefix: str) -> int:
    """Return the newest attempt that has a checkpoint below `prefix`; 0 for none. Raises StoreError."""
    paths = (item.key.removeprefix(prefix).split("/") for item in await store.list(prefix))
    return max((parse_number(path[0]) or 0 for path in paths if len(path) == 2), default=0)
