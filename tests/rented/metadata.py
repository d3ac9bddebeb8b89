"""The metadata of a machine, at the address that every cloud has them at, on that machine alone: a real HTTP server.

Amazon's want a token for everything (IMDSv2), Google's a header; both refuse who has been forwarded.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = "169.254.169.254"
_NEW_NETWORK = 0x40000000


class Metadata:
    """What a machine is told of itself; changed while it runs, by whoever plays the cloud."""

    def __init__(self, kind: str, said: Mapping[str, str]) -> None:
        """Say these things: path, below the version, to text."""
        self.kind, self.said = kind, dict(said)
        #: Requests by what became of them: path, or "refused".
        self.counts: Counter[str] = Counter()
        #: Token to when it is over.
        self.tokens: dict[str, float] = {}
        self._server: ThreadingHTTPServer | None = None

    def serve(self, pid: int) -> None:
        """Serve in the network of that process, to nobody else."""
        made: list[socket.socket] = []
        subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
        thread = threading.Thread(target=lambda: made.append(_listening(pid)))
        thread.start()
        thread.join()
        self._server = ThreadingHTTPServer((ADDRESS, 80), _handler(self), bind_and_activate=False)
        self._server.socket.close()
        [self._server.socket] = made
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def serve_here(self) -> str:
        """Serve on this machine, and return the address."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        """Serve no more."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        """Return status and text."""
        if "x-forwarded-for" in headers:
            return 403, ""
        status, text = (self._amazon if self.kind == "aws" else self._google)(method, path, headers)
        self.counts[path if status == 200 else f"{status} {path}"] += 1
        return status, text

    def _amazon(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        if path == "/latest/api/token":
            ttl = headers.get("x-aws-ec2-metadata-token-ttl-seconds", "")
            if method != "PUT" or not ttl.isdigit() or not 1 <= int(ttl) <= 21600:
                return 400, "Bad Request"
            token = secrets.token_urlsafe(40)
            self.tokens[token] = time.monotonic() + int(ttl)
            return 200, token
        if self.tokens.get(headers.get("x-aws-ec2-metadata-token", ""), 0) < time.monotonic():
            return 401, "Unauthorized"
        return self._found(method, path.removeprefix("/latest/"))

    def _google(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        if headers.get("metadata-flavor") != "Google":
            return 403, "Missing Metadata-Flavor:Google header."
        return self._found(method, path.removeprefix("/computeMetadata/v1/instance/"))

    def _found(self, method: str, path: str) -> tuple[int, str]:
        return (200, self.said[path]) if method == "GET" and path in self.said else (404, "Not Found")


def _listening(pid: int) -> socket.socket:
    """Return a socket that listens in the network of that process; the thread that asks stays there."""
    with open(f"/proc/{pid}/ns/net") as network:  # noqa: PTH123 - a handle, not a file
        if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((ADDRESS, 80))
    made.listen(20)
    return made


def _handler(metadata: Metadata) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, text = metadata.answer(self.command, self.path.partition("?")[0], headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_PUT = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def role(name: str, keys: Mapping[str, str]) -> dict[str, str]:
    """Return what Amazon's metadata say of a machine's role, whose keys are these."""
    said = {"Code": "Success", "Type": "AWS-HMAC", "Expiration": "2099-01-01T00:00:00Z", **keys}
    where = "meta-data/iam/security-credentials/"
    return {where: name, where + name: json.dumps(said)}
