"""The roster: of a large fleet one agent lists the heartbeats and journals, and shares that listing with the others.

A listing costs as much as twelve readings, and twice as much for each thousand keys more. So one agent lists, and
overwrites one object, which the others read. They decide by it what they would decide by a listing of their own. The
author reads all heartbeats that moved. The roster says which it read last of each agent, and how long ago. That stays
true, however old the roster is. So an agent that looks seldom, or that met a claim just now, knows who is silent.
An agent that finds no fresh roster lists for itself. A hash lines the living agents up to take the author's place: the
first one does; if it does not, the next one. Those that died with the author are still counted among the living. Their
names may be alike, and a hash spreads them over the line.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol import entry_shape
from monkey.protocol.clock import Clock
from monkey.protocol.layout import Keys, is_agent_name
from monkey.store.store_port import ListedObject, Store

#: Seconds between looks of the author, which makes it anew at each.
SHARE = 2.0
#: Seconds after which a roster is old.
FRESH = 6.0
#: Seconds that each agent waits after the one before it in the line, before it takes an author's place.
_TURN = 4.0
#: Seconds by which two machines' clocks may part in a second, and more.
_DRIFT = 0.01
#: Bytes of a roster before it is packed, at most: of a million agents.
_MOST = 64 * 1024 * 1024


def shorten_version(version: str) -> str:
    """Return eight digits that stand for an object's version: a roster has thousands of them."""
    return f"{zlib.crc32(version.encode()):08x}"


@dataclass(frozen=True)
class Roster:
    """A listing of the heartbeats and journals, as an agent shares it."""

    author: str
    #: The author's clock when it listed; for the roster's age.
    clock: float
    #: Agent to the names of its objects, and their versions as `shorten_version` spells them.
    objects: Mapping[str, Mapping[str, str]]
    #: Agent to the number of the newest heartbeat that the author read, and the seconds since then.
    silence: Mapping[str, tuple[int, float]]

    def list_objects(self, prefix: str) -> list[ListedObject]:
        """Return what a listing of `prefix` would say."""
        return [
            ListedObject(f"{prefix}{agent}/{name}", 0, version)
            for agent, names in self.objects.items()
            for name, version in names.items()
        ]

    def encode(self) -> bytes:
        """Return the bytes that `decode_roster` reads."""
        body = {"author": self.author, "clock": self.clock, "objects": self.objects, "silence": self.silence}
        return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 1)


def _is_objects(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_agent_name(agent) and isinstance(names, dict) and all(map(entry_shape.is_text, names.values()))
        for agent, names in value.items()
    )


def _is_silence(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and entry_shape.is_whole(value[0])
        and entry_shape.is_moment(value[1])
    )


_SHAPE = {
    "author": entry_shape.is_text,
    "clock": entry_shape.is_finite_number,
    "objects": _is_objects,
    "silence": lambda value: isinstance(value, dict) and all(map(_is_silence, value.values())),
}


def decode_roster(key: str, data: bytes) -> Roster:
    """Read a roster; raises CorruptObject."""
    try:
        unpacking = zlib.decompressobj()
        body = entry_shape.parse_object(unpacking.decompress(data, _MOST))
        entry_shape.check_shape(body, _SHAPE)
        return Roster(
            body["author"],
            body["clock"],
            body["objects"],
            {agent: (seq, since) for agent, (seq, since) in body["silence"].items()},
        )
    except (zlib.error, ValueError, KeyError) as exc:
        raise CorruptObject(key, f"not a roster ({exc!r:.200})") from exc


def group_objects(items: Iterable[ListedObject], prefix: str) -> dict[str, dict[str, str]]:
    """Return the objects of a listing of `prefix` as rosters have them."""
    found: dict[str, dict[str, str]] = {}
    for item in items:
        agent, _, name = item.key.removeprefix(prefix).rpartition("/")
        if is_agent_name(agent):
            found.setdefault(agent, {})[name] = item.version
    return found


class SharedListing:
    """The roster of one project as one agent reads it, and makes it where that is its turn."""

    def __init__(self, store: Store, keys: Keys, clock: Clock, me: str, gap: float) -> None:
        """Have read nothing yet. `gap`: seconds without a reading after which what was known of clocks is forgotten."""
        self._store, self._clock, self._me, self._gap = store, clock, me, gap
        self._key, self._prefix = keys.roster, keys.agents
        self._author, self._asked = "", float("-inf")
        #: What this machine's clock says more than the author's, where a roster came without delay.
        self._apart = 0.0
        #: Seconds since the roster that was read last was made, as far as this agent can tell.
        self._age = 0.0

    async def read(self) -> Roster | None:
        """Return the roster; None where there is none, it is old, or it was made here. Raises StoreError."""
        before, self._asked = self._asked, self._clock.now()
        try:
            roster = decode_roster(self._key, await self._store.get(self._key))
        except (KeyMissing, CorruptObject):
            roster = Roster("", 0.0, {}, {})
        apart = self._asked - roster.clock
        if roster.author == self._author and self._asked - before <= self._gap:
            self._apart = min(apart, self._apart + (self._asked - before) * _DRIFT)
        else:
            self._author, self._apart = roster.author, apart
        self._age = apart - self._apart
        return roster if self._is_fresh and self._author not in ("", self._me) else None

    @property
    def _is_fresh(self) -> bool:
        return self._age <= FRESH

    def is_turn(self, living: Collection[str]) -> bool:
        """Return whether this agent is to make the roster, by what it read last; `living`: the others that live."""
        if self._is_fresh:
            return self._author == self._me
        mine = self._draw_place(self._me)
        before = sum(self._draw_place(agent) < mine and agent != self._author for agent in living)
        return self._age > FRESH + _TURN * before

    def _draw_place(self, agent: str) -> bytes:
        """Return an agent's place in the line of those that may take the author's place."""
        return hashlib.sha256(f"{self._author} {agent}".encode()).digest()

    async def share(self, items: Iterable[ListedObject], silence: Mapping[str, tuple[int, float]], at: float) -> None:
        """Overwrite the roster with what was listed at `at`, on this machine's clock; `silence`: see `Roster`.

        Raises StoreError.
        """
        roster = Roster(self._me, round(at, 3), group_objects(items, self._prefix), silence)
        await self._store.put(self._key, roster.encode())
