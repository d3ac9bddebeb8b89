"""What a cloud answers, and whether another try may help."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from monkey.fleet.cloud.http_client import ApiDown, ApiError, ask_api, retry_ask
from tests.services import free_port


@pytest.mark.parametrize(
    ("status", "said", "passing"),
    [
        (403, "", True),
        (429, "", True),
        (503, "", True),
        (400, "<Code>Throttling</Code>", True),
        (400, '{"__type":"AccessDeniedException"}', True),
        (400, "<Code>ScalingActivityInProgress</Code>", True),
        (400, '{"__type":"ParameterNotFound"}', False),
        (404, "NoSuchKey", False),
    ],
)
def test_some_answers_may_change(status: int, said: str, passing: bool) -> None:
    assert ApiError("asked", status, said).passing is passing


class _Server(ThreadingHTTPServer):
    #: What is answered, in turn; 0: half an answer.
    answers: list[int]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        status = self.server.answers.pop(0)
        self.send_response(status or 200)
        self.send_header("Content-Length", "9")
        self.end_headers()
        self.wfile.write(b"an answer"[: 9 if status else 3])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    """Return a server that answers as it is told."""
    with _Server(("127.0.0.1", 0), _Handler) as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        yield made
        made.shutdown()


def test_who_asks_persists_while_that_may_help(server: _Server) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/x?secret=1"
    server.answers = [503, 0, 403, 200]
    assert retry_ask(lambda: ask_api("GET", url, direct=True), 60, pause=0.01) == b"an answer" and not server.answers
    server.answers = [404, 200]
    with pytest.raises(ApiError, match=r"^GET http://127.0.0.1:\d+/x: 404 an answer$"):
        retry_ask(lambda: ask_api("GET", url, direct=True), 60)
    server.answers = [503, 503]
    with pytest.raises(ApiError, match="503"):
        retry_ask(lambda: ask_api("GET", url, direct=True), 0)
    with pytest.raises(ApiDown, match="refused"):
        retry_ask(lambda: ask_api("GET", f"http://127.0.0.1:{free_port()}", direct=True), 60, silent=0)
