"""Heartbeats of syncs, which follow git branches: one overwritten object for each sync, written once a minute.

The beat is for people, and for the sync that starts next: which commit was applied last. Many can write into a store.
So a reader believes nothing that is not of its shape, and reads a bounded number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol import entry_shape
from monkey.protocol.layout import Keys, is_name
from monkey.store.store_port import ListedObject, Store

#: Seconds between beats at least, unless something changed.
SYNC_BEAT = 60.0
#: Periods without a beat after which a sync counts as dead.
MISSED_BEATS = 3
#: Beats that one reading reads, of the last by their names.
_MOST_BEATS = 50
#: Seconds after which it is no news that a sync has ended, or that one of several died.
_FORGOTTEN = 86_400.0
#: Characters of a problem that a beat keeps, and of what it says of previews.
_PROBLEM_LENGTH = 1_000

#: What became of the newest look: nothing yet; being applied; applied whole; refused, whole or in part, until the
#: commit changes; failed, tried again later; history rewritten; the branch is gone; the remote does not answer.
SYNC_OUTCOMES = ("started", "applying", "applied", "refused", "failed", "rewritten", "gone", "away")

_COMMIT = entry_shape.is_matching("(?:[0-9a-f]{40}|[0-9a-f]{64})?")


@dataclass(frozen=True)
class SyncBeat:
    """One heartbeat of a sync."""

    #: Without user and password.
    remote: str
    branch: str
    host: str
    #: Seconds between looks; 0 for a sync that looks once and ends.
    interval: float
    #: When it began, and when it beat: seconds since the epoch, by its clock.
    began: float
    at: float = 0.0
    #: When the remote answered last.
    looked: float = 0.0
    #: The branch's commit as it was seen last, and the one that was applied last; "" for none.
    seen: str = ""
    applied: str = ""
    applied_at: float = 0.0
    outcome: str = "started"
    #: Since when the outcome is so.
    since: float = 0.0
    problem: str = ""
    #: What became of previews of pull requests; "" where it makes none.
    previews: str = ""
    #: Whether it has ended on purpose, or after its one look.
    left: bool = False

    @property
    def period(self) -> float:
        """Return the seconds between its beats."""
        return max(SYNC_BEAT, self.interval)

    def is_dead(self, now: float) -> bool:
        """Return whether it has not beaten for so long that it must be gone, and did not say that it would."""
        return not self.left and now - self.at > MISSED_BEATS * self.period

    def encode(self) -> bytes:
        """Return its bytes."""
        fields = asdict(self) | {"problem": self.problem[:_PROBLEM_LENGTH], "previews": self.previews[:_PROBLEM_LENGTH]}
        if not self.previews:
            del fields["previews"]  # readers of before know no such field
        return json.dumps(fields, separators=(",", ":")).encode()


_SHAPE: dict[str, Callable[[object], bool]] = {
    "remote": entry_shape.is_plain_text,
    "branch": entry_shape.is_plain_text,
    "host": entry_shape.is_plain_text,
    "interval": entry_shape.is_moment,
    "began": entry_shape.is_moment,
    "at": entry_shape.is_moment,
    "looked": entry_shape.is_moment,
    "seen": _COMMIT,
    "applied": _COMMIT,
    "applied_at": entry_shape.is_moment,
    "outcome": entry_shape.make_choice_test(SYNC_OUTCOMES),
    "since": entry_shape.is_moment,
    "problem": entry_shape.is_plain_text,
    "previews": entry_shape.is_plain_text,
    "left": entry_shape.is_flag,
}


def hash_remote(remote: str, branch: str) -> str:
    """Return the part of a beat's key that stands for a branch of a remote."""
    return sha256(f"{remote}\n{branch}".encode()).hexdigest()[:12]


def decode_sync_beat(key: str, data: bytes) -> SyncBeat:
    """Read a beat. Raises CorruptObject for what is none."""
    try:
        body = entry_shape.parse_object(data)
        entry_shape.check_shape(body, _SHAPE)
        return SyncBeat(**body)
    except (ValueError, TypeError) as exc:
        raise CorruptObject(key, f"not a heartbeat of a sync ({exc!r:.100})") from exc


async def read_sync_beats(store: Store, keys: Keys, remote: str = "") -> tuple[list[SyncBeat], list[str]]:
    """Return the beats of syncs, by remotes and hosts, and sentences on what could not be read.

    `remote`: the hash of the only one that is wanted. Raises StoreError.
    """
    prefix = f"{keys.syncs}{remote}/" if remote else keys.syncs
    listed = [item for item in await store.list(prefix) if _is_beat_key(keys, item.key)]
    beats, problems = list[SyncBeat](), list[str]()
    for item in listed[-_MOST_BEATS:]:
        try:
            beats.append(await _read_beat(store, item))
        except KeyMissing:
            continue
        except CorruptObject as exc:
            problems.append(exc.message)
    if len(listed) > _MOST_BEATS:
        problems.append(f"{keys.syncs}: {len(listed):,} heartbeats of syncs, of which {_MOST_BEATS} are read")
    return beats, problems


async def _read_beat(store: Store, item: ListedObject) -> SyncBeat:
    return decode_sync_beat(item.key, await store.get(item.key))


def _is_beat_key(keys: Keys, key: str) -> bool:
    parts = key.removeprefix(keys.syncs).split("/")
    return len(parts) == 3 and parts[2] == "beat" and all(map(is_name, parts[:2]))


async def forget_ended_syncs(store: Store, keys: Keys, now: float) -> tuple[list[SyncBeat], int]:
    """Remove the beats of syncs that have ended or are dead, and objects that are no beats. Raises StoreError.

    Returns these beats, and the number of the other objects. A sync that lives after all beats again within a minute.
    """
    forgotten, others = list[SyncBeat](), 0
    for item in await store.list(keys.syncs):
        if not _is_beat_key(keys, item.key):
            continue
        try:
            beat = await _read_beat(store, item)
        except KeyMissing:
            continue
        except CorruptObject:
            others += 1
        else:
            if not beat.left and not beat.is_dead(now):
                continue
            forgotten.append(beat)
        await store.delete(item.key)
    return forgotten, others


def drop_past_beats(beats: Sequence[SyncBeat], now: float) -> list[SyncBeat]:
    """Return the beats without those of syncs that ended a day ago, or whose branch another sync took over since.

    In a container each start has another host's name: the dead ones would stay for ever.
    """
    kept = [beat for beat in beats if not (beat.left and now - beat.at > _FORGOTTEN)]
    return [beat for beat in kept if not any(_replaces(other, beat, now) for other in beats)]


def _replaces(other: SyncBeat, beat: SyncBeat, now: float) -> bool:
    ended, same = beat.left or beat.is_dead(now), (other.remote, other.branch) == (beat.remote, beat.branch)
    later = other.began > beat.at or (now - beat.at > _FORGOTTEN and not other.is_dead(now) and not other.left)
    return ended and same and other is not beat and later
