"""Does this place keep its word? Asked once, before a store is begun in it."""

from __future__ import annotations

import asyncio
import secrets

from monkey.errors import StoreUnsafe
from monkey.store.base import Store

#: Where it is asked.
PROBE = "probe"

#: Writers that want one key at the same time.
RIVALS = 4


async def probe(store: Store) -> None:
    """Create one key twice, and another from several sides at once.

    Raises StoreUnsafe where more than one writer wins, or the winner's bytes are not what is read; StoreError.
    """
    nonce = secrets.token_hex(6)
    await _twice(store, f"{PROBE}/{nonce}-twice")
    await _at_once(store, f"{PROBE}/{nonce}-rivals")


async def _twice(store: Store, key: str) -> None:
    try:
        first = await store.create(key, b"first")
        second = await store.create(key, b"second")
        _judge(store, [first, second], [b"first", b"second"], await store.get(key))
    finally:
        await store.delete(key)


async def _at_once(store: Store, key: str) -> None:
    bodies = [f"rival {n}".encode() for n in range(RIVALS)]
    try:
        won = await asyncio.gather(*(store.create(key, body, durable=bool(n % 2)) for n, body in enumerate(bodies)))
        _judge(store, list(won), bodies, await store.get(key))
    finally:
        await store.delete(key)


def _judge(store: Store, won: list[bool], bodies: list[bytes], found: bytes) -> None:
    winners = [body for body, mine in zip(bodies, won, strict=True) if mine]
    if winners != [found]:
        raise StoreUnsafe(
            f"{store.url} is not safe to use: of {len(bodies)} writers of one new key, expected one to win and its "
            f"bytes to be read, found {len(winners)} winners, and {found!r} was read",
            hint="use a store with conditional writes (If-None-Match), or a file system with working hard links",
        )
