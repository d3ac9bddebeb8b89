"""What is a directory's own: temps, group commits, and errors of the file system."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import KeyMissing, StoreForbidden, StoreMissing, StoreRefused, StoreUnavailable
from monkey.removal import remove_tree
from monkey.store.directory.commit import _MAX_BATCH
from monkey.store.directory.publish import STALE, publish_aside, write_aside
from monkey.store.directory.root import DirectoryRoot, translate_os_error
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.loops import Run
from tests.nested import nest


def test_nothing_stays_aside(store: Store, root: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 300_000)
    for durable in (True, False):
        for _ in range(2):
            run(store.create(f"a/{durable}", b"x", durable=durable))
    run(store.put("b", b"x"))
    run(store.put("b", b"y"))
    run(store.put_file("c/d", file))
    run(store.close())
    assert list((root / "tmp").iterdir()) == []


def test_files_cut_short_aside_do_no_harm(store: Store, root: Path, run: Run) -> None:
    """A loss of power leaves any number of bytes of a file that was being written."""
    whole = b'{"entry": "claim"}'
    for n in range(len(whole) + 1):
        (root / "tmp" / f"0123456789ab.{n}").write_bytes(whole[:n])
    assert [item.key for item in run(store.list(""))] == ["format"]
    assert run(store.create("jobs/a/1", whole))
    assert [item.key for item in run(store.list(""))] == ["format", "jobs/a/1"]


def test_stale_files_aside_are_removed_when_that_is_asked_and_by_no_write(store: Store, root: Path, run: Run) -> None:
    old, young = root / "tmp" / "dead.1", root / "tmp" / "alive.1"
    young.write_bytes(b"")
    old.write_bytes(b"x")
    dead, living = root / "tmp" / "dead.2" / "ab", root / "tmp" / "alive.2" / "ab"
    for directory in (dead, living):
        directory.mkdir(parents=True)
        (directory / "copy").write_bytes(b"x")
    now = (root / "tmp").stat().st_mtime
    os.utime(old, (now - STALE - 60, now - STALE - 60))
    os.utime(young, (now - STALE + 60, now - STALE + 60))
    for path in (dead / "copy", dead, dead.parent, living, living.parent):
        os.utime(path, (now - STALE - 60, now - STALE - 60))
    again = run(open_store(str(root)))
    run(again.create("k", b"x"))
    assert old.exists()
    run(again.remove_stale())
    run(again.close())
    assert not old.exists()
    assert young.exists()
    assert (living / "copy").exists()
    assert not dead.parent.exists()


def test_a_lost_tmp_is_made_again(store: Store, root: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    operations = [
        lambda: store.create("a", b"x", durable=False),
        lambda: store.create("b", b"x"),
        lambda: store.put("c", b"x"),
        lambda: store.put_file("d", file),
    ]
    for operation in operations:
        if (root / "tmp").exists():
            (root / "tmp").rmdir()
        run(operation())
    assert [item.key for item in run(store.list(""))] == ["a", "b", "c", "d", "format"]


def test_a_link_that_was_made_though_the_answer_says_exists_is_ours(store: Store, root: Path) -> None:
    """On NFS a repeated request meets its own work."""
    with DirectoryRoot(str(root), store.id).enter() as inside:
        os.close(write_aside(inside, "ours", b"ours"))
        os.link(root / "tmp/ours", root / "key")
        assert publish_aside(inside, "ours", "key", replace=False) is True
        os.close(write_aside(inside, "rival", b"theirs"))
        assert publish_aside(inside, "rival", "key", replace=False) is False


def test_a_key_below_a_key_is_refused(store: Store, run: Run) -> None:
    run(store.put("a/b", b"x"))
    for durable in (True, False):
        with pytest.raises(StoreRefused, match="a part of the key is an object"):
            run(store.create("a/b/c", b"x", durable=durable))
        with pytest.raises(StoreRefused, match="other keys lie below it"):
            run(store.create("a", b"x", durable=durable))
    with pytest.raises(StoreRefused):
        run(store.put("a", b"x"))
    run(store.delete("a/b/c"))
    with pytest.raises(StoreRefused):
        run(store.delete("a"))
    assert run(store.get("a/b")) == b"x"


def test_a_name_too_long_is_refused_and_harms_nobody_else_in_the_batch(store: Store, run: Run) -> None:
    async def batch() -> list[bool | BaseException]:
        keys = ["good/1", "bad/" + "x" * 300, "good/2"]
        return await asyncio.gather(*(store.create(key, b"x") for key in keys), return_exceptions=True)

    first, second, third = run(batch())
    assert (first, third) == (True, True)
    assert isinstance(second, StoreRefused)
    assert "too long" in second.message


def test_foreign_files_are_not_keys(store: Store, root: Path, run: Run) -> None:
    (root / "a").mkdir()
    (root / "a" / ".nfs0001").write_bytes(b"")
    (root / "a" / "link").symlink_to("/etc/passwd")
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "a" / "fifo")
    Path(os.fsdecode(os.fsencode(root) + b"/a/\xff")).write_bytes(b"")
    assert [item.key for item in run(store.list(""))] == ["format"]


def test_many_at_once_all_arrive(store: Store, run: Run) -> None:
    count = 3 * _MAX_BATCH + 7

    async def flood() -> list[bool]:
        return await asyncio.gather(*(store.create(f"jobs/{n}/1", str(n).encode()) for n in range(count)))

    assert run(flood()) == [True] * count
    assert len(run(store.list("jobs/"))) == count
    assert run(store.get(f"jobs/{count - 1}/1")) == str(count - 1).encode()


def test_a_write_nobody_waits_for_any_more_is_done_and_forgotten(store: Store, run: Run) -> None:
    async def give_up() -> None:
        task = asyncio.create_task(store.create("given/up", b"x"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.create("after", b"x")

    run(give_up())
    assert run(store.get("given/up")) == b"x"


def test_close_waits_for_what_was_submitted(store: Store, run: Run) -> None:
    before = set(threading.enumerate())

    async def close_at_once() -> list[bool]:
        tasks = [asyncio.create_task(store.create(f"k/{n}", b"x")) for n in range(20)]
        await asyncio.sleep(0)
        begun = {thread for thread in threading.enumerate() if thread.name == "monkey-commit"} - before
        await store.close()
        assert len(begun) == 1
        assert not begun & set(threading.enumerate())
        return await asyncio.gather(*tasks)

    assert run(close_at_once()) == [True] * 20


def test_the_store_outlives_an_event_loop(store: Store, run: Run) -> None:
    assert run(store.create("one", b"x"))
    assert asyncio.run(store.create("two", b"x"))
    assert run(store.create("three", b"x"))


def test_a_cancelled_upload_leaves_nothing(store: Store, root: Path, run: Run, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"x" * 30_000_000)

    async def give_up(operation: Any) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        task = asyncio.create_task(operation)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def aside() -> list[Path]:
        return [*(root / "tmp").iterdir(), *tmp_path.glob("*.part")]

    async def settle() -> None:
        # Of one thread: what was given up is over, and the file that it made may still be there.
        await asyncio.to_thread(int)
        deadline = time.monotonic() + 20
        while aside():
            assert time.monotonic() < deadline, "something was left aside"
            await asyncio.sleep(0.01)

    run(give_up(store.put_file("k", big)))
    run(settle())
    with pytest.raises(KeyMissing):
        run(store.get("k"))
    run(store.put_file("k", big))
    run(give_up(store.get_file("k", tmp_path / "copy")))
    run(settle())
    assert not (tmp_path / "copy").exists()


def test_many_keys_are_listed_quickly(store: Store, root: Path, run: Run) -> None:
    many = root / "many"
    many.mkdir()
    (many / "0").write_bytes(b"x")
    for n in range(1, 20_000):
        os.link(many / "0", many / str(n))
    began = time.process_time()
    items = run(store.list("many/"))
    assert len(items) == 20_000
    assert time.process_time() - began < 1.0  # 0.1 s here; ten times that means something quadratic
    assert run(store.list("many/", after="many/9998")) == items[-1:]


@pytest.mark.parametrize(
    ("number", "kind"),
    [("ENOSPC", StoreRefused), ("EDQUOT", StoreRefused)]
    + [(name, StoreForbidden) for name in ("EACCES", "EPERM", "EROFS")]
    + [(name, StoreUnavailable) for name in ("EIO", "ESTALE", "ETIMEDOUT", "EINTR", "EMFILE")],
)
def test_errors_are_translated(number: str, kind: type[Exception]) -> None:
    code = getattr(errno, number)
    error = translate_os_error(OSError(code, os.strerror(code)), "/the/root", "the/key")
    assert type(error) is kind
    assert "/the/root" in error.message
    assert "the/key" in error.message
    assert kind is StoreUnavailable or error.hint


def test_a_pipe_in_place_of_an_object_stops_nobody(store: Store, root: Path, run: Run, tmp_path: Path) -> None:
    run(store.create("jobs/a/1", b"x"))
    os.mkfifo(root / "jobs" / "a" / "2")
    found: list[bytes] = []

    def read() -> None:
        found.append(run(store.get("jobs/a/2")))
        run(store.get_file("jobs/a/2", tmp_path / "copy"))
        found.append((tmp_path / "copy").read_bytes())

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(10)
    waits = thread.is_alive()
    while thread.is_alive():  # who waits for a writer gets one
        os.close(os.open(root / "jobs" / "a" / "2", os.O_RDWR))
        thread.join(0.1)
    assert found == [b"", b""] and not waits


def test_directories_that_somebody_nested_too_deep_hinder_no_listing(store: Store, root: Path, run: Run) -> None:
    run(store.create("jobs/a/1", b"x"))
    nest(root / "jobs" / "b", 1_500)
    keys = [item.key for item in run(store.list("jobs/"))]
    assert len(keys) == 2 and keys[0] == "jobs/a/1"
    assert remove_tree(str(root / "jobs" / "b"))


def test_a_directory_in_place_of_an_object_costs_no_descriptor(store: Store, run: Run, tmp_path: Path) -> None:
    run(store.put("a/b", b"x"))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        with pytest.raises(KeyMissing):
            run(store.get_file("a", tmp_path / "file"))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_write_that_cannot_be_carried_out_ends_and_the_next_one_is_committed(
    store: Store, root: Path, run: Run
) -> None:
    async def spoil() -> None:
        data: Any = "text, which is a bug of its caller"
        async with asyncio.timeout(60):
            with pytest.raises(TypeError):
                await store.create("a/1", data)
            assert await store.create("a/1", b"x")

    run(spoil())
    assert list((root / "tmp").iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_file_that_cannot_be_read_leaves_nothing_aside(store: Store, root: Path, run: Run) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    with pytest.raises(StoreUnavailable, match="out/model"):
        run(store.put_file("out/model", Path("/proc/self/mem")))  # its first page is never mapped
    assert list((root / "tmp").iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    with pytest.raises(KeyMissing):
        run(store.get("out/model"))


def test_entry_is_durable_though_one_beside_it_is_gone(store: Store, run: Run) -> None:
    assert run(store.create("a/1", b"x", durable=False))
    run(store.delete("a/1"))
    assert run(store.create("a/2", b"x"))


def test_writing_leaves_no_file_open(store: Store, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")

    async def write(n: int) -> None:
        await store.create(f"a/{n}", b"x")
        await store.create(f"b/{n}", b"x", durable=False)
        await store.create(f"b/{n}", b"x", durable=False)
        await store.put("beat", b"x")
        await store.put_file("file", file)

    run(write(0))
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    for n in range(1, 4):
        run(write(n))
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


def test_object_that_cannot_be_read_is_no_missing_one(store: Store, root: Path, run: Run) -> None:
    run(store.create("a/1", b"x"))
    (root / "a/2").symlink_to("1")
    with pytest.raises(StoreRefused, match="a/2"):
        run(store.get("a/2"))


def test_deletion_in_a_store_that_is_gone_is_refused(store: Store, root: Path, run: Run) -> None:
    run(store.create("a/1", b"x"))
    run(store.delete("a/1"))
    run(store.delete("a/1"))
    (root / "format").unlink()
    with pytest.raises(StoreMissing):
        run(store.delete("a/1"))
