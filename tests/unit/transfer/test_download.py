"""Downloads: verified, resumed, and never outside of their directory."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from monkey.errors import MonkeyError, StoreUnavailable
from monkey.store.memory import MemoryStore
from monkey.transfer.download import Download, DownloadFile, DownloadResult


class Reluctant(MemoryStore):
    """Counts what is read, and gives no answer for the first `silent` times."""

    def __init__(self, silent: int = 0) -> None:
        super().__init__()
        self.silent, self.read = silent, 0

    async def get_file(self, key: str, path: Path) -> None:
        self.read += 1
        if self.silent:
            self.silent -= 1
            raise StoreUnavailable("no answer")
        await super().get_file(key, path)


def file(path: str, data: bytes) -> DownloadFile:
    return DownloadFile(f"out/{path}", path, hashlib.sha256(data).hexdigest())


async def fill(store: MemoryStore, files: dict[str, bytes]) -> list[DownloadFile]:
    for path, data in files.items():
        await store.put(f"out/{path}", data)
    return [file(path, data) for path, data in files.items()]


def bring(store: MemoryStore, to: Path, files: list[DownloadFile]) -> DownloadResult:
    return asyncio.run(Download(store, to).run(files))


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    store, made = Reluctant(), {f"deep/{i}/ä b": b"x" * i for i in range(50)}
    files = asyncio.run(fill(store, made))
    first = bring(store, tmp_path / "to", files)
    assert (first.fetched, first.kept, first.size) == (50, 0, sum(range(50)))
    assert tree(tmp_path / "to") == made
    (tmp_path / "to/deep/7/ä b").write_bytes(b"changed")
    (tmp_path / "to/deep/8/ä b").unlink()
    again = bring(store, tmp_path / "to", files)
    assert (again.fetched, again.kept, store.read) == (2, 48, 52)
    assert tree(tmp_path / "to") == made


def test_bytes_that_are_not_those_recorded_never_arrive(tmp_path: Path) -> None:
    store = Reluctant()
    good, bad, gone = asyncio.run(fill(store, {"good": b"1", "bad": b"2", "gone": b"3"}))
    asyncio.run(store.put(bad.key, b"!"))
    asyncio.run(store.delete(gone.key))
    brought = bring(store, tmp_path, [bad, good, gone])
    assert "not those recorded" in brought.failed["bad"]
    assert "not in the store" in brought.failed["gone"]
    assert tree(tmp_path) == {"good": b"1"}, "and nothing half is left"


def test_a_store_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    store = Reluctant(silent=2)
    files = asyncio.run(fill(store, {"a": b"1"}))
    assert bring(store, tmp_path, files).fetched == 1


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../b", "a//b", "", ".", "a\0b", "\udc80"])
def test_names_that_lead_elsewhere_are_refused_before_anything_is_written(tmp_path: Path, path: str) -> None:
    store = Reluctant()
    files = asyncio.run(fill(store, {"fine": b"1"}))
    with pytest.raises(MonkeyError, match="leads elsewhere"):
        bring(store, tmp_path / "to", [*files, DownloadFile("out/fine", path, files[0].sha256)])
    assert not (tmp_path / "to").exists()


def test_a_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    store = Reluctant()
    files = asyncio.run(fill(store, {"sub/file": b"1", "link": b"1"}))
    (tmp_path / "else").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to/sub").symlink_to(tmp_path / "else")
    with pytest.raises(MonkeyError, match="leads out of"):
        bring(store, tmp_path / "to", files[:1])
    assert not list((tmp_path / "else").iterdir())
    (tmp_path / "secret").write_bytes(b"0")
    (tmp_path / "to/link").symlink_to(tmp_path / "secret")
    assert bring(store, tmp_path / "to", files[1:]).fetched == 1
    assert (tmp_path / "secret").read_bytes() == b"0"
    assert not (tmp_path / "to/link").is_symlink()
