"""What doubles of forges have in common: an HTTP server of few words, with users, pull requests and pages.

No GitHub and no GitLab can run here. These doubles say what the documentation of the real ones says, and refuse what
those refuse; that the real ones do so is not shown by them. Gitea is real: see `tests.forges.gitea`.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        """Keep the answer's status, its message and its headers."""
        self.status, self.message, self.headers = status, message, headers
        super().__init__(message)


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any]
    headers: dict[str, str]
    #: The login of who asks.
    user: str


@dataclass
class Request:
    """A pull request, or a merge request, in a double."""

    number: int
    branch: str
    commit: str
    state: str = "open"
    merged_as: str = ""
    #: Its other commits.
    commits: tuple[str, ...] = ()
    is_fork: bool = False
    comments: dict[int, dict[str, Any]] = field(default_factory=dict)


class Double:
    """A forge with one repository, in a thread."""

    #: What a path is answered with: a pattern of the whole path, and the method's name.
    ROUTES: tuple[tuple[str, str, str], ...] = ()

    def __init__(self) -> None:
        """Begin to listen."""
        self.users: dict[str, str] = {}  #: token → login
        self.roles: dict[str, str] = {}  #: login → what it may: read or write; at GitLab, maintain
        self.pulls: dict[int, Request] = {}
        self.statuses: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        #: Answers that are given first, whatever is asked: status, headers, body.
        self.faults: list[tuple[int, dict[str, str], Any]] = []
        self.ids = itertools.count(1)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def open_pull(self, branch: str, commit: str, *, is_fork: bool = False) -> int:
        """Open a pull request to main; `is_fork`: from another repository."""
        number = len(self.pulls) + 1
        self.pulls[number] = Request(number, branch, commit, is_fork=is_fork)
        return number

    def merge(self, number: int, commit: str) -> None:
        """Merge a pull request, which makes the commit."""
        self.pulls[number].state, self.pulls[number].merged_as = "merged", commit

    def find_pull(self, number: str) -> Request:
        """Return a pull request. Raises Refusal."""
        if int(number) not in self.pulls:
            raise Refusal(404, "Not Found")
        return self.pulls[int(number)]

    def find_comment(self, number: str) -> tuple[Request, dict[str, Any]]:
        """Return a comment, and where it is. Raises Refusal."""
        for pull in self.pulls.values():
            if int(number) in pull.comments:
                return pull, pull.comments[int(number)]
        raise Refusal(404, "Not Found")

    def may_write(self, asked: Asked) -> None:
        """Raise Refusal for a user who may only read."""
        if self.roles.get(asked.user) != "write":
            raise Refusal(403, self.forbidden, **self.forbidden_headers)

    #: What a user hears who may not.
    forbidden = "403 Forbidden"
    forbidden_headers: ClassVar[dict[str, str]] = {}

    def read_token(self, headers: dict[str, str]) -> str:
        """Return the token of a request."""
        raise NotImplementedError

    def answer(self, method: str, target: str, headers: dict[str, str], raw: bytes) -> tuple[int, dict[str, str], Any]:
        """Answer a request: status, headers, data."""
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        with self._lock:
            self.asked.append((method, parts.path))
            if self.faults:
                return self.faults.pop(0)
            try:
                user = self.users.get(self.read_token(headers))
                if user is None:
                    raise Refusal(401, "Bad credentials")
                asked = Asked(method, parts.path, query, json.loads(raw) if raw else {}, headers, user)
                return self._route(asked)
            except Refusal as exc:
                return exc.status, exc.headers, {"message": exc.message}

    def _route(self, asked: Asked) -> tuple[int, dict[str, str], Any]:
        for method, pattern, name in self.ROUTES:
            found = re.fullmatch(pattern, asked.path)
            if found and method == asked.method:
                call: Callable[..., Any] = getattr(self, name)
                data = call(asked, *map(unquote, found.groups()))
                if isinstance(data, list):
                    return self._page(asked, data)
                return {"POST": 201, "DELETE": 204}.get(method, 200), {}, data
        raise Refusal(404, "Not Found")

    def _page(self, asked: Asked, found: list[Any]) -> tuple[int, dict[str, str], Any]:
        size, page = min(int(asked.query.get("per_page", "30")), 100), int(asked.query.get("page", "1"))
        more = len(found) > page * size
        link = {"Link": f'<{self.url}{asked.path}?page={page + 1}>; rel="next"'} if more else {}
        return 200, link, found[(page - 1) * size : page * size]


def _make_handler(double: Double) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more, data = double.answer(self.command, self.path, headers, raw)
            text = b"" if data is None or status == 204 else json.dumps(data).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **more}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
