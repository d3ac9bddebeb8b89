"""A store on an SSH host whose connections are cut: what is said was done, and nothing is done by halves."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.errors import StoreUnavailable
from monkey.store.create import Lost, Won, create_object
from monkey.store.sftp.store import SftpStore
from tests.conformance.ssh.patience import PATIENCE, patiently
from tests.loops import Run
from tests.sshd import Sshd


@pytest.mark.slow
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
        tries = (patiently(lambda side=side, data=data: create_object(side, key, data)) for side, data in sides)
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
