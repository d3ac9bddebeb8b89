"""A store on an SSH host whose connection is cut, whose host is away, whose network is silent, whose disk is full."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from monkey.errors import StoreRefused, StoreUnavailable
from monkey.store.create import Lost, Won, create
from monkey.store.open import open_store
from monkey.store.sftp.dial import Patience
from monkey.store.sftp.store import SftpStore
from monkey.store.sftp.target import parse
from tests.loops import Run
from tests.sshd import Sshd, serve

T = TypeVar("T")

#: Seconds within which enough must have happened.
PATIENCE = 90.0
#: Seconds: as `Patience`, longer, for hosts that answer as soon as a busy machine lets them.
LONG = Patience(connect=30.0, silence=30.0, keepalive=10.0, reconnect=60.0)
#: Seconds: as `Patience`, shorter, for hosts that will not answer.
SHORT = Patience(connect=4.0, silence=1.5, disk=3.0, keepalive=0.5, reconnect=4.0)


@pytest.fixture
def host(require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """Return a server of the test's own, to be ill-treated."""
    require("sshd")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with serve(tmp_path / "home") as server:
        monkeypatch.setenv("HOME", str(server.home))
        yield server


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer: how long a machine needs for a new connection depends on what else it does."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return await ask()
        except StoreUnavailable:
            assert time.monotonic() < deadline


@contextlib.contextmanager
def client(url: str, patience: Patience, run: Run) -> Iterator[SftpStore]:
    """Connect, for a while."""
    store = SftpStore(parse(url), patience)
    try:
        run(_patiently(store.connect))
        yield store
    finally:
        run(store.close())


@pytest.fixture
def url(host: Sshd, tmp_path: Path, run: Run) -> str:
    """Return the URL of a store that was just begun."""
    place = f"ssh://there{tmp_path}/s"
    run(run(open_store(place, begin=True)).close())
    return place


@pytest.fixture
def store(url: str, run: Run) -> Iterator[SftpStore]:
    """Return a client with much patience."""
    with client(url, LONG, run) as made:
        yield made


@pytest.fixture
def rival(url: str, run: Run) -> Iterator[SftpStore]:
    """Return another client of the same store."""
    with client(url, LONG, run) as made:
        yield made


@pytest.fixture
def hasty(url: str, run: Run) -> Iterator[SftpStore]:
    """Return a client with little patience."""
    with client(url, SHORT, run) as made:
        yield made


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
def cutting(host: Sshd, ripe: Callable[[], bool]) -> Iterator[list[int]]:
    """Cut all connections whenever it is time; yields how often they were."""
    stop, cuts = threading.Event(), [0]

    def work() -> None:
        while not stop.wait(0.01):
            if ripe():
                cuts[0] += bool(host.kill_sessions())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield cuts
    finally:
        stop.set()
        thread.join()


def enough(cuts: list[int], at_least: int) -> Iterator[int]:
    """Count on until there were so many cuts."""
    deadline = time.monotonic() + PATIENCE
    for n in itertools.count():
        if cuts[0] >= at_least:
            return
        assert time.monotonic() < deadline, f"{cuts[0]} cuts in {PATIENCE:.0f} s"
        yield n


@pytest.mark.slow
def test_under_cuts_every_create_has_one_winner(
    host: Sshd, store: SftpStore, rival: SftpStore, run: Run, tmp_path: Path
) -> None:
    place, dice, wanted = tmp_path / "s" / "race", random.Random(1), [3]

    def ripe() -> bool:
        there = sum(1 for _ in place.glob("*/*"))
        if there < wanted[0]:
            return False
        wanted[0] = there + dice.randrange(1, 15)
        return True

    async def race(key: str) -> list[Won | Lost]:
        sides = (store, b"ours"), (rival, b"theirs")
        tries = (_patiently(lambda side=side, data=data: create(side, key, data)) for side, data in sides)
        return list(await asyncio.gather(*tries))

    async def round_of(some: list[str]) -> dict[str, list[Won | Lost]]:
        return dict(zip(some, await asyncio.gather(*map(race, some)), strict=True))

    outcomes = {}
    with cutting(host, ripe) as cuts:
        for n in enough(cuts, 8):
            outcomes |= run(round_of([f"race/{i}/{n}" for i in range(20)]))
    for key, outcome in outcomes.items():
        found = (tmp_path / "s" / key).read_bytes()
        assert outcome == [Won() if found == data else Lost(found) for data in (b"ours", b"theirs")]


