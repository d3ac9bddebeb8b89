"""The guard of the page: who may ask, from where, and what each answer tells the browser about its limits.

A stranger's web page may send requests to any port of this machine, by its address or by a name that leads there
(DNS rebinding). Other users of this machine may, too. So each request needs two secrets, which the link's token buys:

- A cookie, which no script can read. But a browser sends it to every port of this machine.
- A key, which the page keeps in the storage of its own origin, and which other ports do not see.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

#: The header that carries the page's key.
KEY_HEADER = "X-Monkey-Key"
#: The path at which the token is exchanged.
LOGIN_PATH = "/api/login"
#: What every answer tells the browser: run, load and ask only what is ours, and tell no one where you came from.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class PageGuard:
    """The secrets of one server, and the addresses under which it answers."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    #: The address behind a proxy, "https://lab.example/monkey"; "" without a proxy.
    base_url: str = ""
    port: int = 0
    #: From these, cookie and key are made anew in each process.
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def hosts(self) -> set[str]:
        """The values of `Host` that are ours: a name that a stranger made lead here is none."""
        own = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")}
        return own | ({urlsplit(self.base_url).netloc} if self.base_url else set())

    @property
    def origins(self) -> set[str]:
        """The values of `Origin` that are ours."""
        own = {f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost")}
        parts = urlsplit(self.base_url)
        return own | ({f"{parts.scheme}://{parts.netloc}"} if self.base_url else set())

    @property
    def read_only(self) -> bool:
        """Are orders refused? Behind a proxy the one who asks may be anybody, and orders are signed by our user."""
        return bool(self.base_url)

    @property
    def cookie_name(self) -> str:
        """The name of the cookie: browsers mix up the cookies of all ports of a machine."""
        return f"monkey-{self.port}"

    def log_in(self, request: web.Request, token: object) -> web.Response:
        """Exchange the token for cookie and key."""
        if not isinstance(token, str) or not _is_same(token, self.token):
            return refuse_request(401, "the token is not the one of this server: open the link that it printed last")
        answer = web.json_response({"key": self._derive(b"key")})
        secure = self.base_url.startswith("https:")
        answer.set_cookie(
            self.cookie_name, self._derive(b"cookie"), httponly=True, samesite="Strict", secure=secure, path="/"
        )
        return answer

    def find_refusal(self, request: web.Request) -> web.Response | None:
        """Return the answer to a request that is refused; None for one that may pass."""
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site", "same-origin")
        if request.host not in self.hosts:
            return refuse_request(403, "this name is not one of this server's")
        if origin is not None and origin not in self.origins:
            return refuse_request(403, "another page asks")
        if request.method not in ("GET", "POST"):
            return refuse_request(405, "only GET and POST are answered")
        if request.method == "POST" and (origin is None or request.content_type != "application/json"):
            return refuse_request(403, "a POST needs JSON, and an Origin")
        if not request.path.startswith("/api/"):
            return None
        if site != "same-origin":
            return refuse_request(403, "another page asks")
        if request.path != LOGIN_PATH and not self._knows(request):
            return refuse_request(401, "open the link that `monkey web` printed")
        return None

    def _knows(self, request: web.Request) -> bool:
        cookie, key = request.cookies.get(self.cookie_name, ""), request.headers.get(KEY_HEADER, "")
        return _is_same(cookie, self._derive(b"cookie")) and _is_same(key, self._derive(b"key"))

    def _derive(self, what: bytes) -> str:
        return hmac.digest(self._salt, what + self.token.encode(), "sha256").hex()


def _is_same(one: str, other: str) -> bool:
    # Of hashes: compare_digest takes no text beyond ASCII.
    return hmac.compare_digest(*(hashlib.sha256(text.encode(errors="replace")).digest() for text in (one, other)))


def refuse_request(status: int, why: str, hint: str = "") -> web.Response:
    """Return an answer that says why a request is refused."""
    return web.json_response({"error": why, "hint": hint}, status=status)


def make_guard_middleware(guard: PageGuard) -> Middleware:
    """Return the middleware that asks the guard, and puts its headers on every answer."""

    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        return guard.find_refusal(request) or await handler(request)

    return middleware


async def set_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Put the headers on an answer that is about to begin: also on a stream, and on errors of aiohttp's own."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.pop("Server", None)
