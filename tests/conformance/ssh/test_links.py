"""Links below the root of a store on an SSH host: nothing behind one is deleted, replaced or written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from monkey.errors import StoreRefused
from monkey.store.content.hash_worker import read_signature
from monkey.store.content.objects import SourceFile, spell_md5_key
from monkey.store.directory.publish import STALE
from monkey.store.open import open_store
from monkey.store.sftp.store import SftpStore
from tests.loops import Run

BODY = b"new"
OID = "22af645d1859cb5ca6da0c484f1f37ea"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a directory of somebody's, with files as old as those of dead writers and named as objects may be."""
    home = tmp_path / "victim"
    home.mkdir()
    long_ago = time.time() - 2 * STALE
    for name in ("thesis.tex", "b", "0123456789ab.0", OID[2:], "00000001"):
        (home / name).write_text("precious")
        os.utime(home / name, (long_ago, long_ago))
    os.utime(home, (long_ago + STALE, long_ago + STALE + 60))
    return home


def list_tree(home: Path) -> dict[str, tuple[bytes, float]]:
    """Return what is in a directory: path to bytes and time."""
    return {str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mtime) for path in home.rglob("*")}


@pytest.mark.parametrize("place", ["a", "a/d", "files", "files/md5", f"files/md5/{OID[:2]}", "projects"])
def test_nothing_behind_a_link_is_touched(store: SftpStore, run: Run, tmp_path: Path, victim: Path, place: str) -> None:
    before = list_tree(victim)
    link = tmp_path / "s" / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    path = tmp_path / "file"
    path.write_bytes(BODY)
    source = SourceFile(str(path), read_signature(path.stat()))
    for key in (f"{place}/b", f"{place}/new/b", f"{place}/00000001", f"{place}/thesis.tex"):
        for ask in (store.delete, lambda k: store.put(k, BODY), lambda k: store.put_file(k, path)):
            with pytest.raises(StoreRefused, match="is a link") as caught:
                run(ask(key))
            assert repr(place) in str(caught.value)
        for durable in (True, False):
            with pytest.raises(StoreRefused, match="is a link"):
                run(store.create(key, BODY, durable=durable))
    if place.startswith("files"):
        with pytest.raises(StoreRefused, match="is a link"):
            run(store.put_contents([source], lambda objects, size: None))
    assert list_tree(victim) == before
    run(store.put("other/key", BODY))
    link.unlink()
    run(store.put(f"{place}/b", BODY))
    run(store.put_contents([source], lambda objects, size: None))
    assert run(store.get(spell_md5_key(OID))) == BODY


def test_the_directory_of_files_in_writing_is_no_way_out(
    store: SftpStore, run: Run, tmp_path: Path, victim: Path
) -> None:
    before = list_tree(victim)
    temps = tmp_path / "s" / "tmp"
    for path in temps.iterdir():
        path.unlink()
    temps.rmdir()
    temps.symlink_to(victim)
    for ask in (lambda: store.create("a/b", BODY), lambda: store.put("a/c", BODY)):
        with pytest.raises(StoreRefused, match="is a link"):
            run(ask())
    assert list_tree(victim) == before


def test_only_files_of_our_names_are_swept(store: SftpStore, run: Run, tmp_path: Path) -> None:
    temps = tmp_path / "s" / "tmp"
    long_ago = time.time() - 2 * STALE
    for name in ("notes.txt", "0123456789ab.7"):
        (temps / name).write_text("x")
        os.utime(temps / name, (long_ago, long_ago))
    run(store.remove_stale())
    run(store.close())
    assert [path.name for path in temps.iterdir()] == ["notes.txt"]


def test_the_root_and_what_is_above_it_may_be_links(store: SftpStore, run: Run, tmp_path: Path) -> None:
    (tmp_path / "by").symlink_to(tmp_path / "s")
    other = run(open_store(f"ssh://there{tmp_path}/by"))
    assert run(other.create("a/b", BODY))
    run(other.delete("a/b"))
    run(other.close())
    assert run(store.list("a/")) == []
