"""HTTP: requests come in, meet their faults, and are answered."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import quote

from tests.bucket import dialect
from tests.bucket.dialect import Answer, Request
from tests.bucket.faults import AFTER, Fault, Faults
from tests.bucket.objects import NoSuchUpload, Objects, PreconditionFailed

NAME = "bucket"


@dataclass(frozen=True)
class Refusal:
    """What every request is answered, as by a bucket that does not let us in."""

    status: int
    code: str
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class FakeBucket:
    """A bucket at a port of this machine, served by threads of this process."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        """Begin empty, faultless and not yet serving, at an address of this machine."""
        self.objects, self.faults = Objects(), Faults()
        #: Requests by kind, and the keys of all of them.
        self.counts: Counter[str] = Counter()
        self.log: list[tuple[str, str]] = []
        #: Who signed requests, as "KEY/REGION".
        self.signers: Counter[str] = Counter()
        #: Most keys of one page of a listing.
        self.page = 1000
        #: Seconds that a hanging request hangs; longer than clients wait.
        self.hang = 30.0
        self.refusal: Refusal | None = None
        #: Keys whose bodies never end, whatever their headers say; and the bytes that were sent of them.
        self.endless: set[str] = set()
        self.poured = 0
        #: Called with each request before anything becomes of it.
        self.before: Callable[[Request], None] = lambda request: None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server((address, 0), _Handler)
        self._server.bucket = self

    def __enter__(self) -> Self:
        """Serve."""
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; who still hangs is let go."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://{self._server.server_address[0]!s}:{self._server.server_address[1]}"

    def url(self, scheme: str = "s3", prefix: str = "", bucket: str = NAME) -> str:
        """Return the URL of a store in it."""
        return f"{scheme}://{bucket}/{quote(prefix)}?endpoint={self.endpoint}"

    def answer(self, request: Request) -> Answer | None:
        """Carry the request out and return the answer; None: the connection is to break."""
        self.before(request)
        fault = self._note(request)
        if self.refusal is not None:
            refusal = self.refusal
            return dialect.error(refusal.status, refusal.code, refusal.message, dict(refusal.headers))
        if fault is Fault.LATE:
            self._closing.wait(self.hang)
        answer = self._carry_out(request) if fault is Fault.NONE or fault in AFTER else None
        if fault is Fault.HANG_AFTER:
            self._closing.wait(self.hang)
        if fault in (Fault.DROP, Fault.DROP_AFTER):
            return None
        if fault in (Fault.BUSY, Fault.BUSY_AFTER):
            return dialect.error(503, "SlowDown", "Please reduce your request rate.")
        if fault is Fault.DENY:
            return dialect.error(400, "ExpiredToken")
        if fault is Fault.CONFLICT:
            return dialect.error(409, "ConditionalRequestConflict")
        return answer

    def _note(self, request: Request) -> Fault:
        with self._lock:
            self.counts[request.kind] += 1
            self.log.append((request.kind, request.key or request.query.get("prefix", "")))
            self.signers[request.signer] += 1
        fault = self.faults.next(request.kind, request.key)
        # A conflict is an answer to a condition; who set none is told to come again.
        return Fault.BUSY if fault is Fault.CONFLICT and not request.if_absent else fault

    def _carry_out(self, request: Request) -> Answer:
        if request.bucket != NAME:
            return dialect.error(404, "NoSuchBucket", "The specified bucket does not exist")
        try:
            return self._multipart(request) if request.kind == "MULTIPART" else self._plain(request)
        except PreconditionFailed:
            return dialect.error(412, "PreconditionFailed")
        except NoSuchUpload:
            return dialect.error(404, "NoSuchUpload")

    def _plain(self, request: Request) -> Answer:
        if request.kind == "LIST":
            return self._list(request)
        if request.method == "PUT":
            return dialect.written(self.objects.put(request.key, request.body, if_absent=request.if_absent))
        if request.method == "DELETE":
            self.objects.delete(request.key)
            return Answer(204)
        if request.method in ("GET", "HEAD"):
            return self._read(request)
        return dialect.error(501, "NotImplemented")

    def _list(self, request: Request) -> Answer:
        after = request.query.get("continuation-token") or request.query.get("start-after", "")
        limit = min(self.page, int(request.query.get("max-keys", 1000)))
        prefix = request.query.get("prefix", "")
        if "delimiter" in request.query:
            return dialect.directories(sorted({_directory(key, prefix) for key in self.objects.keys} - {""}))
        return dialect.listing(*self.objects.list(prefix, after, limit))

    def _read(self, request: Request) -> Answer:
        found = self.objects.get(request.key)
        if found is None:
            return dialect.error(404, "NoSuchKey", "The specified key does not exist.")
        expected = request.headers.get("if-match")
        if expected is not None and expected != found.etag:
            raise PreconditionFailed
        return dialect.read(found, request.range)

    def _multipart(self, request: Request) -> Answer:
        if "uploads" in request.query:
            return dialect.upload_begun(self.objects.begin_upload())
        upload = request.query["uploadId"]
        if request.method == "PUT":
            etag = self.objects.put_part(upload, int(request.query["partNumber"]), request.body)
            return Answer(headers={"ETag": etag})
        if request.method == "DELETE":
            self.objects.abort_upload(upload)
            return Answer(204)
        return dialect.upload_ended(self.objects.end_upload(upload, request.key))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    bucket: FakeBucket


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536
    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the client gave up: that is what faults are for
            super().handle()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _do(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if len(body) < size:  # the line broke: what came half is no object
            self.close_connection = True
            return
        request = dialect.parse(self.command, self.path, self.headers.items(), body)
        answer = self.server.bucket.answer(request)
        if answer is None:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.command == "GET" and request.key in self.server.bucket.endless:
            self._pour()
            return
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _pour(self) -> None:
        """Send a body until the client has enough: chunks, beside a header that names a small size."""
        self.close_connection = True
        self.send_header("Content-Length", "10")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        chunk = bytes(1 << 16)
        while not self.wfile.closed:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.server.bucket.poured += len(chunk)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _do


def _directory(key: str, prefix: str) -> str:
    """Return the part of a key up to the first '/' after `prefix`; "" where it has none."""
    name, slash, _ = key.removeprefix(prefix).partition("/")
    return f"{prefix}{name}/" if key.startswith(prefix) and slash else ""
