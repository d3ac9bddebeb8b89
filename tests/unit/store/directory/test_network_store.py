"""A store on a network mount: what a client's cache holds as missing, a rename whose answer was lost, a silent server.

The real mounts are in tests/nfs. Here, an audit hook plays the client: a file appears once its directory is opened.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import KeyMissing, StoreMissing
from monkey.store.directory.answer_watch import AnswerWatch, is_signal_pending
from monkey.store.directory.network_store import NetworkStore
from monkey.store.directory.publish import open_aside, publish_aside, write_aside
from monkey.store.directory.root import DirectoryRoot
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.loops import Run

#: Directory to what happens at its next opening. An audit hook stays for as long as the process.
OPENED: dict[str, Callable[[], None]] = {}


def _see(event: str, arguments: tuple[Any, ...]) -> None:
    if OPENED and event == "open" and isinstance(arguments[0], str) and (then := OPENED.pop(arguments[0], None)):
        then()


@pytest.fixture(scope="module", autouse=True)
def hook() -> Iterator[None]:
    sys.addaudithook(_see)
    yield
    OPENED.clear()


@pytest.fixture
def shared(store: Store, root: Path, run: Run) -> Iterator[NetworkStore]:
    """Return the store as a client sees it to which it is on a network mount."""
    opened = NetworkStore(root, store.id, AnswerWatch(str(root), "NFS mount, server filer"))
    yield opened
    run(opened.close())


def test_missing_is_said_after_the_directory_was_opened(shared: NetworkStore, root: Path, run: Run) -> None:
    (root / "jobs/a").mkdir(parents=True)
    OPENED[f"{root}/jobs/a"] = lambda: (root / "jobs/a/1").write_bytes(b"claim") and None
    assert run(shared.get("jobs/a/1")) == b"claim"
    with pytest.raises(KeyMissing):
        run(shared.get("jobs/a/2"))


def test_directories_above_are_opened_where_they_seem_missing(shared: NetworkStore, root: Path, run: Run) -> None:
    def appear() -> None:
        (root / "jobs/a/out").mkdir(parents=True)
        (root / "jobs/a/out/log").write_bytes(b"line")

    OPENED[f"{root}"] = appear
    assert run(shared.get("jobs/a/out/log")) == b"line"


def test_listing_opens_what_seems_missing(shared: NetworkStore, root: Path, run: Run) -> None:
    def appear() -> None:
        (root / "jobs/a").mkdir(parents=True)
        (root / "jobs/a/1").write_bytes(b"claim")

    OPENED[f"{root}"] = appear
    assert [item.key for item in run(shared.list("jobs/a/"))] == ["jobs/a/1"]
    assert run(shared.list("jobs/b/")) == []


def test_file_that_seems_missing_is_fetched(shared: NetworkStore, root: Path, run: Run, tmp_path: Path) -> None:
    (root / "out").mkdir()
    OPENED[f"{root}/out"] = lambda: (root / "out/model").write_bytes(b"bytes") and None
    run(shared.get_file("out/model", tmp_path / "model"))
    assert (tmp_path / "model").read_bytes() == b"bytes"
    with pytest.raises(KeyMissing):
        run(shared.get_file("out/other", tmp_path / "other"))


def test_newest_bytes_are_asked_for_by_a_change_of_the_directory(shared: NetworkStore, root: Path, run: Run) -> None:
    run(shared.put("agents/a/beat", b"1"))
    before = (root / "agents/a").stat()
    assert run(shared.get_newest("agents/a/beat")) == b"1"
    assert (root / "agents/a").stat().st_mtime_ns > before.st_mtime_ns
    assert [path.name for path in (root / "agents/a").iterdir()] == ["beat"], "nothing is left"
    with pytest.raises(KeyMissing):
        run(shared.get_newest("agents/b/beat"))


def test_nothing_above_a_store_that_is_gone_is_opened(shared: NetworkStore, root: Path, run: Run) -> None:
    root.rename(root.with_name("away"))
    opened = list[str]()
    OPENED[str(root)] = lambda: opened.append("root")
    OPENED[str(root.parent)] = lambda: opened.append("its parent")
    with pytest.raises(StoreMissing):
        run(shared.list("jobs/a/"))
    assert opened == ["root"]


def test_rename_whose_answer_was_lost_is_done(store: Store, root: Path) -> None:
    with DirectoryRoot(str(root), store.id).enter() as inside, FileIO(open_aside(inside, "aside"), "r+") as file:
        file.write(b"ours")
        (root / "tmp/aside").rename(root / "lost")  # the server did it; the client repeats it, and hears "no such file"
        assert publish_aside(inside, "aside", "lost", replace=True, written=os.fstat(file.fileno()))


def test_file_that_is_replaced_is_published(store: Store, root: Path) -> None:
    (root / "key").write_bytes(b"before")
    with DirectoryRoot(str(root), store.id).enter() as inside:
        os.close(write_aside(inside, "aside", b"after"))
        assert publish_aside(inside, "aside", "key", replace=True) is True
    assert (root / "key").read_bytes() == b"after"


def test_rename_of_a_lost_file_is_no_success(store: Store, root: Path) -> None:
    with DirectoryRoot(str(root), store.id).enter() as inside, FileIO(open_aside(inside, "aside"), "r+") as file:
        (root / "lost").write_bytes(b"another's")
        (root / "tmp/aside").unlink()
        with pytest.raises(FileNotFoundError):
            publish_aside(inside, "aside", "lost", replace=True, written=os.fstat(file.fileno()))


def test_store_on_a_local_disk_is_not_watched(root: Path, run: Run) -> None:
    opened = run(open_store(str(root), begin=True))
    assert not isinstance(opened, NetworkStore)
    assert not {"monkey-ask", "monkey-watch"} & {one.name for one in threading.enumerate()}
    run(opened.close())


def test_silent_server_is_reported_once_and_again_when_it_answers() -> None:
    answer, lines, said = threading.Event(), list[str](), threading.Semaphore(0)

    def say(line: str) -> None:
        lines.append(line)
        said.release()

    watch = AnswerWatch("/mnt/s", "NFS mount, server filer", lambda _: answer.wait(), say, silent=0.1)
    watch.start()
    try:
        assert said.acquire(timeout=60)
        assert re.fullmatch(r"the store at /mnt/s has not answered for \d+ s \(NFS mount, server filer\)", lines[0])
        answer.set()
        assert said.acquire(timeout=60)
        assert lines[1:] == ["the store at /mnt/s answers again"]
    finally:
        answer.set()
        watch.close()


def test_signal_that_no_thread_takes_is_seen(tmp_path: Path) -> None:
    status = tmp_path / "status"
    for pending, blocked, waits in (("0", "0", False), ("2", "0", True), ("2", "2", False), ("4000", "0", False)):
        status.write_text(f"Name:\tx\nSigBlk:\t{blocked:>016}\nShdPnd:\t{pending:>016}\n")
        assert is_signal_pending(signal.SIGINT, status) is waits
    assert not is_signal_pending(signal.SIGINT, tmp_path / "none")
    assert not is_signal_pending(signal.SIGINT)
