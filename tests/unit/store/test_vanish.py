"""A store that goes away, is full, or may not be written: reported, nothing begun anew, nothing lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import StoreError, StoreMissing
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.loops import Run

WORKER = Path(__file__).with_name("worker.py")


def everything(store: Store, file: Path) -> list[Callable[[], Any]]:
    """Return one of each operation, on keys old and new."""
    return [
        lambda: store.create("a/2", b"x"),
        lambda: store.create("a/3", b"x", durable=False),
        lambda: store.create("new/1", b"x"),
        lambda: store.create("new/2", b"x", durable=False),
        lambda: store.create("top", b"x", durable=False),
        lambda: store.put("a/beat", b"x"),
        lambda: store.put("new/beat", b"x"),
        lambda: store.get("a/1"),
        lambda: store.get("none"),
        lambda: store.list(""),
        lambda: store.list("a/"),
        lambda: store.delete("a/1"),
        lambda: store.put_file("a/file", file),
        lambda: store.get_file("a/1", file.with_name("copy")),
    ]


@pytest.mark.parametrize("instead", ["nothing", "empty directory", "file", "another store", "same directories"])
def test_a_store_that_is_renamed_is_missed_and_comes_back(
    store: Store, root: Path, run: Run, tmp_path: Path, instead: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    run(store.create("a/1", b"x"))
    away = root.rename(tmp_path / "away")
    if instead == "another store":
        run(run(open_store(str(root), begin=True)).close())
    elif instead == "file":
        root.write_bytes(b"")
    elif instead != "nothing":
        (root / "tmp" if instead == "same directories" else root).mkdir(parents=True)
        if instead == "same directories":
            (root / "a").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for n, operation in enumerate(everything(store, file)):
        with pytest.raises(StoreMissing) as caught:
            run(operation())
        assert str(root) in caught.value.message, n
        assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before
    shutil.rmtree(root, ignore_errors=True)
    root.unlink(missing_ok=True)
    away.rename(root)
    for operation in everything(store, file)[:7]:
        run(operation())
    assert run(store.get("a/1")) == b"x"
    assert len(run(store.list("new/"))) == 3


def test_a_store_that_was_moved_is_told_from_one_whose_disk_is_away(tmp_path: Path, run: Run) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs two file systems")
    disk = Path(tempfile.mkdtemp(dir=memory))
    try:
        (tmp_path / "disk").symlink_to(disk)
        for root, hide in ((tmp_path / "a/b", tmp_path / "a"), (tmp_path / "disk/store", tmp_path / "disk")):
            root.parent.mkdir(exist_ok=True)
            store = run(open_store(str(root), begin=True))
            run(store.put("beat", b"x"))
            away = hide.rename(tmp_path / "elsewhere")
            for _ in range(2):
                with pytest.raises(StoreMissing) as caught:
                    run(store.list(""))
                assert caught.value.removed == (hide.name == "a")
                hide.mkdir(exist_ok=True)  # an empty mount point
            hide.rmdir()
            away.rename(hide)
            assert run(store.get("beat")) == b"x"
            run(store.close())
    finally:
        shutil.rmtree(disk)


@contextlib.contextmanager
def vanishing(root: Path, away: Path) -> Iterator[list[str]]:
    """Rename a store away again and again, an empty directory in its stead; yields the names that appear in that."""
    strangers: list[str] = []
    stop = threading.Event()

    def shake() -> None:
        while not stop.is_set():
            root.rename(away)
            root.mkdir()
            time.sleep(0.002)
            strangers.extend(os.listdir(root))  # noqa: PTH208
            root.rmdir()
            away.rename(root)
            time.sleep(0.004)

    shaker = threading.Thread(target=shake)
    shaker.start()
    try:
        yield strangers
    finally:
        stop.set()
        shaker.join()


async def created_at_last(store: Store, key: str, *, durable: bool) -> list[type]:
    """Create a key, however often that takes; returns what was raised meanwhile."""
    missed: list[type] = []
    deadline, in_doubt = time.monotonic() + 60, False
    while True:
        try:
            assert await store.create(key, b"x", durable=durable) or in_doubt, key
            return missed
        except StoreError as error:
            in_doubt |= not isinstance(error, StoreMissing)
            missed.append(type(error))
            assert time.monotonic() < deadline
            await asyncio.sleep(0.001)


def test_a_store_that_comes_and_goes_during_work_loses_nothing(
    store: Store, root: Path, run: Run, tmp_path: Path
) -> None:
    """Renamed away again and again, with an empty directory in its stead, while both kinds of creates go on."""
    missed: list[type] = []
    written: list[str] = []

    async def work(worker: int) -> None:
        for n in range(60):
            key = f"w{worker}/{n}/1"
            missed.extend(await created_at_last(store, key, durable=n % 3 == 0))
            written.append(key)

    async def all_work() -> None:
        await asyncio.gather(*(work(n) for n in range(4)))

    with vanishing(root, tmp_path / "away") as strangers:
        run(all_work())
    assert strangers == []
    assert StoreMissing in missed, "it never vanished: this test saw nothing"
    assert {item.key for item in run(store.list("w"))} == set(written)
    assert len(written) == 240


def test_a_vanished_store_holds_nothing_open(store: Store, root: Path, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 300_000)
    run(store.put_file("a/f", file))
    run(store.create("a/1", b"x"))
    run(store.list(""))
    held = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]  # noqa: PTH115
    assert not [path for path in held if path.startswith(str(root))]


def test_a_full_disk_is_refused_and_nothing_is_lost(require: Callable[[str], str], tmp_path: Path) -> None:
    require("mount")
    done = _apart(f"mount -t tmpfs -o size=512k none {tmp_path}", "full", tmp_path / "store")
    assert done == "well\n"


def test_an_unmounted_store_is_missed_and_comes_back(require: Callable[[str], str], tmp_path: Path) -> None:
    require("mount")
    mount, elsewhere = tmp_path / "mount", tmp_path / "mount-elsewhere"
    mount.mkdir()
    elsewhere.mkdir()
    done = _apart(f"mount -t tmpfs none {mount}", "unmount", mount / "store")
    assert done == "well\n"


def _apart(mount: str, story: str, place: Path) -> str:
    """Run a story of worker.py in a mount namespace of its own; returns what it says."""
    script = f'mount --make-rprivate / && {mount} && exec "$@"'
    return _output(
        [
            "unshare",
            "--mount",
            "--map-root-user",
            "sh",
            "-c",
            script,
            "sh",
            sys.executable,
            str(WORKER),
            story,
            str(place),
        ]
    )


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a directory that every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="monkey-test-"))
    path.chmod(0o755)
    yield path
    for directory in [path, *path.rglob("*")]:
        if directory.is_dir():
            directory.chmod(0o755)
    shutil.rmtree(path)


def test_an_unwritable_store_is_read_and_says_what_to_do(require: Callable[[str], str], public: Path, run: Run) -> None:
    require("unprivileged")
    store = run(open_store(str(public / "store"), begin=True))
    run(store.create("a/1", b"x"))
    run(store.close())
    for directory in [public, *public.rglob("*")]:
        directory.chmod(0o555 if directory.is_dir() else 0o444)
    command = [sys.executable, str(WORKER), "unwritable", str(public / "store")]
    if os.geteuid() == 0:
        # Another user, who may still read the Python that root installed for itself.
        reading = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *reading, *command]
    assert _output(command) == "well\n"
