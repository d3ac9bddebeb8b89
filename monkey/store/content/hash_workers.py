"""Worker processes that hash and copy small files: threads would wait for each other, by the interpreter's lock."""

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
from monkey.processes.private_process import select_needed_variables
from monkey.store.content import hash_worker
from monkey.store.content.hash_worker import Request

#: Number of requests below which the start of processes costs more than it saves.
WORTH = 4

#: Number of workers that `begin` starts.
AT_FIRST = 2

#: Largest number of workers: more would only wait for the disk.
_MAX_WORKERS = 8

#: Bytes of a request that a worker's pipe holds unread, as many as a user may have; for more, the sender waits.
PIPE = 1 << 20

#: Number of objects from which on another process looks for them: for fewer, its start takes longer.
_AHEAD = 4000

#: Sends a request to a worker, and returns its answer.
Hand = Callable[[Request], Any]


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class HashWorkers:
    """The workers of a `with` block: they start when there is enough to do, and end with the block or this process."""

    def __init__(self) -> None:
        """Start no worker yet."""
        self._stack = contextlib.ExitStack()
        self._workers: list[HashWorker] = []
        #: The worker with the request of `begin`, until its answer is read.
        self._ahead: HashWorker | None = None
        #: Another thread may set this to end the work early.
        self.stop = threading.Event()

    def __enter__(self) -> HashWorkers:
        """Return the crew."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """End the workers; kill the one whose answer to `begin` was never read."""
        if self._ahead is not None:
            self._ahead.kill()
            self._ahead = None
        self._workers.clear()
        self._stack.close()

    def begin(self, request: Request) -> Callable[[], Any]:
        """Start workers before it is known whether there is enough to do; the first one gets this request.

        Returns a function that waits for its answer, to be called before any other work. Raises StoreUnavailable where
        the worker was killed, and so does the function.
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
        """Start workers until there are `count`."""
        while len(self._workers) < count:
            self._workers.append(self._stack.enter_context(HashWorker(hash_worker.HASHES)))

    def work(self, count: int, request: Callable[[int], Request], done: Callable[[int, Any], None]) -> None:
        """Send `count` requests to workers, in any order; `done(index, answer)` receives the answers one at a time.

        `request(index)` makes a request when it is sent. Both functions are called from any thread. Raises what they
        raise, and StoreUnavailable where a worker was killed.
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
    """A worker process that answers requests. It is no fork, which would copy threads' locks."""

    def __init__(self, *arguments: str) -> None:
        """Start the process with these arguments."""
        argv = [sys.executable, "-I", "-S", str(Path(hash_worker.__file__)), *arguments]
        env, pipe = select_needed_variables(os.environ), subprocess.PIPE
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=env, start_new_session=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        if sys.platform == "linux":  # who asks need not wait until it has started
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._requests, fcntl.F_SETPIPE_SZ, PIPE)

    def __enter__(self) -> HashWorker:
        """Return the worker."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """Let the worker answer its request, and wait for its end."""
        self._process.__exit__(kind, exc, at)

    def kill(self) -> None:
        """Kill the process, whatever it does."""
        self._process.kill()

    def ask(self, request: Request) -> None:
        """Send a request, one at a time. Raises StoreUnavailable where the process was ended."""
        with _ended():
            hash_worker.send_message(self._requests, request)

    def answer(self) -> Any:
        """Wait for the answer to the request, and return it. Raises StoreUnavailable where the process was ended."""
        with _ended():
            return hash_worker.receive_message(self._answers)

    def hand(self, request: Request) -> Any:
        """Send a request, and return its answer. Raises StoreUnavailable where the process was ended."""
        self.ask(request)
        return self.answer()


@contextlib.contextmanager
def prefetch_sizes(oids: Sequence[str], files: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Start to look for these objects below the directory `files`, in another process where they are many.

    Yields a function that waits for their sizes in bytes. It leaves out objects that cannot be looked at: a caller that
    misses one looks itself, and gets the error.
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
