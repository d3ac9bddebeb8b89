"""Requests to a forge's REST API: where a token may be sent, how long a forge may take, and what its refusals mean.

No redirect is followed: the token is for the host that was named. Forges answer 403 or 429 to those who ask too often,
and say when they may ask again; that is waited for, within bounds.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from monkey.errors import ForgeAway, ForgeError, ForgeRefused
from monkey.forge.rest_answer import RestAnswer, RestFields, check_list, read_answer

#: Seconds that a forge may be silent, and that are waited between the tries of one request at its own wish.
_SILENT, _PATIENCE = 20.0, 120.0
#: Pages of a list that are read at most: no forge of good will sends more.
_PAGE_LIMIT = 200
#: Entries of a page that are asked for. GitHub and GitLab give at most 100; Gitea, by default, at most 50.
_PAGE = 100
#: Tries of a request that the forge does not answer, or that does not get through to it.
_TRIES = 4
_TRANSIENT = (502, 503, 504)
#: Methods after whose 500 the same is asked again: Gitea answers so where another changes the same comment at that
#: moment. A GET's 500 says there that something is not there, and a POST could be done twice.
_REPEATABLE = ("PATCH", "PUT", "DELETE")
_HIDDEN = re.compile(r"[^\S ]|[^\w\s!-~]")


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: what is sent there would have our token."""

    def redirect_request(self, *_: Any) -> None:
        return None


