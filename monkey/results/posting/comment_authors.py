"""The accounts that wrote a sweep's comment: CI's jobs and agents have tokens of their own, and there is one comment.

Comments are known by marker and author, as anybody may write the marker. So a sender notes its account in the store
before it writes. After a kill, the next sender finds that comment, and writes no second one.
"""

from __future__ import annotations

import hashlib
import json

from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.layout import Keys
from monkey.store.create import create_object
from monkey.store.store_port import Store

#: Accounts that are looked at: of a store that anybody filled, no more.
_MOST = 20


async def note_author(store: Store, keys: Keys, sweep: str, way: str, author: str) -> None:
    """Note that this account is about to write the sweep's comment. Raises StoreError."""
    name = hashlib.sha256(author.encode()).hexdigest()[:16]
    await create_object(store, keys.comment_authors(sweep, way) + name, json.dumps(author).encode())


async def list_authors(store: Store, keys: Keys, sweep: str, way: str) -> frozenset[str]:
    """Return the accounts that wrote the sweep's comment, or were about to. Raises StoreError."""
    found = set[str]()
    for item in (await store.list(keys.comment_authors(sweep, way)))[:_MOST]:
        try:
            author = json.loads(await store.get(item.key))
        except (KeyMissing, CorruptObject, ValueError):
            continue
        if isinstance(author, str):
            found.add(author)
    return frozenset(found)
