"""Downloads: verified, resumed, and never outside of their directory."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from monkey.errors import MonkeyError, StoreUnavailable
from monkey.store.memory import MemoryStore
from monkey.transfer.download import Download, DownloadFile, DownloadResult
from monkey.transfer.fetch_directory import FETCHED, FETCHED_MANIFEST, FetchDirectory


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


def bring(store: MemoryStore, to: Path, files: list[DownloadFile], *, force: bool = False) -> DownloadResult:
    return asyncio.run(Download(store, FetchDirectory(to, force=force)).run(files))


def tree(root: Path) -> dict[str, bytes]:
    """Return the files below a directory but monkey's own."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith(FETCHED))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    store, made = Reluctant(), {f"deep/{i}/ä b": b"x" * i for i in range(50)}
    files = asyncio.run(fill(store, made))
    first = bring(store, tmp_path / "to", files)
    assert (first.fetched, first.kept, first.size) == (50, 0, sum(range(50)))
    assert tree(tmp_path / "to") == made
    (tmp_path / "to/deep/7/ä b").unlink()
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
    assert not tree(tmp_path / "to")


def test_a_link_out_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    store = Reluctant()
    files = asyncio.run(fill(store, {"sub/file": b"1", "link": b"1"}))
    (tmp_path / "else").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to/sub").symlink_to(tmp_path / "else")
    assert "leads out of" in bring(store, tmp_path / "to", files[:1], force=True).failed["sub/file"]
    assert not list((tmp_path / "else").iterdir())
    (tmp_path / "secret").write_bytes(b"0")
    (tmp_path / "to/link").symlink_to(tmp_path / "secret")
    assert "did not write it" in bring(store, tmp_path / "to", files[1:]).failed["link"]
    assert bring(store, tmp_path / "to", files[1:], force=True).fetched == 1
    assert (tmp_path / "secret").read_bytes() == b"0"
    assert not (tmp_path / "to/link").is_symlink()


def test_a_file_of_the_user_stays_unless_forced(tmp_path: Path) -> None:
    store = Reluctant()
    files = asyncio.run(fill(store, {"train.py": b"output", "new": b"new"}))
    (tmp_path / "train.py").write_bytes(b"mine")
    first = bring(store, tmp_path, files)
    assert first.fetched == 1 and "--force" in first.failed["train.py"]
    assert tree(tmp_path) == {"train.py": b"mine", "new": b"new"}
    assert not (tmp_path / FETCHED).exists(), "the directory was there, and is the user's"
    assert bring(store, tmp_path, files, force=True).fetched == 1
    assert tree(tmp_path)["train.py"] == b"output"


def test_what_fetch_wrote_is_replaced_until_the_user_changes_it(tmp_path: Path) -> None:
    store = Reluctant()
    for data in (b"1", b"22", b"333"):
        done = bring(store, tmp_path / "to", asyncio.run(fill(store, {"a/b": data})))
        assert (done.fetched, done.failed) == (1, {}) and tree(tmp_path / "to") == {"a/b": data}
    (tmp_path / "to/a/b").write_bytes(b"edited")
    done = bring(store, tmp_path / "to", asyncio.run(fill(store, {"a/b": b"4"})))
    assert list(done.failed) == ["a/b"] and tree(tmp_path / "to") == {"a/b": b"edited"}
    (tmp_path / "to/a/b").write_bytes(b"22")
    assert bring(store, tmp_path / "to", asyncio.run(fill(store, {"a/b": b"5"}))).fetched == 1, "its own bytes again"


def test_a_file_that_was_there_with_the_right_bytes_stays_the_users(tmp_path: Path) -> None:
    store = Reluctant()
    (tmp_path / "a").write_bytes(b"same")
    assert bring(store, tmp_path, asyncio.run(fill(store, {"a": b"same"}))).kept == 1
    assert list(bring(store, tmp_path, asyncio.run(fill(store, {"a": b"other"}))).failed) == ["a"]


def test_a_manifest_that_is_torn_or_a_link_harms_nothing(tmp_path: Path) -> None:
    store = Reluctant()
    files = asyncio.run(fill(store, {"a": b"1"}))
    bring(store, tmp_path, files)
    with (tmp_path / FETCHED_MANIFEST).open("ab") as manifest:
        manifest.write(b'\n["torn\xff')
    assert bring(store, tmp_path, asyncio.run(fill(store, {"a": b"2", "b": b"2"}))).fetched == 2
    assert bring(store, tmp_path, asyncio.run(fill(store, {"a": b"3", "b": b"3"}))).fetched == 2
    (tmp_path / "target").touch()
    (tmp_path / FETCHED_MANIFEST).unlink()
    (tmp_path / FETCHED_MANIFEST).symlink_to("target")
    with pytest.raises(OSError, match="symbolic"):
        bring(store, tmp_path, asyncio.run(fill(store, {"c": b"1"})))
    assert (tmp_path / "target").read_bytes() == b""


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", "a/.git/hooks/post-checkout", ".monkey/store/format", ".ssh/authorized_keys", ".git"),
        *(".GIT/config", "x/.Git", ".ssH/rc", ".g\u200cit/config", ".\uff47it/config"),
        *(FETCHED, f"a/{FETCHED_MANIFEST}", FETCHED_MANIFEST.upper()),
    ],
)
@pytest.mark.parametrize("force", [False, True])
def test_names_that_git_ssh_and_monkey_obey_are_never_written(tmp_path: Path, path: str, force: bool) -> None:
    store = Reluctant()
    done = bring(store, tmp_path / "to", asyncio.run(fill(store, {path: b"1", "fine": b"1"})), force=force)
    assert list(done.failed) == [path] and tree(tmp_path / "to") == {"fine": b"1"}


def test_a_link_into_a_protected_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "plots").symlink_to(".git/hooks")
    store = Reluctant()
    done = bring(store, tmp_path, asyncio.run(fill(store, {"plots/post-checkout": b"1"})), force=True)
    assert list(done.failed) == ["plots/post-checkout"] and not list((tmp_path / ".git/hooks").iterdir())


@pytest.mark.parametrize("where", [".git/hooks", "home/.ssh", ".monkey"])
def test_a_protected_directory_cannot_be_asked_for(tmp_path: Path, where: str) -> None:
    with pytest.raises(MonkeyError, match="writes nothing into"):
        FetchDirectory(tmp_path / where, force=True)
    assert not (tmp_path / where).exists()


def test_a_file_in_the_place_of_a_directory_is_an_obstacle_and_the_others_come(tmp_path: Path) -> None:
    store = Reluctant()
    (tmp_path / "a").write_bytes(b"file")
    (tmp_path / "d").mkdir()
    done = bring(store, tmp_path, asyncio.run(fill(store, {"a/b": b"1", "d": b"1", "c": b"1"})), force=True)
    assert set(done.failed) == {"a/b", "d"} and tree(tmp_path) == {"a": b"file", "c": b"1"}
