"""Requests to a cloud, from a machine of its own: by Python alone, since a machine that boots has nothing else."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import TypeVar

_T = TypeVar("_T")

#: What a cloud answers where it may be otherwise in a moment: rights reach all of its servers late. Some of Amazon's
#: services say all of it by 400, and a word.
SOON = (401, 403, 408, 425, 429)
WORDS = ("AccessDenied", "Throttl", "InProgress", "NotReady")


class ApiError(Exception):
    """The cloud answered, and did not do it."""

    def __init__(self, what: str, status: int, said: str) -> None:
        """Tell `what` was asked, and the cloud's `status` and words."""
        super().__init__(f"{what}: {status} {' '.join(said.split())[:500]}".strip())
        self.status, self.said = status, said

    @property
    def passing(self) -> bool:
        """Say whether it may be otherwise in a moment."""
        return self.status in SOON or self.status >= 500 or any(word in self.said for word in WORDS)


class ApiDown(Exception):
    """The cloud did not answer."""


def ask_api(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limit: float = 10.0,
    direct: bool = False,
) -> bytes:
    """Return what was answered within `limit` seconds a read; `direct`: no proxy. Raises ApiError, ApiDown."""
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)
    proxies = [urllib.request.ProxyHandler({})] if direct else []
    what = f"{method} {url.partition('?')[0]}"
    try:
        with urllib.request.build_opener(*proxies).open(request, timeout=limit) as answer:
            data: bytes = answer.read()
            return data
    except urllib.error.HTTPError as exc:
        with exc:
            raise ApiError(what, exc.code, exc.read(4096).decode(errors="replace")) from None
    except (OSError, EOFError, ValueError) as exc:  # also a body that was cut short
        raise ApiDown(f"{what}: {getattr(exc, 'reason', None) or exc}") from None
    except Exception as exc:  # http.client's own have no common name with these
        raise ApiDown(f"{what}: {exc!r}") from None


def retry_ask(try_it: Callable[[], _T], patience: float, silent: float | None = None, pause: float = 2.0) -> _T:
    """Return what `try_it` does, tried for `patience` seconds while that may help. Raises ApiError, ApiDown.

    `silent`: how many of these seconds for who does not answer at all, all by default; `pause`: seconds between tries.
    """
    began = time.monotonic()
    while True:
        try:
            return try_it()
        except ApiError as exc:
            if time.monotonic() > began + patience or not exc.passing:
                raise
        except ApiDown:
            if time.monotonic() > began + (patience if silent is None else silent):
                raise
        time.sleep(pause)