@pytest.mark.slow
def test_under_cuts_files_arrive_whole_or_not_at_all(host: Sshd, store: SftpStore, run: Run, tmp_path: Path) -> None:
    source, body = tmp_path / "source", os.urandom(20_000_000)
    source.write_bytes(body)

    async def send(key: str) -> bool:
        try:
            await store.put_file(key, source)
        except StoreUnavailable:
            return False
        return True

    sizes, left = [17_000_000, 1, 9_000_000, 1_000_000], set()

    def ripe() -> bool:
        """Has a file grown that was not left by an earlier cut?"""
        with contextlib.suppress(FileNotFoundError):  # renamed meanwhile
            half = {path: path.stat().st_size for path in (tmp_path / "s" / "tmp").iterdir() if path not in left}
            if sizes and max(half.values(), default=0) >= sizes[-1]:
                sizes.pop()
                left.update(half)
                return True
        return False

    with cutting(host, ripe) as cuts:
        for n in enough(cuts, 4):
            whole = run(send(f"files/{n % 4}"))
            path = tmp_path / "s" / "files" / str(n % 4)
            assert path.read_bytes() == body if whole or path.exists() else True
    run(store.put_file("files/0", source))
    run(store.get_file("files/0", tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == body


def _unavailable(run: Run, asked: list[Callable[[], Any]], within: float) -> list[str]:
    """Ask for all at once, each of which must be given up in time; returns what is said."""

    async def ask() -> list[Any]:
        async with asyncio.timeout(within):
            return await asyncio.gather(*(each() for each in asked), return_exceptions=True)

    answers = run(ask())
    assert [type(answer) for answer in answers] == [StoreUnavailable] * len(asked), answers
    return [str(answer) for answer in answers]


@pytest.mark.slow
def test_a_host_that_is_away_and_comes_back(host: Sshd, hasty: SftpStore, run: Run) -> None:
    assert run(_patiently(lambda: create(hasty, "a", b"x"))) == Won()
    host.stop()
    asked: list[Callable[[], Any]] = [
        lambda: hasty.get("a"),
        lambda: hasty.create("b", b"x"),
        lambda: hasty.put("beat", b"x"),
        lambda: hasty.list(""),
    ]
    assert all("refuses connections" in said for said in _unavailable(run, asked, within=25))
    back = threading.Timer(0.5, host.start)
    back.start()
    assert run(_patiently(lambda: hasty.get("a"))) == b"x"  # it need not be told
    back.join()


@pytest.mark.slow
def test_a_silent_network_is_given_up(host: Sshd, hasty: SftpStore, run: Run, tmp_path: Path) -> None:
    """The sessions are stopped, and so is whoever takes new connections: nothing answers, nothing is refused."""
    assert run(_patiently(lambda: create(hasty, "a", b"x"))) == Won()
    (tmp_path / "file").write_bytes(b"x" * 20_000_000)
    asked: list[Callable[[], Any]] = [
        lambda: hasty.get("a"),
        lambda: hasty.create("b", b"x"),
        lambda: hasty.put("beat", b"x"),
        lambda: hasty.put_file("f", tmp_path / "file"),
    ]
    for some in (asked, asked[-1:]):
        host.freeze(whole=True)
        _unavailable(run, some, within=40)
        host.thaw()
        assert run(_patiently(lambda: hasty.get("a"))) == b"x"
    run(_patiently(lambda: hasty.put_file("f", tmp_path / "file")))


def test_a_frozen_session_is_left_for_a_new_one(host: Sshd, hasty: SftpStore, run: Run) -> None:
    assert run(_patiently(lambda: create(hasty, "a", b"x"))) == Won()
    host.freeze()
    assert run(_patiently(lambda: hasty.get("a"))) == b"x"


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
