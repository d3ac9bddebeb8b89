"""What lies between who rents and the cloud: every call is counted, may be refused, and may be cut off.

A call is held before the cloud has seen it, or after it was carried out and before anybody hears of it: whoever asked
is then killed. What moto does not do as AWS does it is put right here (`tests.clouds.aws.mends`).
"""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

#: Calls that change nothing.
_LOOKS = re.compile(r"(Describe|Get|List|Head|Search|Simulate|Lookup|Estimate)")
#: Of S3: a request has no name of its own.
_VERBS = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject", "POST": "PostObject"}


@dataclass(frozen=True)
class Call:
    """One call, as it comes over the wire."""

    service: str
    action: str
    method: str
    path: str
    body: bytes
    headers: tuple[tuple[str, str], ...]

    @property
    def changes(self) -> bool:
        """Would the cloud be another one afterwards?"""
        return not _LOOKS.match(self.action)

    @property
    def form(self) -> dict[str, str]:
        """What it says, where it is a form."""
        return {key: values[0] for key, values in parse_qs(self.body.decode(errors="replace")).items()}

    @property
    def region(self) -> str:
        """The region that it was signed for."""
        signed = dict(self.headers).get("authorization", "")
        found = re.search(r"Credential=[^/]*/\d+/([^/]+)/", signed)
        return found[1] if found else ""


