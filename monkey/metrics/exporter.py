"""The exporter sends points from an agent's spool to InfluxDB. It is a process that may be killed at any time.

It runs as `python -m monkey.metrics.exporter SPOOL`. Its standard input has lines of JSON, `{"secrets": {name: value}}`
and `{"drain": seconds}`. When the input closes, the agent is gone: the exporter ends after the batch in hand.

The exporter sends a batch until InfluxDB confirms it, however long that takes, and only then moves the offset. InfluxDB
keeps one of points sent twice, because a point's series and time do not depend on the sending.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.metrics.influx.influx_client import InfluxClient, InfluxDenied, InfluxUnavailable, LinesRefused
from monkey.metrics.spool import list_spools, read_influx_settings
from monkey.metrics.spool_reader import BATCH_BYTES, PointBatch, SpoolBacklog

#: Seconds that the agent has for its first order before a secret is reported missing.
_FIRST_ORDER_SECONDS = 10.0
#: Seconds between looks for more.
POLL = 1.0
#: Seconds before another try: at first, at most, and where a person must do something.
_RETRY, _MOST, PERSON = 0.25, 60.0, 60.0
#: Bytes of dead letters that are kept; further ones are only counted.
DEAD = 64 << 20
#: Seconds of sending after which a route looks at its spool again and reports.
SPELL = 1.0


class ExportOrders:
    """The agent's orders to its exporter, from standard input."""

    def __init__(self) -> None:
        """Start without any order."""
        self._changed = threading.Condition()
        self._version = 0
        self._secrets: dict[str, str] = {}
        #: The agent is gone.
        self.over = False
        #: When to end even if points are left, by the clock of `time.monotonic`; None: no such time.
        self.until: float | None = None

    def listen(self) -> None:
        """Read orders until the agent is gone."""
        for line in sys.stdin.buffer:
            told: dict[str, Any] = json.loads(line)
            with self._changed:
                self._secrets |= told.get("secrets", {})
                if "drain" in told:
                    self.until = time.monotonic() + float(told["drain"])
                self._version += 1
                self._changed.notify_all()
        with self._changed:
            self.over = True
            self._changed.notify_all()

    def wait_for_first(self, seconds: float) -> None:
        """Wait until the first order has come, which has the secrets, but no longer than so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.over or self._version > 0, seconds)

    @property
    def secrets(self) -> dict[str, str]:
        """Return the newest secrets, name to value."""
        with self._changed:
            return dict(self._secrets)

    def wait(self, seconds: float) -> bool:
        """Wait so many seconds, or until an order comes; return False when it is time to end."""
        with self._changed:
            if self.go:
                return False
            version = self._version
            limit = seconds if self.until is None else min(seconds, max(self.until - time.monotonic(), 0.0))
            self._changed.wait_for(lambda: self.over or self._version != version, limit)
            return not self.go

    @property
    def go(self) -> bool:
        """Return whether it is time to end."""
        return self.over or (self.until is not None and time.monotonic() >= self.until)


class InfluxRoute(threading.Thread):
    """The thread that sends the points of one InfluxDB's spool."""

    def __init__(self, path: str, orders: ExportOrders) -> None:
        """Open the spool directory `path`. Raises OSError, ValueError, TypeError where it is none."""
        super().__init__(name=path, daemon=True)
        self._path, self._orders = path, orders
        self._influx = read_influx_settings(path)
        self._backlog = SpoolBacklog(path)
        self._client: InfluxClient | None = None
        self._hand = ThreadPoolExecutor(1)
        #: Held while a thread tends the spool, or records the outcome of a batch.
        self._tending = threading.RLock()
        self._secrets: dict[str, str] = {}
        #: What is wrong with InfluxDB, and since when; what is wrong with the disk.
        self._error, self._since, self._disk = "", 0.0, ""
        self._attempts = 0
        self._told: dict[str, Any] = {}

    def run(self) -> None:
        """Send until it is time to end."""
        while not self._orders.go:
            if not self._send_some():
                if self._orders.until is not None:
                    break
                self._tell()
                self._orders.wait(POLL)
        self._tell()

    def _send_some(self) -> bool:
        """Look for new points, and send some; return whether there may be more to send at once."""
        try:
            self._tend()
            return self._send()
        except Exception as exc:  # of this spool alone; it is tried again, and people are told
            self._failed(f"unexpected {exc!r:.200} (this is a bug in monkey)")
            return False

    def _tend(self) -> None:
        """Look for new points, keep the spool within its bound of bytes, and report."""
        with self._tending:
            self._guard(self._backlog.look)
            if self._backlog.make_room(self._influx.spool):
                self._guard(self._backlog.save)
            self._tell()

    def _send(self) -> bool:
        """Send for `SPELL` seconds; return whether there may be more to send at once."""
        until, full = time.monotonic() + SPELL, False
        batch = self._backlog.batch()
        while batch is not None and not self._orders.go:
            full = len(batch.body) >= BATCH_BYTES or self._orders.until is not None
            delivery = self._hand.submit(self._deliver, batch)
            # Read while the server has to do.
            batch = self._backlog.batch() if time.monotonic() < until else None
            if not self._outcome(delivery):
                return False
        return full

    def _outcome(self, delivery: Future[bool]) -> bool:
        """Wait for a batch and return its outcome; while InfluxDB is away, keep tending the spool that jobs fill."""
        while not wait([delivery], POLL).done:
            self._tend()
        return delivery.result()

    def _guard(self, act: Callable[[], object]) -> None:
        """Call `act`, and note its OSError: on a full disk, points are sent again later, and make no second point."""
        try:
            act()
            self._disk = ""
        except OSError as exc:
            self._disk = f"the spool cannot be written: {exc.strerror}"

    def _deliver(self, batch: PointBatch) -> bool:
        """Send a batch until all of it is confirmed or refused for good; return False if it is time to end before."""
        counts = {"sent": 0, "dead": 0}
        parts = [batch.body] if batch.body else []
        while parts:
            body = parts.pop()
            try:
                self._write(body)
                counts["sent"] += body.count(b"\n")
            except LinesRefused as exc:
                count = body.count(b"\n")
                if count > 1 and exc.dropped < count:
                    parts += _halves(body)
                else:
                    counts["dead"] += count
                    self._guard(partial(self._bury, body, str(exc)))
            except (InfluxUnavailable, InfluxDenied) as exc:
                parts.append(body)
                if not self._pause(exc):
                    return False
        with self._tending:
            self._guard(lambda: self._backlog.confirm(batch, counts))
        return True

    def _write(self, body: bytes) -> None:
        if self._client is None:
            self._secrets = self._orders.secrets
            missing = [name for name in self._influx.secrets if not self._secrets.get(name)]
            if missing:
                raise InfluxDenied(f"the secret is not on this machine: {', '.join(missing)}")
            self._client = InfluxClient(self._influx, self._secrets)
        self._client.write(body)
        self._attempts, self._error = 0, ""

    def _pause(self, exc: InfluxUnavailable | InfluxDenied) -> bool:
        """Note the error and wait before another try; return False when it is time to end."""
        self._failed(str(exc))
        self._tell()
        if self._client is not None:
            self._client.close()
            self._client = None
        if isinstance(exc, InfluxDenied):
            return self._wait_for_somebody()
        if self._orders.until is not None and self._attempts > 2:
            return False
        self._attempts += 1
        pause = min(_RETRY * 2 ** min(self._attempts, 20), _MOST) * random.uniform(0.5, 1.0)
        return self._orders.wait(max(pause, min(exc.after, _MOST)))

    def _wait_for_somebody(self) -> bool:
        """Wait until other secrets came, or `PERSON` seconds for a repair; return False when it is time to end."""
        until = time.monotonic() + PERSON
        # Others may have come since they were refused: it is looked first.
        while (left := until - time.monotonic()) > 0 and self._orders.secrets == self._secrets:
            if self._orders.until is not None or not self._orders.wait(min(left, POLL)):
                return False
        return True

    def _bury(self, lines: bytes, why: str) -> None:
        path = f"{self._path}/dead.lp"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if os.fstat(fd).st_size < DEAD:
                os.write(fd, f"# {why}\n".encode() + lines)
                os.fsync(fd)
        finally:
            os.close(fd)

    def _failed(self, error: str) -> None:
        if not self._error:
            self._since = time.time()
        self._error = error

    def _tell(self) -> None:
        # Two threads tell: what one saw before the other's look must not be written after it.
        with self._tending:
            told = {
                "url": self._influx.url,
                "owed": self._backlog.owed,
                **self._backlog.counts,
                "error": self._error or self._disk,
                "since": round(self._since) if self._error else 0,
            }
            if told != self._told:
                self._told = told
                self._guard(partial(write_atomically, f"{self._path}/state.json", json.dumps(told), mode=0o600))


