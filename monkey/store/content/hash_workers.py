"""Processes that hash and copy small files: threads would wait for each other, one interpreter being one lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from monkey.errors import StoreUnavailable
from monkey.store.content import hash_worker
from monkey.store.content.hash_worker import Request

#: Below this many requests, starting processes costs more than it saves.
WORTH = 4

#: Workers that are started ahead.
AT_FIRST = 2

#: Most workers: from here on it is the disk that they wait for.
_MAX_WORKERS = 8

#: Bytes that a request may have before who asks waits until it is read: as much as a user's pipes may hold.
PIPE = 1 << 20

#: From so many objects on, another process looks for them: sooner it takes longer to start.
_AHEAD = 4000

#: Takes a request to a worker, and returns its answer.
Hand = Callable[[Request], Any]


def count_processors() -> int:
    """Return how many processors we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class HashWorkers:
    """Workers that are started when there is enough to do, and end with the `with` block, or with us."""

    def __init__(self) -> None:
        """Start no worker yet."""
        self._stack = contextlib.ExitStack()
        self._workers: list[HashWorker] = []
        #: Works on what `begin` asked for, and nobody waited for yet.
        self._ahead: HashWorker | None = None
        #: Set from another thread, ends the work early.
        self.stop = threading.Event()

    def __enter__(self) -> HashWorkers:
        """Return the crew."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """Send everybody home; what was started, and nobody waited for, is not worth waiting for."""
        if self._ahead is not None:
            self._ahead.kill()
            self._ahead = None
        self._workers.clear()
        self._stack.close()

    def begin(self, request: Request) -> Callable[[], Any]:
        """Start workers before it is known whether there is enough to do; the first begins with this request.

        Returns what waits for its answer, which is to be asked before any other work. Raises StoreUnavailable where the
        worker was killed, and so does what is returned.
        """
        worker = self._ahead = self._stack.enter_context(HashWorker())
        worker.ask(request)
        self._workers.append(worker)
        self._start(min(count_processors(), AT_FIRST))

        def wait() -> Any:
            answer, self._ahead = worker.answer(), None
            return answer

        return wait

    def _start(self, count: int) -> None:
        """Have so many workers."""
        while len(self._workers) < count:
            self._workers.append(self._stack.enter_context(HashWorker(hash_worker.HASHES)))

    def work(self, count: int, request: Callable[[int], Request], done: Callable[[int, Any], None]) -> None:
        """Have `count` requests answered, in any order; `done(index, answer)` receives each, one at a time.

        Both are called from any thread; each request is made when it is sent. Raises what they raise, and
        StoreUnavailable where a worker was killed.
        """
        queue, lock, wrong = iter(range(count)), threading.Lock(), list[BaseException]()

        def pull(hand: Hand) -> None:
            try:
                while not self.stop.is_set() and not wrong:
                    with lock:
                        at = next(queue, None)
                    if at is None:
                        return
                    answer = hand(request(at))
                    with lock:
                        done(at, answer)
            except BaseException as exc:
                wrong.append(exc)

        self._spread(pull, count)
        if wrong:
            raise wrong[0]

    def _spread(self, pull: Callable[[Hand], None], count: int) -> None:
        if count < WORTH:
            pull(hash_worker.answer_request)
            return
        self._start(min(count_processors(), _MAX_WORKERS))
        threads = [threading.Thread(target=pull, args=(worker.hand,), name="monkey-crew") for worker in self._workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class HashWorker:
    """A process that answers requests: of its own rather than a fork, which would copy threads' locks."""

    def __init__(self, *arguments: str) -> None:
        """Start it."""
        argv = [sys.executable, "-I", "-S", str(Path(hash_worker.__file__)), *arguments]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        with contextlib.suppress(OSError, AttributeError):  # Linux: who asks need not wait until it has started
            fcntl.fcntl(self._requests, fcntl.F_SETPIPE_SZ, PIPE)

    def __enter__(self) -> HashWorker:
        """Return the worker."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """Let it answer what it was asked, and wait for its end."""
        self._process.__exit__(kind, exc, at)

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()

    def ask(self, request: Request) -> None:
        """Have it begin; one request at a time. Raises StoreUnavailable where it was ended."""
        with _ended():
            hash_worker.send_message(self._requests, request)

    def answer(self) -> Any:
        """Wait for the answer to what was asked. Raises StoreUnavailable where it was ended."""
        with _ended():
            return hash_worker.receive_message(self._answers)

    def hand(self, request: Request) -> Any:
        """Ask, and wait for the answer."""
        self.ask(request)
        return self.answer()


@contextlib.contextmanager
def sizes_ahead(oids: Sequence[str], files: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Begin to look for these objects below the directory `files`, in another process where they are many.

    Gives what waits for their sizes. What cannot be looked at is left out: whoever misses it looks himself, and hears
    why.
    """
    request: Request = ("sizes", list(oids), "", files)
    with contextlib.ExitStack() as stack:
        wait: Callable[[], Any] = partial(hash_worker.answer_request, request)
        if len(oids) >= _AHEAD:
            worker = stack.enter_context(HashWorker())
            worker.ask(request)
            wait = worker.answer
        yield lambda: {oid: size for oid, size in zip(oids, wait(), strict=True) if size >= 0}


@contextlib.contextmanager
def _ended() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError, ValueError) as exc:
        raise StoreUnavailable("a process that copies files was ended", hint="try again") from exc
