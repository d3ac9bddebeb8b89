"""`monkey logs -f` from another machine, which has nothing in common with the first but the store."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from monkey.protocol.liveness.lease import compute_beat_pause
from monkey.spec.job.lease_length import LEASE
from tests import services
from tests.acceptance.shop import MONKEY, PATIENCE, Shop, until
from tests.bucket import FakeBucket
from tests.trusting import trust

pytestmark = pytest.mark.slow

#: Seconds in which a line must be there, once somebody follows.
SOON = 2.0
#: Says what time it is (the machine's, the same for all processes), ten times a second.
TALK = (
    "import os, sys, time\n"
    "for i in range(int(sys.argv[1])):\n"
    "    print('at', os.environ['MONKEY_ATTEMPT'], i, time.monotonic(), flush=True)\n"
    "    time.sleep(0.1)\n"
)


class Desk:
    """Another machine: a project file that names the store, and no state, cache or home in common."""

    def __init__(self, shop: Shop, base: Path, store_url: str = "") -> None:
        self.root = base / "elsewhere"
        self.root.mkdir()
        at = store_url or f"{shop.root}/.monkey/store"
        (self.root / "monkey.yaml").write_text(f"project: shop\nstore: {at}\n")
        names = ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
        self.env = {**shop.env, **{name: f"{base}/elsewhere-{name.lower()}" for name in names}}

    def follow(self, *what: str) -> Following:
        return Following([*MONKEY, "logs", *what], self)


class Pulse:
    """Notes when the machine let nobody work: what came late by that is not our lateness."""

    def __init__(self) -> None:
        self.still: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat)
        self._thread.start()

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.05):
            now = time.monotonic()
            self.still += [(last, now)] if now - last > 0.2 else []
            last = now

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def between(self, begin: float, end: float) -> float:
        """Return the seconds of standing still between two moments."""
        return sum(max(0.0, min(end, to) - max(begin, since)) for since, to in self.still)


class Following:
    """A `monkey logs` that runs, and when each line of it came."""

    def __init__(self, command: list[str], desk: Desk) -> None:
        self.began = time.monotonic()
        self.lines: list[tuple[float, str]] = []
        self.process = subprocess.Popen(
            command, cwd=desk.root, env=desk.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.pulse = Pulse()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append((time.monotonic(), line))

    def end(self) -> None:
        """Wait until it ends by itself."""
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self._reader.join()
            self.pulse.end()

    def said(self) -> list[tuple[float, str, int, float]]:
        """Return (when it came, the job, the attempt, when it was said) of each line."""
        found = []
        for came, line in self.lines:
            front, at, rest = line.rpartition("at ")
            if at:
                attempt, _, said = rest.split()
                found.append((came, front, int(attempt), float(said)))
        return found

    def late(self) -> list[float]:
        """Seconds that each line took that was said while somebody followed (after the agent's first look at that)."""
        lines = [(said, came) for came, _, _, said in self.said() if said > self.began + SOON]
        return sorted(came - said - self.pulse.between(said, came) for said, came in lines)


def soon(late: list[float]) -> bool:
    """Did nine of ten lines come in time? A process may have to wait until a busy machine has time for it."""
    return late[len(late) * 9 // 10] < SOON


def test_every_line_of_several_jobs_is_there_within_two_seconds(shop: Shop, tmp_path: Path) -> None:
    (shop.root / "talk.py").write_text(TALK)
    shop.spec("command: [python3, talk.py, '90']\nparameters: {i: [0, 1]}\noutputs: []\nresources: {cpus: 0.1}\n")
    shop.run("apply", "--detach")
    until(lambda: shop.processes("talk.py"), "the jobs talk")
    following = Desk(shop, tmp_path).follow("sweep", "-f")
    following.end()
    late = following.late()
    assert len(late) > 50, "hardly anything was said while it was followed"
    assert soon(late), f"the slowest of {len(late)} lines took {late[-10:]} s"
    jobs = {job for _, job, _, _ in following.said()}
    assert len(jobs) == 2 and len(following.said()) == 180, "each line once, behind its job"


def test_through_a_bucket_too_and_status_knows_soon(shop: Shop, tmp_path: Path, bucket: FakeBucket) -> None:
    """There an agent looks every ten seconds, for that costs money; it hears the bell of whoever begins to follow."""
    shop.env.update(services.KEYS)
    trust(bucket.endpoint, env=shop.env)
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {bucket.url()}\n")
    (shop.root / "talk.py").write_text(TALK)
    shop.spec("command: [python3, talk.py, '150']\nparameters: {i: [0, 1]}\noutputs: []\nresources: {cpus: 0.1}\n")
    shop.run("apply", "--detach")
    until(lambda: len(shop.processes("talk.py")) == 2, "the jobs talk")
    began = time.monotonic()
    until(lambda: shop.states().get("running"), "the store says so")
    assert time.monotonic() - began < compute_beat_pause(LEASE) / 2, "it was said with the next regular heartbeat"
    following = Desk(shop, tmp_path, bucket.url()).follow("sweep", "-f")
    following.end()
    late = following.late()
    assert len(late) > 50, "hardly anything was said while it was followed"
    assert soon(late), f"the slowest of {len(late)} lines took {late[-10:]} s"
    assert len(following.said()) == 300, "each line once"


def test_following_goes_on_with_the_next_agent_s_attempt(shop: Shop, tmp_path: Path) -> None:
    (shop.root / "talk.py").write_text(TALK)
    shop.spec("command: [python3, talk.py, '60']\nparameters: {i: [0]}\noutputs: []\n")
    shop.run("apply", "--detach")
    following = Desk(shop, tmp_path).follow("sweep", "-f")
    until(lambda: following.said(), "something is said")
    (agent,) = shop.agents
    os.kill(agent, signal.SIGTERM)
    until(lambda: not shop.agents, "the agent leaves")
    shop.run("apply", "--detach")
    following.end()
    assert {attempt for _, _, attempt, _ in following.said()} == {1, 2}
    assert [said for _, _, attempt, said in following.said() if attempt == 2] == sorted(
        said for _, _, attempt, said in following.said() if attempt == 2
    )
    assert sum(attempt == 2 for _, _, attempt, _ in following.said()) == 60
    assert soon(following.late())


def test_a_large_log_comes_byte_for_byte(shop: Shop, tmp_path: Path) -> None:
    text = "import sys\nfor i in range(400_000):\n    print(i, 'x' * 70)\n"
    (shop.root / "much.py").write_text(text)
    shop.spec("command: [python3, -O, much.py]\nparameters: {i: [0]}\noutputs: []\n")
    shop.run("apply", "--detach")
    done = subprocess.run(
        [*MONKEY, "logs", "-f", "sweep"], cwd=Desk(shop, tmp_path).root, env=shop.env, capture_output=True, timeout=120
    )
    expected = "".join(f"{i} {'x' * 70}\n" for i in range(400_000)).encode()
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(expected).digest(), len(done.stdout)
