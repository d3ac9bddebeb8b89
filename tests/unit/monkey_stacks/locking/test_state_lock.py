"""The lock: one at a time, on one machine and over many, and the dead keep it no longer than they must."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path

import pytest

from monkey.errors import FleetError, StoreUnavailable
from monkey.protocol.liveness.lease import compute_beat_pause, compute_fence
from monkey.spec.job.lease_length import LEASE
from monkey.store.memory import MemoryState, MemoryStore
from monkey.store.open import open_store
from monkey.store.store_port import ListedObject
from monkey_stacks.locking.local_lock import MARK, LockDirectory
from monkey_stacks.locking.state_lock import LockHolders, StateLock
from tests.acceptance.shop import until
from tests.simulation.loop import VirtualLoop

KEYS = LockHolders("p", "lab")
#: Takes the lock, starts a marked process that holds the lock file too, and waits to be killed.
HOLDER = """
import asyncio, os, subprocess, sys, time
from monkey.store.open import open_store
from monkey_stacks.locking.state_lock import LockHolders, StateLock
async def main():
    lock = StateLock(await open_store(sys.argv[1]), LockHolders("p", "lab"))
    await lock.acquire(print)
    held, mark = lock.place.descriptors, {**os.environ, **lock.place.mark}
    child = subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL, pass_fds=held, env=mark)
    print(child.pid, flush=True)
    time.sleep(300)
asyncio.run(main())
"""


class Away(MemoryStore):
    """A store that stops answering when it is told so."""

    away = False

    async def put(self, key: str, data: bytes) -> None:
        if self.away:
            raise StoreUnavailable("no answer")
        await super().put(key, data)


class Virtual:
    """The clock of a virtual loop: what takes a lease takes no time, however busy the machine is."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return self.now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def virtually(story: Coroutine[None, None, None]) -> None:
    """Run it on a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(story)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "here"))


def test_it_is_taken_and_given_back_and_leaves_only_its_log() -> None:
    async def once() -> None:
        store, deadlines = MemoryStore(), list[float]()
        lock = StateLock(store, KEYS, deadlines.append)
        assert not lock.valid()
        assert not await lock.acquire(pytest.fail)
        assert lock.valid()
        assert deadlines
        await lock.release()
        assert not lock.valid()
        assert sorted(store.state.objects) == [f"{KEYS.lock}00000001", f"{KEYS.lock}00000002"]

    asyncio.run(once())


class Refusing(MemoryStore):
    """A store that takes heartbeats, and cannot be listed."""

    refuses = True

    async def list(self, prefix: str, after: str = "") -> list[ListedObject]:
        if self.refuses:
            raise StoreUnavailable("no answer")
        return await super().list(prefix, after)


def test_lock_that_could_not_be_taken_is_told_and_leaves_nothing() -> None:
    async def refused() -> None:
        store = Refusing()
        lock = StateLock(store, KEYS)
        with pytest.raises(StoreUnavailable):
            await lock.acquire(pytest.fail)
        assert not lock.valid() and not store.state.objects
        store.refuses = False
        other = StateLock(store, KEYS)
        assert not await other.acquire(pytest.fail), "nobody holds it here"
        await other.release()

    asyncio.run(refused())


def test_of_two_processes_here_the_second_waits_for_the_first() -> None:
    async def two() -> None:
        state, said = MemoryState(), list[str]()
        first, second = StateLock(MemoryStore(state), KEYS), StateLock(MemoryStore(state), KEYS)
        await first.acquire(pytest.fail)
        waiting = asyncio.ensure_future(second.acquire(said.append))
        while not said:  # noqa: ASYNC110 - it says so when it waits, and not before
            await asyncio.sleep(0.01)
        assert not waiting.done()
        await first.release()
        assert await waiting, "it was not told that somebody else was there meanwhile"
        assert said == [f"waiting for another process on this machine (process {os.getpid()})"]
        await second.release()

    asyncio.run(two())


def test_a_dead_one_on_another_machine_is_taken_over_when_its_beats_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dead() -> None:
        state, said, clock = MemoryState(), list[str](), Virtual()
        first = StateLock(MemoryStore(state), KEYS, clock=clock)
        await first.acquire(pytest.fail)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "there"))
        second = StateLock(MemoryStore(state), KEYS, clock=clock)
        waiting = asyncio.ensure_future(second.acquire(said.append))
        await clock.sleep(2 * LEASE)
        assert first.valid(), "a living one lost its lock"
        assert not waiting.done()
        assert first._beating is not None
        first._beating.cancel()
        began = clock.now()
        assert await waiting
        assert not first.valid(), "both hold it"
        assert clock.now() - began < 2 * LEASE
        assert "who changes the machines of lab now" in said[0]
        await second.release()
        await first.release()

    virtually(dead())


def test_who_is_out_of_touch_holds_nothing_before_another_may_take_it() -> None:
    async def cut_off() -> None:
        store, deadlines, clock = Away(), list[float](), Virtual()
        lock = StateLock(store, KEYS, deadlines.append, clock)
        await lock.acquire(pytest.fail)
        await clock.sleep(3 * compute_beat_pause(LEASE))
        assert lock.valid()
        assert len(deadlines) > 1, "the leash was never told that it may go on"
        store.away, told = True, len(deadlines)
        await clock.sleep(compute_fence(LEASE) + compute_beat_pause(LEASE))
        assert not lock.valid()
        assert len(deadlines) == told
        assert deadlines[-1] < clock.now(), "Pulumi would still run"
        await lock.release()

    assert compute_fence(LEASE) < LEASE
    virtually(cut_off())


def test_a_dead_one_here_is_not_waited_for_and_what_it_left_is_ended(tmp_path: Path) -> None:
    url = str(tmp_path / "store")

    async def take() -> float:
        store = await open_store(url)
        lock, began = StateLock(store, KEYS), time.monotonic()
        await lock.acquire(lambda said: None)
        await lock.release()
        return time.monotonic() - began

    asyncio.run(_begin(url))
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, url], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate(timeout=60)
    assert asyncio.run(take()) < LEASE / 2
    until(lambda: not Path(f"/proc/{child}").exists(), "what it left is ended")


def test_a_directory_that_cannot_be_written_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    place = LockDirectory(tmp_path / "file" / "below")
    with pytest.raises(FleetError, match="cannot be written") as raised:
        asyncio.run(place.enter(pytest.fail))
    assert "XDG_STATE_HOME" in (raised.value.hint or "")
    assert place.mark == {MARK: str(tmp_path / "file" / "below")}


async def _begin(url: str) -> None:
    await (await open_store(url, begin=True)).close()