@dataclass(frozen=True)
class Answer:
    """What comes back."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass
class Fault:
    """A call that is refused: `action` is a regular expression; `times` below zero: always."""

    action: str
    code: str
    message: str
    status: int = 400
    times: int = -1
    #: The cloud did it all the same.
    after: bool = False


@dataclass
class Hold:
    """Holds the call that is the `at`th of those that change something, counted from now; 1 is the next."""

    at: int
    after: bool
    #: Those that are counted: by default all.
    chosen: Callable[[Call], bool] = lambda call: True
    reached: threading.Event = field(default_factory=threading.Event)
    call: Call | None = None


#: Answers in the cloud's place; None where the cloud is to answer.
Mend = Callable[["Wire", Call], Answer | None]


class Wire:
    """A server before another one."""

    def __init__(self, upstream: str, mend: Mend | None = None, address: str = "127.0.0.1") -> None:
        """Hand everything on to `upstream`; what `mend` answers is not handed on. Others reach it at `address`."""
        self.upstream, self._mend, self._address = urlsplit(upstream), mend, address
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        #: What becomes of an answer's body, by actions: for what moto does not show.
        self.edits: dict[str, Callable[[str], str]] = {}
        self._hold: Hold | None = None
        self._lock, self._let_go = threading.Lock(), threading.Event()
        self._server = _Server((address, 0), _Handler)
        self._server.wire = self

    @property
    def endpoint(self) -> str:
        """Where it is."""
        return f"http://{self._address}:{self._server.server_port}"

    @property
    def changes(self) -> list[str]:
        """What was asked that changes something."""
        return [call.action for call in list(self.calls) if call.changes]

    @contextmanager
    def running(self) -> Iterator[Wire]:
        """Serve meanwhile."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._let_go.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def refuse(
        self, action: str, code: str, message: str, status: int = 400, times: int = -1, *, after: bool = False
    ) -> None:
        """Refuse what matches `action` from now on, for so many times."""
        self.faults.append(Fault(action, code, message, status, times, after))

    def hold(self, at: int, *, after: bool, chosen: Callable[[Call], bool] = lambda call: True) -> Hold:
        """Hold the `at`th call from now that changes something; all that come later are held too."""
        self._let_go.clear()
        self._hold = Hold(at, after, chosen)
        return self._hold

    def release(self) -> None:
        """Drop what is held: nobody waits for it any more."""
        self._hold = None
        self._let_go.set()

    def clear(self) -> None:
        """Forget faults and calls."""
        self.release()
        self.edits.clear()
        self.faults.clear()
        self.calls.clear()

    def answer(self, call: Call) -> Answer | None:
        """Carry a call out; None: nobody is to hear of it."""
        hold = self._count(call)
        if hold is not None and not hold.after:
            return self._stop(hold, call)
        fault = self._fault(call)
        if fault is not None and not fault.after:
            return refusal(call, fault)
        answer = self._edited(call, (self._mend(self, call) if self._mend else None) or self.forward(call))
        if hold is not None:
            return self._stop(hold, call)
        return refusal(call, fault) if fault is not None else answer

    def _edited(self, call: Call, answer: Answer) -> Answer:
        if call.action not in self.edits:
            return answer
        return Answer(200, answer.headers, self.edits[call.action](answer.body.decode()).encode())

    def forward(self, call: Call) -> Answer:
        """Ask the cloud."""
        host, port = self.upstream.hostname or "", self.upstream.port
        connection = http.client.HTTPConnection(host, port, timeout=60)
        try:
            connection.request(call.method, call.path, call.body, dict(call.headers))
            got = connection.getresponse()
            return Answer(got.status, tuple(got.getheaders()), got.read())
        finally:
            connection.close()

    def _count(self, call: Call) -> Hold | None:
        with self._lock:
            self.calls.append(call)
            hold = self._hold
            if hold is None or not call.changes:
                return None
            if hold.call is not None:
                # Those beside it must not be carried out either: the one is to be the last.
                return Hold(0, False, reached=hold.reached, call=call)
            if not hold.chosen(call):
                return None
            hold.at -= 1
            if hold.at > 0:
                return None
            hold.call = call
            return hold

    def _stop(self, hold: Hold, call: Call) -> None:
        hold.reached.set()
        self._let_go.wait()

    def _fault(self, call: Call) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.times and re.fullmatch(fault.action, call.action):
                    fault.times -= 1
                    return fault
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    wire: Wire

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: who asked was killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = tuple((key.lower(), value) for key, value in self.headers.items() if key.lower() != "connection")
        service, action = named(self.command, self.path, dict(headers), body)
        answer = self.server.wire.answer(Call(service, action, self.command, self.path, body, headers))
        if answer is None:
            self.close_connection = True
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for key, value in answer.headers:
            if key.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive"):
                self.send_header(key, value)
        bodiless = self.command == "HEAD"
        length = next((value for key, value in answer.headers if key.lower() == "content-length"), None)
        self.send_header("Content-Length", length if bodiless and length else str(len(answer.body)))
        self.end_headers()
        if not bodiless:
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def named(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[str, str]:
    """Return the service that a request is signed for, and what it asks of it."""
    found = re.search(r"Credential=[^/]*/\d+/[^/]+/([^/]+)/", headers.get("authorization", ""))
    service = found[1] if found else ""
    if "x-amz-target" in headers:
        return service, headers["x-amz-target"].rpartition(".")[2]
    action = re.search(rb"(?:^|&)Action=(\w+)", body) or re.search(rb"[?&]Action=(\w+)", path.encode())
    return service, action[1].decode() if action else _VERBS.get(method, method)


def refusal(call: Call, fault: Fault) -> Answer:
    """Return an error in the words of the service that was asked."""
    code, message = fault.code, fault.message
    if any(key == "x-amz-target" for key, _ in call.headers):
        body = f'{{"__type": "{code}", "message": "{message}"}}'
        return Answer(fault.status, (("Content-Type", "application/x-amz-json-1.1"),), body.encode())
    said = f"<Code>{code}</Code><Message>{message}</Message>"
    if call.service == "ec2":
        body = f"<Response><Errors><Error>{said}</Error></Errors><RequestID>refused</RequestID></Response>"
    elif call.service == "s3":
        body = f"<Error>{said}<RequestId>refused</RequestId></Error>"
    else:
        body = f"<ErrorResponse><Error><Type>Sender</Type>{said}</Error><RequestId>refused</RequestId></ErrorResponse>"
    return Answer(fault.status, (("Content-Type", "text/xml"),), body.encode())
