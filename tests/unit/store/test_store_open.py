"""Finding, beginning and refusing stores."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import CorruptObject, StoreError, StoreFormat, StoreMissing, StoreRefused, StoreUnsafe
from monkey.store.format import VERSION, decode_format, make_store_layout
from monkey.store.memory import MemoryStore
from monkey.store.open import locate_url, open_store
from monkey.store.probe import probe_store
from tests.loops import Run


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("/a/b", "/a/b"),
        ("/a/../b/", "/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("memory://x", "memory://x"),
        ("Memory://x/y", "memory://x/y"),
    ],
)
def test_urls_have_one_form(url: str, place: str) -> None:
    assert locate_url(url) == place
    assert locate_url(place) == place


def test_relative_paths_and_home_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert locate_url("s/t") == f"{tmp_path}/s/t"
    assert locate_url("file:s") == f"{tmp_path}/file:s"
    assert locate_url("~/s") == "/home/somebody/s"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://x", "expected a directory or a URL"),
        ("file://host/x", "file:///absolute/path"),
        ("", "path of a directory"),
        ("a\0b", "path of a directory"),
    ],
)
def test_other_urls_are_refused(url: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        locate_url(url)
    assert caught.value.hint


def test_where_no_store_is_nothing_is_begun(tmp_path: Path, run: Run) -> None:
    empty, file = tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.write_bytes(b"")
    for place, said in (
        (tmp_path / "nothing" / "here", "does not exist"),
        (empty, "no 'format' in it"),
        (file, "not a directory"),
        (file / "below", "does not exist"),
    ):
        with pytest.raises(StoreMissing, match=said) as caught:
            run(open_store(str(place)))
        assert str(place) in caught.value.message
        assert caught.value.hint
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "file"]
    with pytest.raises(StoreMissing, match="memory://never"):
        run(open_store("memory://never"))


def test_begin_makes_a_store_once(tmp_path: Path, run: Run) -> None:
    place = tmp_path / "deep" / "down"
    run(run(open_store(f"file://{place}", begin=True)).close())
    said = json.loads((place / "format").read_bytes())
    assert (said["format"], len(said["id"])) == (VERSION, 16)
    assert said["written_by"]
    store = run(open_store(str(place), begin=True))
    assert store.url == str(place)
    assert [item.key for item in run(store.list(""))] == ["format"]
    assert json.loads((place / "format").read_bytes()) == said


def test_a_beginning_that_was_cut_off_is_taken_up(tmp_path: Path, run: Run) -> None:
    place = tmp_path / "store"
    (place / "tmp").mkdir(parents=True)
    (place / "tmp" / "left").write_bytes(b"{")
    (place / "probe").mkdir()
    run(run(open_store(str(place), begin=True)).close())
    assert (place / "format").exists()


def test_begin_refuses_a_directory_of_something_else(tmp_path: Path, run: Run) -> None:
    (tmp_path / "thesis.tex").write_bytes(b"")
    with pytest.raises(StoreRefused, match=r"found a directory with 'thesis\.tex' in it"):
        run(open_store(str(tmp_path), begin=True))
    with pytest.raises(StoreMissing, match="not a directory"):
        run(open_store(str(tmp_path / "thesis.tex"), begin=True))
    assert os.listdir(tmp_path) == ["thesis.tex"]  # noqa: PTH208


def test_two_that_begin_at_once_meet_in_one_store(tmp_path: Path, run: Run) -> None:
    async def both() -> list[Any]:
        return await asyncio.gather(*(open_store(str(tmp_path / "s"), begin=True) for _ in range(4)))

    stores = run(both())
    for n, store in enumerate(stores):
        assert run(store.create(f"k/{n}", b"x"))
    for store in stores:
        assert len(run(store.list("k/"))) == 4
        run(store.close())


def test_memory_is_begun_and_shared_by_name(run: Run) -> None:
    one = run(open_store("memory://shared-by-name", begin=True))
    run(one.put("k", b"v"))
    assert run(run(open_store("memory://shared-by-name")).get("k")) == b"v"


def test_a_store_in_a_directory_knows_its_layout(root: Path, run: Run) -> None:
    assert run(open_store(str(root), begin=True)).layout == VERSION
    assert run(open_store(str(root))).layout == VERSION
    (root / "format").write_text('{"format": 1, "id": "x"}')
    assert run(open_store(str(root))).layout == 1


def test_a_newer_store_is_not_touched(root: Path, run: Run) -> None:
    root.mkdir()
    (root / "format").write_text('{"format": 4, "id": "x", "written_by": "9.0"}')
    for begin in (False, True):
        with pytest.raises(StoreFormat, match=r"layout 4 \(written by monkey 9\.0\)") as caught:
            run(open_store(str(root), begin=begin))
        assert "newer monkey" in (caught.value.hint or "")
    assert os.listdir(root) == ["format"]  # noqa: PTH208


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"{}",
        b'{"format": 1}',
        b'{"format": "x", "id": "y"}',
        b"\xff",
        b'{"format": Infinity, "id": "y"}',
        b'{"format": true, "id": "y"}',
        b"[" * 100_000,
    ],
)
def test_a_torn_format_is_reported(root: Path, run: Run, data: bytes) -> None:
    root.mkdir()
    (root / "format").write_bytes(data)
    with pytest.raises(CorruptObject, match="format"):
        run(open_store(str(root)))


def test_a_format_comes_back() -> None:
    ours = make_store_layout()
    assert decode_format(ours.encode(), "x") == ours
    assert make_store_layout().id != ours.id


class Liar(MemoryStore):
    """Lets every writer win, as a bucket that ignores If-None-Match does."""

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        await self.put(key, data)
        return True


class Racy(MemoryStore):
    """Looks, then writes."""

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        there = key in self.state.objects
        await asyncio.sleep(0)
        if not there:
            await self.put(key, data)
        return not there


@pytest.mark.parametrize("kind", [Liar, Racy])
def test_a_place_where_two_win_is_refused(run: Run, kind: type[MemoryStore]) -> None:
    store = kind()
    with pytest.raises(StoreUnsafe, match="expected one to win"):
        run(probe_store(store))
    assert run(store.list("")) == []
