"""An S3 endpoint for Pulumi, on a port of this machine: a bucket in front of the project's own store.

The state of machines can thus be in every store, whether or not Pulumi can reach it by itself. Each step is recorded
there before it is taken. A process that has lost the lock does not write. Access needs the bucket's name: 128 random
bits, in the environment of our own processes.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from monkey.errors import KeyMissing, StoreError
from monkey_stacks.engine.state_bucket import LARGEST, StateBucket

_T = TypeVar("_T")

#: Seconds that one access of the store may take; Pulumi tries again, many times.
_PATIENCE_SECONDS = 60.0
#: Bytes that Amazon's chunks may add to an object, and digits that the length of all of it may have.
_CHUNK_OVERHEAD, _MAX_DIGITS = 1 << 20, 9


class StateEndpoint:
    """The server of the endpoint, and the URL that Pulumi gets."""

    def __init__(self, space: StateBucket, loop: asyncio.AbstractEventLoop) -> None:
        """Serve `space`, whose store belongs to `loop`."""
        self.space, self._loop = space, loop
        self.bucket = f"monkey-{secrets.token_hex(16)}"
        #: The store's error, if the last request failed; Pulumi, which tries again, would report only a 503.
        self.trouble: StoreError | None = None
        self._server = _Server(("127.0.0.1", 0), _Request)
        self._server.bridge = self

    @property
    def url(self) -> str:
        """Return the URL that Pulumi takes as its backend."""
        endpoint = quote(f"http://127.0.0.1:{self._server.server_port}", safe="")
        return f"s3://{self.bucket}?endpoint={endpoint}&s3ForcePathStyle=true&region=us-east-1"

    @contextmanager
    def running(self) -> Iterator[StateEndpoint]:
        """Serve requests during a `with` block."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def ask(self, what: Awaitable[_T]) -> _T:
        """Await `what` in the store's event loop, from a thread of the server. Raises StoreError, TimeoutError."""

        async def run() -> _T:
            return await what

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(_PATIENCE_SECONDS)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    bridge: StateEndpoint

    def handle_error(self, request: object, client_address: object) -> None:
        """Report nothing: Pulumi closed the connection in the middle of a request."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_HEAD(self) -> None:
        self._answer(self._get)

    def do_PUT(self) -> None:
        self._answer(self._put)

    def do_DELETE(self) -> None:
        self._answer(self._delete)

    def _answer(self, method: Any) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        bridge = self.server.bridge
        if not secrets.compare_digest(bucket.encode(), bridge.bucket.encode()):
            self._refuse(403, "AccessDenied", unread=True)
            return
        if (size := self._size()) is None:
            self._refuse(400, "InvalidRequest", unread=True)
            return
        try:
            method(bridge, key, parse_qs(parts.query, keep_blank_values=True), self._body(size))
            bridge.trouble = None
        except KeyMissing:
            self._refuse(404, "NoSuchKey")
        except StoreError as exc:
            bridge.trouble = exc
            self._refuse(503, "SlowDown")
        except TimeoutError:
            self._refuse(503, "SlowDown")
        except ValueError:
            self._refuse(400, "InvalidRequest")

    def _get(self, bridge: StateEndpoint, key: str, query: dict[str, list[str]], body: bytes) -> None:
        if key:
            self._send(200, bridge.ask(bridge.space.get(key)), "application/octet-stream")
            return
        prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        found = bridge.ask(bridge.space.list(prefix))
        self._send(200, _listing(bridge.bucket, prefix, delimiter, found))

    def _put(self, bridge: StateEndpoint, key: str, query: dict[str, list[str]], body: bytes) -> None:
        source = self.headers.get("x-amz-copy-source")
        if source is not None:
            body = bridge.ask(bridge.space.get(unquote(source).lstrip("/").partition("/")[2]))
        if len(body) > LARGEST or query.keys() - {"x-id"}:
            raise ValueError(key)
        bridge.ask(bridge.space.put(key, body))
        copied = f"<CopyObjectResult><ETag>{_etag(body)}</ETag><LastModified>2000-01-01T00:00:00Z</LastModified>"
        self._send(200, f"{copied}</CopyObjectResult>".encode() if source is not None else b"", etag=_etag(body))

    def _delete(self, bridge: StateEndpoint, key: str, query: dict[str, list[str]], body: bytes) -> None:
        bridge.ask(bridge.space.delete(key))
        self._send(204, b"")

    def _size(self) -> int | None:
        """Return the bytes of the body; None where they are too many, or the header is none of HTTP's."""
        told = self.headers.get("Content-Length") or "0"
        known = (
            told.isascii() and told.isdecimal() and len(told) <= _MAX_DIGITS and "Transfer-Encoding" not in self.headers
        )
        return int(told) if known and int(told) <= LARGEST + _CHUNK_OVERHEAD else None

    def _body(self, size: int) -> bytes:
        body = self.rfile.read(size)
        streamed = "aws-chunked" in (self.headers.get("Content-Encoding") or "")
        return _joined(body) if streamed or "x-amz-decoded-content-length" in self.headers else body

    def _refuse(self, status: int, code: str, *, unread: bool = False) -> None:
        """Answer with an error; `unread`: what follows on the connection is the body, and no request."""
        self.close_connection = self.close_connection or unread
        self._send(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _send(self, status: int, body: bytes, kind: str = "application/xml", etag: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", kind)
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.send_header("ETag", etag or _etag(body))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _etag(body: bytes) -> str:
    return f'"{md5(body, usedforsecurity=False).hexdigest()}"'


def _joined(body: bytes) -> bytes:
    """Return the bytes in Amazon's chunks: "SIZE;chunk-signature=…", the bytes, …, a size of 0 and checksums."""
    found, at = list[bytes](), 0
    while True:
        line = body.index(b"\r\n", at)
        size = int(body[at:line].partition(b";")[0], 16)
        if not size:
            return b"".join(found)
        found.append(body[line + 2 : line + 2 + size])
        at = line + 2 + size + 2


def _listing(bucket: str, prefix: str, delimiter: str, found: dict[str, int]) -> bytes:
    keys, below = list[str](), dict[str, None]()
    for key, size in found.items():
        head, cut, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
        if cut:
            below[f"{prefix}{head}{delimiter}"] = None
        else:
            at = "<LastModified>2000-01-01T00:00:00.000Z</LastModified>"
            keys.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>{at}<ETag>&quot;0&quot;</ETag></Contents>"
            )
    prefixes = [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in below]
    said = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><Delimiter>{escape(delimiter)}</Delimiter>"
    count = f"<KeyCount>{len(keys) + len(prefixes)}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
    body = f"<ListBucketResult>{said}{count}{''.join(keys)}{''.join(prefixes)}</ListBucketResult>"
    return f'<?xml version="1.0" encoding="UTF-8"?>{body}'.encode()
