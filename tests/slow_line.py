"""A slow line: a TCP proxy before a server, with so many bytes a second on the way up, that can break."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

#: Bytes of one read: the smaller, the evener the rate.
_READ = 16 * 1024


class SlowLine:
    """A line to the server at an endpoint, of `rate` bytes a second on the way up (0: as fast as it goes).

    All connections share it. `breaks_at`: once so many bytes came, all connections break, and no new one is taken.
    """

    def __init__(self, server: str, rate: float = 0.0, breaks_at: int = 0) -> None:
        """Listen; a proxy's own buffer is small, for what is in it was not sent yet."""
        self.rate, self.breaks_at = rate, breaks_at
        #: Bytes that came on the way up.
        self.sent = 0
        self._server = urlsplit(server)
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._open: set[socket.socket] = set()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * _READ)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)

    def __enter__(self) -> Self:
        """Take connections."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """Break all connections, and take no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break()

    @property
    def endpoint(self) -> str:
        """Where the server is, by this line."""
        host, port = self._listener.getsockname()
        return self._server._replace(netloc=f"{host}:{port}").geturl()

    @property
    def broken(self) -> bool:
        """Did so much come that the line is broken?"""
        return 0 < self.breaks_at <= self.sent

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.broken:
                client.close()
                continue
            server = socket.create_connection((self._server.hostname or "", self._server.port or 80))
            self._open |= {client, server}
            for work, source, target in ((self._carry_up, client, server), (self._carry_down, server, client)):
                threading.Thread(target=work, args=(source, target), daemon=True).start()

    def _carry_up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(_READ):
                self._wait_turn(len(data))
                if self.broken:
                    self._break()
                    return
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _carry_down(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_READ):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)

    def _wait_turn(self, size: int) -> None:
        with self._lock:
            self.sent += size
            now = time.monotonic()
            if self.rate:
                self._free_at = max(self._free_at, now) + size / self.rate
        if self.rate:
            time.sleep(max(0.0, self._free_at - now))

    def _break(self) -> None:
        for each in [*self._open]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
