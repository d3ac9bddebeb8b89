"""A store that agents lived in, as the simulation leaves it, and ways to spoil its objects."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Iterator
from typing import Any

from monkey.protocol.status.sync_beat import SyncBeat
from tests.simulation.body import KEYS
from tests.simulation.story import Story
from tests.simulation.world import Weather, World

ESCAPE = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202eevil\u2066\u061c\x08\x7f"
#: What a value becomes: other types, numbers beyond reach, text that is none, escape sequences, paths, nesting.
VALUES: list[Any] = [
    *(None, True, "", "x", "a\nb\rc\td", "../../../../esc", "/etc/passwd", "\ud800", "9" * 5000, "x" * 100_000),
    *(ESCAPE, {ESCAPE: ESCAPE}, [ESCAPE] * 3, {"last": ESCAPE}, {"../../esc": "0" * 64}, "=cmd|' /C calc'!A0"),
    *([], [[]], {}, {"a": {}}, {"x": "0" * 64}, [None], {"last": 10**400}, {"last": "x"}, {"loss": [1]}),
    *(0, -1, 2**63, 10**19, 10**400, 1e308, math.nan, math.inf, -math.inf, "nan", json.loads("[" * 500 + "]" * 500)),
]
#: What all bytes of an object become.
BYTES = [
    *(b"", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 50_000, b"{}", b"null", b"[]", b"0", b'{"kind": "claim"}'),
    *(b'{"kind": "end"', json.dumps({"kind": ESCAPE}).encode(), b'{"kind": "claim", "agent": "%b"}' % (b"A" * 100_000)),
]
#: Names that a part of a key may have.
NAMES = [
    ESCAPE,
    "x",
    "\u202eevil",
    "00000001",
    "99999999",
    "000000001",
    "²",
    "٣",
    "00000001.end",
    "beat",
    "-",
    "é" * 99,
]


def live() -> list[dict[str, bytes]]:
    """Return the objects of stores in the middle of their sweeps' lives, and at the end; the first are few."""
    found: list[dict[str, bytes]] = []
    for seed in (3, 14, 9):
        weather = Weather(notify=True, records=True, expires=False, calm_from=600, fault_rate=0.05, outage=(0, 0))
        world = World(seed, weather)
        asyncio.set_event_loop(world.loop)

        def note(world: World = world) -> None:
            found.append({key: _freshen(key, data) for key, (data, _) in world.state.objects.items()})
            sync = SyncBeat("https://host/r.git", "main", "head1", 60.0, time.time(), time.time(), problem="x")
            found[-1][KEYS.sync_beat("0123456789ab", "head1")] = sync.encode()

        for moment in (60, 300):
            world.loop.call_later(moment, note)
        world.run(Story(world).live())
        note()
    return found


def _freshen(key: str, data: bytes) -> bytes:
    """Return a heartbeat as one of now: its agent lives, by people's clock."""
    try:
        return json.dumps({**json.loads(data), "at": time.time()}).encode() if key.endswith("/beat") else data
    except ValueError:  # it was cut short
        return data


def spoil(objects: dict[str, bytes], rng: random.Random, count: int) -> list[str]:
    """Spoil so many of a store's objects, or add such as nobody writes; returns what was done."""
    keys, done = sorted(objects), []
    kinds: dict[str, list[str]] = {}
    for key in keys:
        kinds.setdefault("/".join(key.split("/")[2:3]), []).append(key)
    for _ in range(count):
        # All kinds are met as often: there are few revisions, and many heartbeats.
        key = rng.choice(kinds[rng.choice(sorted(kinds))])
        what, data = _alter(objects[key], rng)
        if rng.random() < 0.15:
            parts = key.split("/")
            at = rng.randrange(2, len(parts))
            parts[at:] = rng.choice([[rng.choice(NAMES), *parts[at + 1 :]], [rng.choice(NAMES)]])
            key = "/".join(parts)
        objects[key] = data
        done.append(f"{key!r}: {what}")
    return done


def _alter(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return an object's bytes with one thing altered, and what that was."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or rng.random() < 0.08:
        new = rng.choice([*BYTES, data[: len(data) // 2], data])
        return repr(new[:20]), new
    path, value = rng.choice(list(_places(body))), rng.choice(VALUES)
    if not path:
        return f"all: {value!r:.40}", _encode(value)
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    try:
        return f"{path}: {value!r:.40}", _encode(body)
    except RecursionError:  # spoiled twice
        return "twice", b"[" * 1000


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that is in a value."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*path, key))


__all__ = ["ESCAPE", "KEYS", "live", "spoil"]
