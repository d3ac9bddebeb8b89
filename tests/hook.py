"""A webhook: a real HTTP server that counts what it is told, and can refuse, hang, answer 500 or say no for good."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Told:
    """One request."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.raw)
        return said


@dataclass
class Hook:
    """What came, and what is answered."""

    url: str = ""
    told: list[Told] = field(default_factory=list)
    #: Answers to the next requests, before all further ones are answered 204; 0 hangs up without a word.
    answers: list[int] = field(default_factory=list)
    #: While it is not set, requests are taken and not answered.
    answer: threading.Event = field(default_factory=threading.Event)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the bodies of one kind of notice."""
        return [told.body for told in self.told if told.body["kind"] == kind]


@contextmanager
def hook(port: int = 0) -> Iterator[Hook]:
    """Serve on loopback."""
    state = Hook()
    state.answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            state.told.append(Told(self.path, dict(self.headers), raw))
            code = state.answers.pop(0) if state.answers else 204
            if not state.answer.wait(120) or code == 0:
                return
            self.send_response(code)
            if code in (301, 302, 307, 308):
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.answer.set()
            server.shutdown()
            thread.join()
