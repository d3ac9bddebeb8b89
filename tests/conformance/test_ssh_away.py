"""A store on an SSH host whose connection is cut, whose host is away, whose network is silent, whose disk is full."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import StoreRefused, StoreUnavailable
from monkey.store.create import Lost, Won, create
from monkey.store.open import open_store
from monkey.store.sftp.dial import Patience
from monkey.store.sftp.store import SftpStore
from monkey.store.sftp.target import parse
from tests.sshd import Sshd, serve

Run = Callable[[Any], Any]

#: Seconds: as `Patience`, shorter.
SHORT = Patience(connect=4.0, silence=1.5, disk=3.0, keepalive=0.5, reconnect=4.0)


@pytest.fixture
def host(require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """Return a server of the test's own, to be ill-treated."""
    require("sshd")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with serve(tmp_path / "home") as server:
        monkeypatch.setenv("HOME", str(server.home))
        yield server


@pytest.fixture
def store(host: Sshd, tmp_path: Path, run: Run) -> Iterator[SftpStore]:
    """Return a client with little patience."""
    url = f"ssh://there{tmp_path}/s"
    run(run(open_store(url, begin=True)).close())
    client = SftpStore(parse(url), SHORT)
    run(client.connect())
    yield client
    run(client.close())


def test_after_a_cut_the_next_call_connects_anew(host: Sshd, store: SftpStore, run: Run) -> None:
    for n in range(5):
        assert run(store.create(f"a/{n}", b"x"))
        assert host.kill_sessions() > 0
        assert run(store.get(f"a/{n}")) == b"x"
        host.kill_sessions()
        run(store.put("beat", b"x"))
        host.kill_sessions()
        assert len(run(store.list("a/"))) == n + 1
        host.kill_sessions()
    assert run(store.create("after", b"x"))


@contextlib.contextmanager
def cutting(host: Sshd, every: float) -> Iterator[list[int]]:
    """Cut all connections again and again; yields how many were cut."""
    stop, cuts = threading.Event(), [0]

    def work() -> None:
        while not stop.wait(every):
            cuts[0] += bool(host.kill_sessions())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield cuts
    finally:
        stop.set()
        thread.join()


async def _surely(store: SftpStore, key: str, data: bytes) -> Won | Lost:
    while True:
        with contextlib.suppress(StoreUnavailable):
            return await create(store, key, data)


@pytest.mark.slow
def test_under_cuts_every_create_has_one_winner(host: Sshd, store: SftpStore, run: Run, tmp_path: Path) -> None:
    rival = SftpStore(parse(store.url), SHORT)
    run(rival.connect())

    async def race() -> list[list[Won | Lost]]:
        keys = [f"race/{n % 5}/{n}" for n in range(160)]
        rounds = [keys[at : at + 20] for at in range(0, 160, 20)]
        outcomes = []
        for some in rounds:
            pairs = [(_surely(store, key, b"ours"), _surely(rival, key, b"theirs")) for key in some]
            outcomes += [list(await asyncio.gather(*pair)) for pair in pairs]
        return outcomes

    with cutting(host, 0.6) as cuts:
        outcomes = run(race())
    assert cuts[0] >= 3
    for n, outcome in enumerate(outcomes):
        found = (tmp_path / "s" / "race" / str(n % 5) / str(n)).read_bytes()
        assert outcome == [Won() if found == data else Lost(found) for data in (b"ours", b"theirs")]
    run(rival.close())


