"""Does this place keep its word? Asked once, before a store is created in it."""

from __future__ import annotations

import asyncio
import secrets

from monkey.errors import StoreUnsafe
from monkey.store.store_port import Store

#: Where it is asked.
PROBE = "probe"

#: Writers that want one key at the same time.
RIVALS = 4


async def probe_store(store: Store) -> None:
    """Create one key from several sides at once, and once more when it is there.

    Raises StoreUnsafe where more than one writer wins, or the winner's bytes are not what is read; StoreError.
    """
    key = f"{PROBE}/{secrets.token_hex(6)}"
    late, *bodies = [f"rival {n}".encode() for n in range(RIVALS + 1)]
    try:
        won = await asyncio.gather(*(store.create(key, body, durable=bool(n % 2)) for n, body in enumerate(bodies)))
        won.append(await store.create(key, late, durable=False))
        _judge(store, won, [*bodies, late], await store.get(key))
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