def _halves(body: bytes) -> list[bytes]:
    """Return the second and the first half of some lines, in this order."""
    middle = body.find(b"\n", len(body) // 2) + 1
    if middle in (0, len(body)):
        middle = body.rfind(b"\n", 0, len(body) - 1) + 1
    return [body[middle:], body[:middle]]


def export_spools(root: str) -> None:
    """Send the points of all spools below `root` until the agent is gone, or all are sent after a `drain`."""
    orders = ExportOrders()
    threading.Thread(target=orders.listen, daemon=True).start()
    lock = os.open(f"{root}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    while True:  # the one of the agent's earlier life may have a batch in hand
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not orders.wait(0.1):
                return
    orders.wait_for_first(_FIRST_ORDER_SECONDS)
    routes: dict[str, InfluxRoute] = {}
    while True:
        for path in list_spools(root):
            if path not in routes:
                try:
                    routes[path] = InfluxRoute(path, orders)
                except (OSError, ValueError, TypeError):
                    continue  # being written
                routes[path].start()
        if orders.until is not None or not orders.wait(POLL):
            break
    for route in routes.values():
        route.join(None if orders.until is None else max(orders.until - time.monotonic(), 0.0))


def run_exporter() -> None:
    """Run the exporter of the directory that the command line names."""
    export_spools(sys.argv[1])
    os._exit(0)  # a thread may wait for a server that does not answer


if __name__ == "__main__":
    run_exporter()
