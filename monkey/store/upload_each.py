"""Files stored under the MD5 of their bytes one by one: how stores do it that have no better way."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from monkey.concurrency import run_in_lanes
from monkey.store.content.hash_worker import CHANGED, read_contents
from monkey.store.content.objects import Moved, SourceFile, make_refusal, spell_md5_key
from monkey.store.store_port import Store

#: Files that are read whole, in bytes, and how many of them are on their way at once.
WHOLE, _CONCURRENCY = 8 * 1024 * 1024, 24

#: Stores bytes under a key.
PutWhole = Callable[[str, bytes], Awaitable[None]]


async def put_each(store: Store, sources: Sequence[SourceFile], moved: Moved, put_whole: PutWhole) -> list[str]:
    """Store each file by itself, several at once. See `Store.put_contents`. `put_whole` stores one that is small."""
    found, sent = [""] * len(sources), set[str]()

    async def put(at: int) -> None:
        found[at] = await _put(store, sources[at], sent, put_whole)
        moved(1, sources[at].signature[0])

    await run_in_lanes(range(len(sources)), put, _CONCURRENCY)
    return found


async def _put(store: Store, source: SourceFile, sent: set[str], put_whole: PutWhole) -> str:
    """Store one file, unless an equal one is among those `sent`; returns its MD5."""
    size = source.signature[0]
    if size > WHOLE:
        return await put_large(store, source)
    md5, data = await asyncio.to_thread(read_whole, source)
    if md5 not in sent:
        sent.add(md5)
        # On these stores a put is durable; where it is not, `put_contents` is theirs.
        await put_whole(spell_md5_key(md5), data)
    return md5


def read_whole(source: SourceFile) -> tuple[str, bytes]:
    """Return the MD5 and the bytes of a file; raises DatasetError where it is not what `source` says."""
    data, why = read_contents(source)
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if why or (source.md5 and md5 != source.md5):
        raise make_refusal(source, why or CHANGED)
    return md5, data


async def put_large(store: Store, source: SourceFile) -> str:
    """Store a copy by `put_file`, and return its MD5; raises DatasetError as `read_whole`.

    A copy: what was hashed is what is sent, even if a process writes the file meanwhile."""
    import tempfile  # slow to import, and most never get here

    from monkey.store.content.large_files import copy_hashed

    def copy(aside: Path) -> str:
        with aside.open("x+b") as target:
            return copy_hashed(source, target.fileno(), lambda _objects, _bytes: None)

    with tempfile.TemporaryDirectory(prefix="monkey-data-") as directory:
        aside = Path(directory, "copy")
        md5 = await asyncio.to_thread(copy, aside)
        await store.put_file(spell_md5_key(md5), aside)
    return md5
