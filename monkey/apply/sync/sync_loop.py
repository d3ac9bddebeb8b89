"""The loop of a sync: one round each interval, until it is asked to end."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from monkey.apply.sync.beat_writer import BeatWriter
from monkey.apply.sync.sync_clone import SyncClone, check_branch_name
from monkey.apply.sync.sync_directory import SyncDirectory
from monkey.apply.sync.sync_order import SyncOrder, name_repository
from monkey.apply.sync.sync_previews import PreviewRounds
from monkey.apply.sync.sync_rounds import PostNews, SyncRounds
from monkey.fleet.agent_state import make_host_name
from monkey.forge.open_forge import MONKEY_TOKEN
from monkey.protocol.status.sync_beat import SyncBeat


@dataclass
class _Signals:
    """SIGINT and SIGTERM: at rest they end the sync at once, at work before the next sweep; the second one always."""

    resting: bool = False
    asked: bool = False

    def handle(self, *_: object) -> None:
        again, self.asked = self.asked, True
        if again or self.resting:
            raise KeyboardInterrupt

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Let a signal interrupt what is done here."""
        self.resting = True
        try:
            if self.asked:  # it came just before
                raise KeyboardInterrupt
            yield
        finally:
            self.resting = False


def run_sync(order: SyncOrder, say: Callable[[str], None], post: PostNews | None = None) -> int:
    """Follow the branch until a signal comes, or look once. Returns the exit code: of one look, 1 if all is not well.

    `post`: posts results at the forge. Raises MonkeyError where it cannot begin: the branch's name is none, or the
    state directory is in use.
    """
    check_branch_name(order.branch)
    directory = SyncDirectory(order.directory, name_repository(order.remote))
    directory.open()
    try:
        return _run(order, directory, say, post)
    finally:
        directory.close()


def _run(order: SyncOrder, directory: SyncDirectory, say: Callable[[str], None], post: PostNews | None) -> int:
    gc.enable()  # commands that end soon do without
    signals, writer = _Signals(), BeatWriter(say)
    host = make_host_name()
    beat = SyncBeat(order.shown, order.branch, host, order.interval, began=time.time())
    # Two syncs of one branch on one host have directories of their own: each is the one writer of its beat.
    name = f"{host[:80]}.{sha256(str(order.directory).encode()).hexdigest()[:8]}"
    clone = SyncClone(directory, order.remote, order.branch, looks_at_all=order.previews)
    rounds = SyncRounds(order, clone, writer, name, say, beat, lambda: signals.asked, signals.rest)
    rounds.post = post
    if order.previews:
        token = os.environ.get(MONKEY_TOKEN, "").strip()
        rounds.previews = PreviewRounds(order, clone, token, say, rounds.stopping, rounds.resting)
    rounds.begin()
    before = {number: signal.signal(number, signals.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        writer.start()
        if not order.interval:
            return 0 if _look_once(rounds) else 1
        with suppress(KeyboardInterrupt):
            _loop(rounds, signals)
        say("stopped")
        writer.show(replace(rounds.beat, left=True))
        return 0
    finally:
        writer.stop()
        for number, handler in before.items():
            signal.signal(number, handler)


def _look_once(rounds: SyncRounds) -> bool:
    try:
        return rounds.run_round()
    finally:
        rounds.writer.show(replace(rounds.beat, left=True))


def _loop(rounds: SyncRounds, signals: _Signals) -> None:
    while not signals.asked:
        rounds.run_round()
        with signals.rest():
            time.sleep(rounds.order.interval)
