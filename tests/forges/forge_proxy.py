"""A proxy before a real forge: it counts requests that write, and can act before or after one is handed on."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass
class ForgeProxy:
    """What passed, and what is done at a request."""

    url: str = ""
    #: "POST /api/v1/…" of each request, in order.
    asked: list[str] = field(default_factory=list)
    #: Called with the number of each request, from 1 since the last `reset`, before and after it is handed on.
    before: Callable[[int], None] = lambda number: None
    after: Callable[[int], None] = lambda number: None
    _since: int = 0

    @property
    def writes(self) -> list[str]:
        """The requests that may change something."""
        return [line for line in self.asked if not line.startswith("GET ")]

    def reset(self) -> None:
        """Count from 1 again, and do nothing at requests."""
        self._since = len(self.asked)
        self.before = self.after = lambda number: None


@contextmanager
def serve_proxy(target: str) -> Iterator[ForgeProxy]:
    """Serve on loopback, before the forge at `target`."""
    state, parts = ForgeProxy(), urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            state.asked.append(f"{self.command} {self.path}")
            number = len(state.asked) - state._since
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            state.before(number)
            there = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            there.request(self.command, self.path, body or None, kept)
            answer = there.getresponse()
            text = answer.read()
            there.close()
            state.after(number)
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() in ("content-type", "link", "x-total-count"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _pass

        def log_message(self, *_: object) -> None:
            """Keep silent."""

        def handle(self) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked was killed
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
