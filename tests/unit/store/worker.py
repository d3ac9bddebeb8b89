# ruff: noqa: ASYNC240
"""What a test lets another process do with a store: `python worker.py STORY STORE`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from monkey.errors import StoreError, StoreMissing, StoreRefused, StoreUnavailable
from monkey.store.open import open_store


def mark(text: str) -> None:
    """Write a line that a trace of system calls shows in its place."""
    os.write(1, f"{text}\n".encode())


async def refusal(awaitable: Awaitable[Any]) -> StoreError:
    """Return the error that `awaitable` must raise."""
    try:
        await awaitable
    except StoreError as error:
        return error
    raise AssertionError("expected an error")


async def durable(place: str) -> None:
    """Create one after another, then many at once, then a file; a loose entry precedes some."""
    store = await open_store(place, begin=True)
    mark("begun")
    await store.create("jobs/a/1", b"claim", durable=False)
    await store.create("jobs/a/2", b"end")
    mark("answered jobs/a/2")
    await store.create("jobs/a/3", b"claim", durable=False)
    await store.create("jobs/a/4", b"end")
    mark("answered jobs/a/4")
    await store.create("jobs/b/2", b"end")
    await store.create("jobs/a/5", b"claim", durable=False)
    await store.create("jobs/b/3", b"claim", durable=False)
    await store.create("jobs/a/6", b"end")
    mark("answered jobs/a/6")
    names = [f"jobs/many{n}/2" for n in range(20)]
    for n in range(20):
        await store.create(f"jobs/many{n}/1", b"claim", durable=False)
    await asyncio.gather(*(store.create(name, b"end") for name in names))
    mark("answered " + " ".join(names))
    await asyncio.gather(*(store.create(f"log/{n}", b"entry") for n in range(40)))
    mark("answered " + " ".join(f"log/{n}" for n in range(40)))
    await store.put_file("jobs/a/out/log", Path(__file__))
    mark("answered jobs/a/out/log")
    await store.close()


async def unsynced(place: str) -> None:
    """Create entries below `jobs`, which cannot be synced: they are there, and nobody says that they stay."""
    store = await open_store(place, begin=True)
    for n in (1, 2):
        error = await refusal(store.create(f"jobs/a/{n}", b"end"))
        assert isinstance(error, StoreUnavailable) and "could not be synced" in error.message, error
        assert await store.get(f"jobs/a/{n}") == b"end"
    assert await store.create("log/1", b"entry")
    await store.close()
    mark("well")


async def forget(place: str) -> None:
    """Create a durable entry without syncing anything: what the trace must be able to tell."""
    target, temp = Path(place, "jobs/a/2"), Path(place, "tmp/x.1")
    for directory in (target.parent, temp.parent):
        directory.mkdir(parents=True)
    mark("begun")
    temp.write_bytes(b"end")
    target.hardlink_to(temp)
    mark("answered jobs/a/2")


async def contents(place: str) -> None:
    """Store many small files, by several processes, and a large one."""
    from monkey.store.content.hash_worker import read_signature
    from monkey.store.content.objects import SourceFile, spell_md5_key

    data = Path(place).with_name("data")
    data.mkdir()
    for n in range(1100):
        (data / f"{n}").write_bytes(b"content %d" % n)
    (data / "large").write_bytes(b"large" * 2_000_000)
    sources = [SourceFile(str(path), read_signature(path.stat())) for path in sorted(data.iterdir())]
    store = await open_store(place, begin=True)
    mark("begun")
    md5s = await store.put_contents(sources, lambda objects, size: None)
    for at in range(0, len(md5s), 50):
        mark("answered " + " ".join(spell_md5_key(md5) for md5 in md5s[at : at + 50]))
    await store.close()


async def full(place: str) -> None:
    """Fill the disk: refused, nothing lost, nothing left aside, and it goes on where there is room again."""
    store = await open_store(place, begin=True)
    written: list[str] = []
    for n in range(10_000):
        try:
            await store.create(f"k/{n}", b"x" * 5000, durable=n % 2 == 0)
        except StoreRefused as error:
            assert "no space left" in error.message, error
            assert "docs/stores.md (A full store)" in str(error.hint), error
            break
        written.append(f"k/{n}")
    big = Path("/dev/shm", f"monkey-test-{os.getpid()}")
    big.write_bytes(b"y" * 400_000)
    try:
        for refused in (store.put("beat", b"x" * 5000), store.put_file("f", big), store.create("c", b"x" * 10**6)):
            assert isinstance(await refusal(refused), StoreRefused)
    finally:
        big.unlink()
    assert 10 < len(written) < 1000
    assert sorted(item.key for item in await store.list("")) == sorted([*written, "format"])
    assert all([await store.get(key) == b"x" * 5000 for key in written])
    assert not list(Path(place, "tmp").iterdir())
    for key in written[:4]:
        await store.delete(key)
    assert await store.create("k/again", b"x" * 5000)
    mark("well")


async def unmount(place: str) -> None:
    """Use a store whose file system comes and goes: `place` is on a mount of its own."""
    mount = str(Path(place).parent)
    store = await open_store(place, begin=True)
    await store.create("a/1", b"x")
    await store.create("a/2", b"x", durable=False)
    await store.list("")
    aside = mount + "-elsewhere"
    _do("mount", "--move", mount, aside)  # fails where anything holds it open as a lazy unmount would not
    for ask in (
        store.create("a/3", b"x"),
        store.create("a/3", b"x", durable=False),
        store.put("b", b""),
        store.list(""),
    ):
        assert isinstance(await refusal(ask), StoreMissing)
    assert isinstance(await refusal(store.get("a/1")), StoreMissing)
    assert isinstance(await refusal(open_store(place)), StoreMissing)
    assert not os.listdir(mount)  # noqa: PTH208
    _do("mount", "--move", aside, mount)
    assert await store.create("a/3", b"x")
    assert [item.key for item in await store.list("a/")] == ["a/1", "a/2", "a/3"]
    _do("umount", mount)
    mark("well")


def _do(*command: str) -> None:
    import subprocess

    subprocess.run(command, check=True)


async def unwritable(place: str) -> None:
    """Read a store that this user may not write."""
    store = await open_store(place)
    assert await store.get("a/1") == b"x"
    assert len(await store.list("")) == 2
    file = Path(__file__)
    for ask in (
        store.create("a/2", b"x"),
        store.create("a/2", b"x", durable=False),
        store.create("new/2", b"x", durable=False),
        store.put("a/1", b"x"),
        store.put_file("f", file),
        store.delete("a/1"),
        open_store(str(Path(place).parent / "new"), begin=True),
    ):
        error = await refusal(ask)
        assert isinstance(error, StoreRefused) and "permission denied" in error.message and error.hint, error
    mark("well")


STORIES = {story.__name__: story for story in (durable, contents, unsynced, forget, full, unmount, unwritable)}

if __name__ == "__main__":
    asyncio.run(STORIES[sys.argv[1]](sys.argv[2]))