@pytest.mark.slow
def test_under_cuts_files_arrive_whole_or_not_at_all(host: Sshd, store: SftpStore, run: Run, tmp_path: Path) -> None:
    source, body = tmp_path / "source", os.urandom(20_000_000)
    source.write_bytes(body)

    async def send(n: int) -> bool:
        try:
            await store.put_file(f"files/{n}", source)
        except StoreUnavailable:
            return False
        return True

    sent = []
    with cutting(host, 0.5) as cuts:
        for n in range(8):
            sent.append(run(send(n)))
    assert cuts[0] >= 2
    for n, whole in enumerate(sent):
        path = tmp_path / "s" / "files" / str(n)
        assert path.read_bytes() == body if whole or path.exists() else True
    run(store.put_file("files/0", source))
    run(store.get_file("files/0", tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == body


def _unavailable(run: Run, ask: Callable[[], Any], within: float) -> str:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable) as caught:
        run(ask())
    assert time.monotonic() - began < within
    return str(caught.value)


@pytest.mark.slow
def test_a_host_that_is_away_and_comes_back(host: Sshd, store: SftpStore, run: Run) -> None:
    assert run(store.create("a", b"x"))
    host.stop()
    for ask in (
        lambda: store.get("a"),
        lambda: store.create("b", b"x"),
        lambda: store.put("beat", b"x"),
        lambda: store.list(""),
    ):
        assert "refuses connections" in _unavailable(run, ask, within=25)
    back = threading.Timer(0.5, host.start)
    back.start()
    assert run(store.get("a")) == b"x"  # it waits a little, and need not be told
    back.join()


@pytest.mark.slow
def test_a_silent_network_is_given_up(host: Sshd, store: SftpStore, run: Run, tmp_path: Path) -> None:
    """The sessions are stopped, and so is whoever takes new connections: nothing answers, nothing is refused."""
    assert run(store.create("a", b"x"))
    (tmp_path / "file").write_bytes(b"x" * 20_000_000)
    for ask in (
        lambda: store.get("a"),
        lambda: store.create("b", b"x"),
        lambda: store.put("beat", b"x"),
        lambda: store.put_file("f", tmp_path / "file"),
    ):
        host.freeze(whole=True)
        _unavailable(run, ask, within=40)
        host.thaw()
        assert run(store.get("a")) == b"x"
    run(store.put_file("f", tmp_path / "file"))


def test_a_frozen_session_is_left_for_a_new_one(host: Sshd, store: SftpStore, run: Run) -> None:
    assert run(store.create("a", b"x"))
    host.freeze()
    began = time.monotonic()
    assert run(store.get("a")) == b"x"
    assert time.monotonic() - began < 9  # not the ten of the silence that is usual


def test_cancelled_calls_leave_nothing_behind(host: Sshd, store: SftpStore, run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 2_000_000)

    async def cancel() -> None:
        for n in range(40):
            tasks = [
                asyncio.ensure_future(store.create(f"c/{n}", b"x")),
                asyncio.ensure_future(store.put(f"p/{n}", b"x")),
                asyncio.ensure_future(store.put_file(f"f/{n}", tmp_path / "file")),
                asyncio.ensure_future(store.get_file("format", tmp_path / "got")),
            ]
            await asyncio.sleep(0.001 * (n % 8))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run(cancel())
    assert run(store.create("after", b"x"))
    run(store.put_file("after2", tmp_path / "file"))
    run(store.close())
    assert list((tmp_path / "s" / "tmp").iterdir()) == []
    assert list(tmp_path.glob(".got*")) == []


@pytest.mark.parametrize(("option", "said"), [("size=256k", "no space left"), ("ro", "read-only")])
def test_a_full_and_a_read_only_disk(
    require: Callable[[str], str],
    host: Sshd,
    store: SftpStore,
    run: Run,
    tmp_path: Path,
    option: str,
    said: str,
) -> None:
    """The server alone sees the file system, in a namespace of its own."""
    require("mount")
    if os.geteuid() != 0:
        pytest.skip("sshd in a namespace needs root")
    host.stop()
    mount = 'mount -t tmpfs -o size=256k none "$1" && cp -r "$2/." "$1" && mount -o "remount,$3" "$1"'
    root = str(tmp_path / "s")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "format").write_bytes((tmp_path / "s" / "format").read_bytes())
    (copy / "tmp").mkdir()
    host.start(["unshare", "--mount", "sh", "-c", f'{mount} && shift 3 && exec "$@"', "sh", root, str(copy), option])
    (tmp_path / "file").write_bytes(b"x" * 2_000_000)
    for ask in (
        lambda: store.create("a", b"x" * 500_000),
        lambda: store.put("a", b"x" * 500_000),
        lambda: store.put_file("a", tmp_path / "file"),
    ):
        with pytest.raises(StoreRefused, match=said):
            run(ask())
    assert [item.key for item in run(store.list(""))] == ["format"]
