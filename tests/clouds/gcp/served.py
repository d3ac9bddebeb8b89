"""HTTP before Google's APIs: who asks must have a token, and a machine what IAM allows it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.clouds.gcp.guard import TOKEN, Guard, make_token


def make_handler(guard: Guard, answer: Callable[[str, str, bytes], tuple[int, Any]]) -> type[BaseHTTPRequestHandler]:
    """Return what hands calls to `answer`, which returns status and JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said = self._refusal() or answer(self.command, self.path, body)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # who asked may have been killed
                self.wfile.write(data)

        do_POST = do_DELETE = do_GET

        def _refusal(self) -> tuple[int, Any] | None:
            told = self.headers.get("Authorization") or ""
            if told != f"Bearer {TOKEN}" and not told.startswith(f"Bearer {make_token('')}"):
                message = "Request had invalid authentication credentials."
                return 401, {"error": {"code": 401, "message": message, "status": "UNAUTHENTICATED"}}
            refused = guard.refuses_call(told, self.command, self.path.lstrip("/"))
            if refused is None:
                return None
            message = f"Required '{refused.permission}' permission for '{refused.name}'"
            return 403, {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED"}}

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
