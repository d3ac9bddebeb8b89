"""What every backend keeps: one suite over all of them."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import KeyMissing
from monkey.store.open import open_store
from monkey.store.probe import probe_store
from monkey.store.store_port import ListedObject, Store
from tests.conformance.racer import race
from tests.loops import Run

Clients = Callable[[], Store]

BAD_KEYS = ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\0b", "tmp/a", "tmp", "\udcff"]
GOOD_KEYS = [
    "a",
    "a b",
    "a.b/c-d_e",
    "größe/日本/🐒",
    ".hidden",
    "d/...",
    "x" * 200,
    "~",
    "-rf",
    "a'\"$(x)\n\\b",
    "tmpx/a",
]


@pytest.mark.parametrize("durable", [True, False])
def test_a_key_is_created_once(store: Store, clients: Clients, run: Run, durable: bool) -> None:
    assert run(store.create("a/b/1", b"first", durable=durable)) is True
    assert run(store.create("a/b/1", b"second", durable=durable)) is False
    assert run(clients().create("a/b/1", b"third", durable=durable)) is False
    assert run(clients().get("a/b/1")) == b"first"


@pytest.mark.parametrize("durable", [True, False])
def test_of_many_at_once_one_wins(store: Store, clients: Clients, run: Run, durable: bool) -> None:
    async def race() -> list[list[bool]]:
        sides = [store, others, store]
        keys = [f"race/{n}" for n in range(50)]
        return await asyncio.gather(
            *(
                asyncio.gather(*(s.create(k, f"{i}".encode(), durable=durable) for i, s in enumerate(sides)))
                for k in keys
            )
        )

    others = clients()
    for n, won in enumerate(run(race())):
        assert sum(won) == 1
        assert run(store.get(f"race/{n}")) == str(won.index(True)).encode()


@pytest.mark.slow
def test_of_eight_processes_one_wins_each_key(url: str, store: Store, run: Run) -> None:
    if url.startswith("memory://"):
        pytest.skip("memory is not shared between processes")
    keys = 120
    winner = race([url] * 8, keys)
    assert len(winner) == keys
    for key, value in winner.items():
        assert run(store.get(f"race/{key % 7}/{key}")) == value


def test_directories_are_listed_without_what_is_below_them(store: Store, run: Run) -> None:
    assert list(run(store.list_directories("p/"))) == []
    for key in ("p/b/x/1", "p/b/y", "p/a%/größe", "p/日本/z", "p/file", "pp/c/d", "q"):
        run(store.put(key, b""))
    assert list(run(store.list_directories("p/"))) == ["a%", "b", "日本"]
    assert list(run(store.list_directories("p/b/"))) == ["x"]
    assert list(run(store.list_directories("none/"))) == []


def test_the_probe_passes_and_leaves_nothing(store: Store, run: Run) -> None:
    before = run(store.list(""))
    run(probe_store(store))
    assert run(store.list("")) == before


def test_put_replaces(store: Store, clients: Clients, run: Run) -> None:
    run(store.put("beat", b"one"))
    run(clients().put("beat", b"two"))
    assert run(store.get("beat")) == b"two"
    assert run(store.create("beat", b"three")) is False


def test_a_missing_key_is_named(store: Store, run: Run, tmp_path: Path) -> None:
    run(store.put("a/b", b""))
    for key in ("nothing", "a/nothing", "no/such/directory", "a", "a/b/c"):
        with pytest.raises(KeyMissing, match=key):
            run(store.get(key))
        with pytest.raises(KeyMissing, match=key):
            run(store.get_file(key, tmp_path / "copy"))
    assert not list(tmp_path.glob("*copy*"))


def test_values_of_any_size_come_back(store: Store, run: Run) -> None:
    for size in (0, 1, 65_536, 65_537, 5_000_000):
        value = bytes(range(256)) * (size // 256) + bytes(size % 256)
        assert run(store.create(f"{size}/created", value))
        assert run(store.create(f"{size}/loose", value, durable=False))
        run(store.put(f"{size}/put", value))
        for key in ("created", "loose", "put"):
            assert run(store.get(f"{size}/{key}")) == value
        assert [item.size for item in run(store.list(f"{size}/"))] == [size] * 3


def test_keys_are_kept_to_the_letter(store: Store, run: Run) -> None:
    for key in GOOD_KEYS:
        assert run(store.create(key, key.encode()))
    for key in GOOD_KEYS:
        assert run(store.get(key)) == key.encode()
        assert _keys(run(store.list(key))) == sorted(other for other in GOOD_KEYS if other.startswith(key))
    assert _keys(run(store.list(""))) == sorted([*GOOD_KEYS, "format"])


def test_what_is_no_key_is_refused(store: Store, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    ways: list[Callable[[str], Any]] = [
        lambda key: store.create(key, b""),
        lambda key: store.create(key, b"", durable=False),
        lambda key: store.put(key, b""),
        store.get,
        store.delete,
        lambda key: store.put_file(key, file),
        lambda key: store.get_file(key, file),
    ]
    for key, ask in itertools.product(BAD_KEYS, ways):
        with pytest.raises(ValueError, match="is not a key"):
            run(ask(key))


def test_what_is_no_prefix_is_refused(store: Store, run: Run) -> None:
    for prefix in ("/", "../", "a/../", "a//", "tmp/"):
        with pytest.raises(ValueError, match="is not a key"):
            run(store.list(prefix))


def _keys(items: list[ListedObject]) -> list[str]:
    return [item.key for item in items]


TREE = ["a", "a-b", "a.b/1", "a/1", "a/10", "a/2", "a/b/c/d", "ab/1", "b", "ä/1", "🐒", "﹩"]


@pytest.fixture
def tree(store: Store, run: Run) -> list[str]:
    """Fill the store with keys that sort in surprising ways; returns them sorted."""
    keys = sorted(key for key in TREE if key != "a")
    for key in reversed(keys):
        run(store.put(key, key.encode()))
    return keys


def test_a_listing_is_sorted_and_deep(store: Store, run: Run, tree: list[str]) -> None:
    assert [key for key in _keys(run(store.list(""))) if key != "format"] == tree


def test_a_prefix_is_a_string_not_a_directory(store: Store, run: Run, tree: list[str]) -> None:
    for prefix in ("a", "a/", "a/1", "a/b", "a/b/", "a.", "a-", "b", "z", "z/", "a/b/c/d", "a/b/c/d/e", "ä"):
        assert _keys(run(store.list(prefix))) == [key for key in tree if key.startswith(prefix)], prefix


def test_after_leaves_out_what_was_seen(store: Store, run: Run, tree: list[str]) -> None:
    for prefix in ("", "a", "a/", "a/b"):
        for after in [*tree, "a/", "a/11", "a/b/", "0", "zzz", prefix]:
            expected = [key for key in sorted([*tree, "format"]) if key.startswith(prefix) and key > after]
            assert _keys(run(store.list(prefix, after))) == expected, (prefix, after)


def test_nothing_there_is_an_empty_list(store: Store, run: Run) -> None:
    assert run(store.list("no/such/")) == []
    assert run(store.list("no")) == []


def test_a_version_changes_with_the_bytes_only(store: Store, clients: Clients, run: Run) -> None:
    run(store.put("beat", b"aaaa"))
    first = run(store.list("beat"))
    assert run(clients().list("beat")) == first
    seen = {first[0].version}
    for n in range(20):
        run(store.put("beat", f"{n:04d}".encode()))
        [item] = run(store.list("beat"))
        assert item.size == 4
        seen.add(item.version)
    assert len(seen) > 10  # a clock tick may hide a rewrite within it, never all


def test_delete_removes_and_does_not_mind(store: Store, run: Run) -> None:
    run(store.put("a/b", b"x"))
    run(store.delete("a/b"))
    run(store.delete("a/b"))
    run(store.delete("never/was"))
    with pytest.raises(KeyMissing):
        run(store.get("a/b"))
    assert run(store.list("a")) == []
    assert run(store.create("a/b", b"again")) is True


@pytest.mark.parametrize("size", [0, 10, 3_000_000])
def test_files_go_in_and_out(store: Store, run: Run, tmp_path: Path, size: int) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(b"z" * size)
    run(store.put_file("out/f", source))
    source.write_bytes(b"changed after")
    copy.write_bytes(b"was here before")
    run(store.get_file("out/f", copy))
    assert copy.read_bytes() == b"z" * size == run(store.get("out/f"))
    copy.write_bytes(b"changed after")
    assert run(store.get("out/f")) == b"z" * size
    run(store.put_file("out/f", source))
    assert run(store.get("out/f")) == b"changed after"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["copy", "source"]


def test_a_file_that_is_not_there_is_the_callers_error(store: Store, run: Run, tmp_path: Path) -> None:
    run(store.put("k", b"x"))
    with pytest.raises(FileNotFoundError):
        run(store.put_file("out/f", tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError):
        run(store.get_file("k", tmp_path / "no" / "such"))
    with pytest.raises(KeyMissing):
        run(store.get("out/f"))


def test_nothing_is_ever_seen_half(url: str, clients: Clients, run: Run) -> None:
    """A reader in a thread of its own reads and lists while others write what is many pages long."""
    size, stop, torn = 1_000_000, threading.Event(), []

    def watch() -> None:
        async def look() -> None:
            reader = await open_store(url)
            while not stop.is_set():
                for item in await reader.list("big/"):
                    try:
                        value = await reader.get(item.key)
                    except KeyMissing:
                        continue
                    if item.size != size or len(value) != size or len(set(value)) != 1:
                        torn.append(item)
            await reader.close()

        asyncio.run(look())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        writer = clients()
        for n in range(12):
            run(writer.create(f"big/{n}", bytes([n]) * size, durable=n % 2 == 0))
            run(writer.put("big/put", bytes([n]) * size))
    finally:
        stop.set()
        watcher.join()
    assert torn == []