def check_api_url(api: str, *, trusted: bool = False) -> str:
    """Return a forge's URL without a `/` at its end. Raises ForgeError where a token may not be sent there.

    `trusted`: CI itself named the URL, and it may be of plain http, as in a laboratory's own network.
    """
    parts = urlsplit(api)
    safe = parts.scheme == "https" or (parts.scheme == "http" and (trusted or _is_loopback(parts.hostname or "")))
    if not safe or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise ForgeError(
            f"expected a forge's API at https://HOST/…, found {parts.scheme}://{parts.hostname or ''}{parts.path}",
            hint="a token is sent there: use https, and put no user, password or `?` into the URL",
        )
    return api.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class RestClient:
    """One forge, asked by one token."""

    def __init__(
        self,
        api: str,
        headers: Mapping[str, str],
        token: str,
        wait: Callable[[float], None] = time.sleep,
        place: str = "",
        silent: float = _SILENT,
    ) -> None:
        """Keep where the forge is (see `check_api_url`) and the headers, of which one holds the token.

        `place`: where people put the token. `silent`: seconds that the forge may be silent.
        """
        self.api, self._token, self._wait, self._place, self._silent = api, token, wait, place, silent
        self._headers = {"Accept": "application/json", "User-Agent": "monkey", **headers}
        # Never by a proxy where it is plain http, or this machine: the proxy would read the token.
        proxies = [] if api.startswith("https://") else [urllib.request.ProxyHandler({})]
        self._opener = urllib.request.build_opener(_Unfollowed, *proxies)

    def ask(
        self, method: str, path: str, body: Any = None, *, needs: str = "", allow: tuple[int, ...] = (), url: str = ""
    ) -> RestAnswer:
        """Send a request and return the answer, which is a success, or one of the statuses `allow`.

        `needs`: the permission that a refusal means to lack. `url`: what stands before `path`, in the API's place.
        Raises ForgeError: ForgeAway, once no answer came for as long as a forge may be silent.
        """
        waited, until = 0.0, time.monotonic() + self._silent
        for tries in range(1, _TRIES + 1):
            answer = self._try(method, (url or self.api) + path, body, until if tries < _TRIES else 0.0)
            delay = None if answer is not None and answer.status in allow else _find_delay(answer, method, tries)
            if delay is None or tries == _TRIES:
                break
            if waited + delay > _PATIENCE:
                raise ForgeError(
                    f"{self._name(method, path)}: the forge takes no more requests for {delay:.0f} s",
                    hint="run this again later; or use a token of its own for monkey, which others do not use up",
                )
            self._wait(delay)
            waited += delay
        assert answer is not None  # the last try raises
        if answer.status // 100 == 2 or answer.status in allow:
            return answer
        raise self._explain(answer, method, path, needs)

    def list_all(
        self, path: str, *, needs: str = "", allow: tuple[int, ...] = (), **query: str
    ) -> Iterator[RestFields]:
        """Yield the entries of a list, page after page; none where the answer's status is one of `allow`."""
        for page in range(1, _PAGE_LIMIT + 1):
            # `limit` is Gitea's word for it.
            asked = urlencode({**query, "per_page": _PAGE, "limit": _PAGE, "page": page})
            answer = self.ask("GET", f"{path}?{asked}", needs=needs, allow=allow)
            if answer.status in allow:
                return
            yield from check_list(answer.data, answer.asked)
            # Not the URL that stands there: a token is sent where we were told to send it, and nowhere else.
            if 'rel="next"' not in answer.headers.get("link", ""):
                return
        raise ForgeError(f"{self._name('GET', path)}: expected at most {_PAGE_LIMIT} pages, found more")

    def _try(self, method: str, url: str, body: Any, until: float) -> RestAnswer | None:
        """Send it once; None where the forge did not answer. Raises ForgeAway in its place after `until`."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **({} if data is None else {"Content-Type": "application/json"})}
        asked = f"{method} {url.partition('?')[0]}"
        try:
            request = urllib.request.Request(url, data, headers, method=method)
            try:
                with self._opener.open(request, timeout=self._silent) as answer:
                    return read_answer(answer.status, answer, asked)
            except urllib.error.HTTPError as exc:
                with exc:
                    return read_answer(exc.code, exc, asked)
        except (OSError, http.client.HTTPException) as exc:
            # URLError is an OSError. Who was silent for so long is not asked again.
            if time.monotonic() < until:
                return None
            told = _tell_failure(exc, self._silent)
            raise ForgeAway(
                f"the forge at {self.api} does not answer: {told}", hint="run this again once it does"
            ) from None
        except ValueError:
            raise ForgeError(
                f"{asked}: expected a token and a URL that HTTP takes, found other characters in one of them",
                hint="see `forge:` in monkey.yaml, and whether the token was copied as a whole, in one line",
            ) from None

    def _explain(self, answer: RestAnswer, method: str, path: str, needs: str) -> ForgeError:
        said, name = self._say(answer), self._name(method, path)
        if answer.status == 401:
            return ForgeRefused(
                f"{name}: the forge does not know the token{said}",
                hint="it is wrong, was revoked, or its job has ended: "
                + (f"put a new one into {self._place}" if self._place else "give monkey a new one"),
            )
        if 300 <= answer.status < 400:
            host = urlsplit(answer.headers.get("location", "")).hostname or "another place"
            return ForgeError(
                f"{name}: expected an answer, found a redirect to {host}, where no token is sent",
                hint="has the repository another name now? Use that one",
            )
        if answer.status in (403, 404) and needs:
            # GitHub says which permissions would do; fine-grained tokens have these names.
            lacks = answer.headers.get("x-accepted-github-permissions", "")
            hint = f"give the token `{needs}`" + (f" ({_HIDDEN.sub('', lacks)})" if lacks else "")
            return ForgeRefused(f"{name}: the forge refused ({answer.status}){said}", hint=hint)
        kind = ForgeRefused if answer.status < 500 else ForgeError
        return kind(f"{name}: the forge refused ({answer.status}){said}")

    def _name(self, method: str, path: str) -> str:
        return f"{method} {self.api}{path.partition('?')[0]}"

    def _say(self, answer: RestAnswer) -> str:
        data = answer.data if isinstance(answer.data, dict) else {}
        parts = [data.get("message") or data.get("error") or ""]
        parts += [error.get("message", "") for error in data.get("errors") or () if isinstance(error, dict)]
        text = "; ".join(str(part) for part in parts if part).replace(self._token, "***")
        return f": {_HIDDEN.sub('', text)[:300]}" if text else ""


def _tell_failure(exc: Exception, silent: float) -> str:
    """Return why there was no answer, in words for people."""
    reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
    if isinstance(reason, TimeoutError):
        return f"nothing came within {silent:.0f} s"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    if isinstance(reason, ConnectionError | http.client.IncompleteRead):
        return "it closed the connection"
    return "expected an answer by HTTP, found something else"


def _find_delay(answer: RestAnswer | None, method: str, tries: int) -> float | None:
    """Return the seconds after which the same may be asked again; None where that changes nothing."""
    if answer is None or answer.status in _TRANSIENT or (answer.status == 500 and method in _REPEATABLE):
        return float(2 ** (tries - 1))
    if answer.status not in (403, 429):
        return None
    with_limit = answer.headers
    if (after := with_limit.get("retry-after", "")).isdecimal():
        return float(after)
    if (
        with_limit.get("x-ratelimit-remaining") == "0"
        and (reset := with_limit.get("x-ratelimit-reset", "")).isdecimal()
    ):
        return max(1.0, float(reset) - time.time())
    # GitHub asks for a minute where it does not say how long.
    return 60.0 if answer.status == 429 or _is_secondary_limit(answer) else None


def _is_secondary_limit(answer: RestAnswer) -> bool:
    said = answer.data.get("message", "") if isinstance(answer.data, dict) else ""
    return answer.status == 403 and "secondary rate limit" in str(said).lower()
