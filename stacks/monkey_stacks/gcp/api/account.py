"""Our account at Google, in one of its projects: requests to its APIs, and the token that Pulumi uses, too."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from monkey import origin
from monkey.errors import FleetError
from monkey.fleet.cloud.gcp_machine import find_api_url
from monkey.fleet.cloud.http_client import ApiDown, ApiError, ask_api
from monkey_stacks.gcp.api.errors import NO_JSON, translate_errors

#: Scope of our tokens, which covers all APIs: roles decide what they permit.
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
#: Variables with a given token, which Pulumi's provider and Google's own tool read, too.
_TOKENS = ("GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN")
#: Seconds for one request; number of tries; seconds before another try.
_LIMIT, _TRIES, _PAUSE = 30.0, 4, 0.5
_SOON = (408, 429, 500, 502, 503, 504)
#: Seconds in which Google must carry out an operation.
OPERATION_SECONDS = 600.0
_LOOK = 1.0


@dataclass
class GcpAccount:
    """Our account in a project and a region of Google, with the credentials that Google's own tools would find."""

    project: str
    region: str
    #: Answers that do not change, by the question.
    remembered: dict[str, Any] = field(default_factory=dict)
    _credentials: Any = None
    _finding: threading.Lock = field(default_factory=threading.Lock)

    @property
    def place(self) -> str:
        """Return the path of the project at Compute Engine."""
        return f"compute/v1/projects/{self.project}"

    @property
    def here(self) -> str:
        """Return the path of the region at Compute Engine."""
        return f"{self.place}/regions/{self.region}"

    def ask(self, method: str, service: str, path: str, body: Any = None, **query: str) -> dict[str, Any]:
        """Return the answer of an API ("compute", "iam", "storage") at a path. Raises FleetError."""
        with translate_errors():
            return self._ask(method, service, path, body, query)

    def find(self, service: str, path: str, **query: str) -> dict[str, Any] | None:
        """Return the resource at a path; None where there is none. Raises FleetError."""
        with translate_errors():
            try:
                return self._ask("GET", service, path, None, query)
            except ApiError as exc:
                if exc.status == 404:
                    return None
                raise

    def pages(self, method: str, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield all pages of a list at Compute Engine. Raises FleetError."""
        token = ""
        while True:
            page = self.ask(method, "compute", path, None, **query, **({"pageToken": token} if token else {}))
            yield page
            if not (token := page.get("nextPageToken", "")):
                return

    def remove(self, service: str, path: str) -> None:
        """Delete the resource at a path, and wait until it is gone; it may be gone already. Raises FleetError."""
        deadline, asked = time.monotonic() + OPERATION_SECONDS, False
        while self.find(service, path) is not None:
            with translate_errors():
                try:
                    if not asked:
                        self._ask("DELETE", service, path, None, {})
                        asked = True
                except ApiError as exc:
                    # Something that goes as well may still be in it.
                    if exc.status != 404 and (exc.status not in (400, 409) or time.monotonic() > deadline):
                        raise
            if time.monotonic() > deadline:
                raise FleetError(f"{path.rpartition('/')[2]} does not go", hint="try again in a while")
            time.sleep(_LOOK)

    def keys(self) -> dict[str, str]:
        """Return the variables that let a program use our account, as long as the token lives. Raises FleetError."""
        return {"GOOGLE_OAUTH_ACCESS_TOKEN": self._token(), "GOOGLE_PROJECT": self.project}

    def _ask(self, method: str, service: str, path: str, body: Any, query: Mapping[str, str]) -> dict[str, Any]:
        url = f"{find_api_url(service)}{path}"
        data = None if body is None else json.dumps(body).encode()
        said = {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"}
        if data is None and method == "POST":
            data = b""
        for left in reversed(range(_TRIES)):
            try:
                answer = ask_api(method, f"{url}?{urlencode(query)}" if query else url, said, data, limit=_LIMIT)
                return _read(f"{method} {url}", answer)
            except ApiError as exc:
                if not left or exc.status not in _SOON:
                    raise
            except ApiDown:  # all that we ask may be asked twice
                if not left:
                    raise
            time.sleep(_PAUSE)
        raise AssertionError("unreachable")

    def _token(self) -> str:
        if given := next((value for name in _TOKENS if (value := os.environ.get(name))), ""):
            return given
        from google.auth.exceptions import GoogleAuthError

        with self._finding:
            try:
                return self._fresh()
            except GoogleAuthError as exc:
                with translate_errors():
                    raise ApiError("asking for a token", 0, str(exc)) from exc
        raise AssertionError("unreachable")

    def _fresh(self) -> str:
        import google.auth
        from google.auth.transport.requests import Request

        if self._credentials is None:
            self._credentials, _ = google.auth.default(scopes=[_SCOPE])
        if not self._credentials.valid:
            self._credentials.refresh(Request())
        return str(self._credentials.token)


def _read(what: str, answer: bytes) -> dict[str, Any]:
    """Return an answer's JSON. Raises ApiDown where it is none: another server answered."""
    try:
        found = json.loads(answer) if answer.strip() else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ApiDown(f"{what}: {NO_JSON} {answer[:80]!r}")
    return found


def open_account(project: str, region: str) -> GcpAccount:
    """Return our account in a project and a region. Raises FleetError where a package is not installed."""
    for package, what in (
        ("google.auth", "credentials of Google's are read by google-auth"),
        ("pulumi_gcp", "machines of Google's are made by pulumi-gcp"),
    ):
        if not _installed(package):
            raise FleetError(f"{what}, which is not installed here", hint=origin.hint_install("gcp"))
    return GcpAccount(project, region)


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is in
        return False
