"""Files under the MD5s of their bytes, over every backend."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from monkey.errors import DatasetError
from monkey.store.content.hash_worker import read_signature
from monkey.store.content.objects import MD5_PREFIX, SourceFile, spell_md5_key
from monkey.store.store_port import Store
from tests.loops import Run

LARGE = b"0123456789" * 900_000


def source(path: Path, data: bytes, *, known: bool = True) -> SourceFile:
    """Write a file, and say what must be stored of it."""
    path.write_bytes(data)
    return SourceFile(str(path), read_signature(path.stat()), md5(data) if known else "")


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def ignore(objects: int, size: int) -> None:
    """Take progress."""


@pytest.mark.parametrize("known", [True, False])
def test_files_are_stored_under_their_md5s(store: Store, run: Run, tmp_path: Path, known: bool) -> None:
    bodies = [b"", LARGE, LARGE[1:], *(b"content %d" % (n % 40) for n in range(60))]
    told: list[tuple[int, int]] = []
    sources = [source(tmp_path / f"file {n}", body, known=known) for n, body in enumerate(bodies)]
    stored = run(store.put_contents(sources, lambda objects, size: told.append((objects, size))))
    assert stored == [md5(body) for body in bodies]
    assert {item.key: item.size for item in run(store.list(MD5_PREFIX))} == {
        spell_md5_key(md5(b)): len(b) for b in bodies
    }
    for body in bodies[:5]:
        assert run(store.get(spell_md5_key(md5(body)))) == body
    assert [sum(of) for of in zip(*told, strict=True)] == [len(bodies), sum(map(len, bodies))]


def test_nothing_is_stored_of_nothing(store: Store, run: Run) -> None:
    assert list(run(store.put_contents([], ignore))) == []
    assert run(store.list(MD5_PREFIX)) == []


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_a_file_that_changed_is_refused_and_leaves_nothing(store: Store, run: Run, tmp_path: Path, body: bytes) -> None:
    one = source(tmp_path / "one", body)
    (tmp_path / "one").write_bytes(body[::-1])
    with pytest.raises(DatasetError, match="one changed"):
        run(store.put_contents([one], ignore))
    two = source(tmp_path / "two", body, known=False)
    (tmp_path / "two").write_bytes(body + b"more")
    with pytest.raises(DatasetError, match="two changed"):
        run(store.put_contents([two], ignore))
    assert run(store.list(MD5_PREFIX)) == []


def test_a_mere_touch_of_a_known_file_is_forgiven(store: Store, run: Run, tmp_path: Path) -> None:
    for body in (b"small", LARGE):
        one = source(tmp_path / "one", body)
        os.utime(tmp_path / "one", ns=(1, 1))
        assert list(run(store.put_contents([one], ignore))) == [md5(body)]


@pytest.mark.parametrize("body", [b"small", LARGE])
def test_what_is_gone_or_no_file_is_refused(store: Store, run: Run, tmp_path: Path, body: bytes) -> None:
    one = source(tmp_path / "one", body)
    (tmp_path / "one").unlink()
    with pytest.raises(DatasetError, match="one vanished"):
        run(store.put_contents([one], ignore))
    os.mkfifo(tmp_path / "one")
    with pytest.raises(DatasetError, match="expected a file at"):
        run(store.put_contents([one], ignore))
    assert run(store.list(MD5_PREFIX)) == []


def test_an_object_that_is_not_whole_is_replaced(store: Store, run: Run, tmp_path: Path) -> None:
    one = source(tmp_path / "one", b"content")
    run(store.put(spell_md5_key(md5(b"content")), b"cut"))
    run(store.put_contents([one], ignore))
    assert run(store.get(spell_md5_key(md5(b"content")))) == b"content"
