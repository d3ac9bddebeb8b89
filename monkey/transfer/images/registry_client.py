"""Questions to a registry of images, by the API that all registries have (OCI distribution): the digest of a tag."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from monkey.errors import ImageError
from monkey.spec.job.image_reference import ImageReference, is_image_digest
from monkey.transfer.images.registry_login import RegistryLogin

#: Where the API of Docker's registry is, which has another name in images.
_HOSTS = {"docker.io": "registry-1.docker.io"}
#: Kinds of manifests: of images for several platforms first, since their digest fits all machines.
_ACCEPTED = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
#: Seconds that a registry may be silent, and bytes of an answer that are read (registries take manifests of 4 MiB).
_SILENT_SECONDS, _ANSWER_LIMIT = 20.0, 8 << 20
#: Tries of a request that was not answered, and seconds between them.
_TRIES, _PAUSE_SECONDS = 3, 0.5
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_HIDDEN = re.compile(r"[^\w\s!-~]|[^\S ]")


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: what is sent there would have the user's login."""

    def redirect_request(self, *_: Any) -> None:
        return None


class RegistryClient:
    """One registry, asked by a user's login, or by an anonymous user."""

    def __init__(self, registry: str, login: RegistryLogin | None = None) -> None:
        """Ask the registry of this name, as it stands in images."""
        self._registry, self._login = registry, login
        self._host = _HOSTS.get(registry, registry)
        self._loopback = _is_loopback(registry)
        # Never by a proxy where it is this machine.
        proxies = [urllib.request.ProxyHandler({})] if self._loopback else []
        self._opener = urllib.request.build_opener(_NoRedirects, *proxies)
        self._scheme, self._authorization = "https", ""

    def resolve(self, image: ImageReference) -> str:
        """Return the digest, sha256:…, that the image's tag names now. Raises ImageError."""
        path = f"/v2/{image.repository}/manifests/{image.tag}"
        answer = self._ask("HEAD", path, image)
        digest = answer.headers.get("docker-content-digest", "")
        if answer.status == 200 and not digest:
            answer = self._ask("GET", path, image)
            digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
        if answer.status != 200:
            raise self._explain(answer, image)
        if not is_image_digest(digest):
            raise ImageError(f"{self._registry}: expected a digest sha256:…, found another answer for {image}")
        return digest

    def speaks_plain_http(self) -> bool:
        """Say whether this is a registry of this machine without HTTPS. Another one is not asked. Raises ImageError."""
        if self._loopback:
            self._try("HEAD", "/v2/")
        return self._scheme == "http"

    def _ask(self, method: str, path: str, image: ImageReference) -> _Answer:
        answer = self._try(method, path)
        challenge = answer.headers.get("www-authenticate", "")
        if answer.status == 401 and challenge:
            self._authorization = self._authorize(challenge, image)
            answer = self._try(method, path) if self._authorization else answer
        return answer

    def _try(self, method: str, path: str) -> _Answer:
        headers = {"Accept": _ACCEPTED}
        headers |= {"Authorization": self._authorization} if self._authorization else {}
        try:
            return self._send(method, f"{self._scheme}://{self._host}{path}", headers)
        except ssl.SSLError as exc:
            # As docker does: a registry of this machine need not have a certificate.
            if self._loopback and self._scheme == "https" and exc.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
                self._scheme = "http"
                return self._try(method, path)
            raise ImageError(
                f"{self._registry}: no safe connection ({exc.reason or exc})",
                hint="its certificate must be one that this machine trusts; SSL_CERT_FILE names others",
            ) from exc

    def _authorize(self, challenge: str, image: ImageReference) -> str:
        """Return the `Authorization` that a challenge asks for; "" where there is none to give. Raises ImageError."""
        kind, _, rest = challenge.partition(" ")
        said = dict(_CHALLENGE.findall(rest))
        if kind.lower() == "basic":
            return self._login.basic if self._login else ""
        if kind.lower() != "bearer" or not self._is_safe(said.get("realm", "")):
            raise ImageError(
                f"{self._registry}: expected to be asked for a login by Basic or Bearer over https, found another way"
            )
        scope = {"scope": f"repository:{image.repository}:pull"}
        query = urlencode(({"service": said["service"]} if "service" in said else {}) | scope)
        url = f"{said['realm']}{'&' if '?' in said['realm'] else '?'}{query}"
        answer = self._send("GET", url, {"Authorization": self._login.basic} if self._login else {})
        try:
            data = json.loads(answer.body) if answer.status == 200 else {}
            token = data.get("token") or data.get("access_token") or ""
        except (ValueError, AttributeError):
            token = ""
        if answer.status == 200 and isinstance(token, str) and re.fullmatch(r"[!-~]+", token):
            return f"Bearer {token}"
        raise self._explain(answer, image)

    def _is_safe(self, realm: str) -> bool:
        """Say whether a login may be sent to the place that gives tokens."""
        parts = urlsplit(realm)
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.netloc) and self._loopback)
        return safe and bool(parts.hostname) and not parts.username

    def _send(self, method: str, url: str, headers: Mapping[str, str]) -> _Answer:
        """Send a request, again where no answer came. Raises ImageError, SSLError."""
        for left in reversed(range(_TRIES)):
            try:
                request = urllib.request.Request(url, headers={"User-Agent": "monkey", **headers}, method=method)
                try:
                    with self._opener.open(request, timeout=_SILENT_SECONDS) as answer:
                        return _read(answer.status, answer)
                except urllib.error.HTTPError as exc:
                    with exc:
                        read = _read(exc.code, exc)
                    if read.status < 500 or not left:
                        return read
            except (OSError, http.client.HTTPException, ValueError) as exc:
                reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
                if isinstance(reason, ssl.SSLError):
                    raise reason from exc
                if not left or isinstance(reason, TimeoutError):
                    told = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
                    raise ImageError(
                        f"the registry {urlsplit(url).netloc} does not answer: {_HIDDEN.sub('', told)[:200]}",
                        hint="is this machine online? An image that is named by NAME@sha256:… is not looked up",
                    ) from None
            time.sleep(_PAUSE_SECONDS)
        raise AssertionError("the last try returns or raises")

    def _explain(self, answer: _Answer, image: ImageReference) -> ImageError:
        said = _say_errors(answer.body)
        if answer.status == 404:
            return ImageError(f"{self._registry} has no image {image}{said}", hint="check the name and the tag")
        if answer.status in (401, 403):
            who = f"the login of {self._login.place}" if self._login else "users without a login"
            return ImageError(
                f"{self._registry} refuses {who} the image {image}{said}",
                hint=f"check the name; for a private image, run `podman login {self._registry}` or `docker login`",
            )
        if answer.status == 429:
            return ImageError(
                f"{self._registry} takes no more questions of this machine for now{said}",
                hint="wait, log in, or name the image by its digest: NAME@sha256:…",
            )
        return ImageError(f"{self._registry}: expected the digest of {image}, found HTTP status {answer.status}{said}")


def _read(status: int, answer: Any) -> _Answer:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return _Answer(status, headers, answer.read(_ANSWER_LIMIT))


def _say_errors(body: bytes) -> str:
    """Return the registry's own words, fit for a terminal; "" for none."""
    try:
        errors = json.loads(body).get("errors") or ()
        said = "; ".join(str(one["message"]) for one in errors if one.get("message"))
    except (ValueError, AttributeError, TypeError, KeyError):
        return ""
    return f" ({_HIDDEN.sub('', said)[:200]})" if said else ""


def _is_loopback(registry: str) -> bool:
    host = registry.rpartition(":")[0] if registry.rpartition(":")[2].isdigit() and ":" in registry else registry
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
