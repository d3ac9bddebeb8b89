"""Addresses of buckets: `s3://bucket/prefix?region=…&endpoint=…`, `gs://…`, `az://container/prefix?account=…`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from monkey.errors import StoreError
from monkey.spec.project.store_url import STORE_URL_OPTIONS, add_url_options
from monkey.spec.yaml.mistakes import suggest_word
from monkey.store.keys import check_key

#: What a bucket can be called, on any cloud; each has rules of its own besides.
_BUCKET = re.compile(r"[$A-Za-z0-9][A-Za-z0-9._-]{0,254}")
#: What becomes a part of the cloud's host name: any other sign could make another host of it, which got credentials.
_NAME_PARTS = {"region": re.compile(r"[A-Za-z0-9_-]{1,63}"), "account": re.compile(r"[A-Za-z0-9-]{1,63}")}


@dataclass(frozen=True)
class BucketUrl:
    """A bucket's URL, taken apart."""

    scheme: str
    #: Azure calls it a container.
    bucket: str
    #: Without slashes at its ends; "" for the whole bucket.
    prefix: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The one form of it."""
        path = f"/{quote(self.prefix)}" if self.prefix else ""
        return add_url_options(f"{self.scheme}://{self.bucket}{path}", self.options)

    @property
    def endpoint(self) -> str | None:
        """Where requests go, if not to the cloud's own host; what Amazon's tools read from the environment counts."""
        asked = self.options.get("endpoint")
        if asked is None and self.scheme == "s3":
            asked = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return asked


def parse_bucket_url(url: str) -> BucketUrl:
    """Take `url` apart; raises StoreError where something is wrong with it."""
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as exc:
        raise _wrong(url, "it is no URL", "write s3://bucket/prefix") from exc
    scheme = parts.scheme.lower()
    if "@" in parts.netloc:
        raise _wrong(url.replace(parts.netloc, "…"), "it has credentials in it", "leave them to the environment")
    if not parts.netloc or parts.fragment:
        raise _wrong(
            url, "it names no bucket" if not parts.netloc else "it has a '#'", f"write {scheme}://bucket/prefix"
        )
    if not _BUCKET.fullmatch(parts.netloc):
        raise _wrong(url, f"{parts.netloc!r} names no bucket", "letters, digits, '.', '_' and '-' can")
    return BucketUrl(scheme, parts.netloc, _prefix(url, parts.path), _options(url, scheme, given))


def _prefix(url: str, path: str) -> str:
    prefix = unquote(path).strip("/")
    try:
        return check_key(prefix) if prefix else ""
    except ValueError as exc:
        raise _wrong(url, str(exc), "name a plain prefix, such as team/sweeps") from exc


def _options(url: str, scheme: str, given: list[tuple[str, str]]) -> dict[str, str]:
    known = STORE_URL_OPTIONS[scheme]
    options = dict(given)
    if len(options) < len(given):
        raise _wrong(url, "an option is there twice", "leave one out")
    for name, value in options.items():
        if name not in known:
            raise _wrong(url, f"a store at {scheme}:// has no option {name!r}", suggest_word(name, known, "options"))
        if not value:
            raise _wrong(url, f"{name!r} is empty", "give it a value, or leave it out")
        if name in _NAME_PARTS and not _NAME_PARTS[name].fullmatch(value):
            raise _wrong(url, f"{value!r} is no {name}", "letters, digits and '-' can")
    if "endpoint" in options:
        options["endpoint"] = _endpoint(url, options["endpoint"])
    return options


def _endpoint(url: str, endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or "@" in parts.netloc:
        raise _wrong(url, f"expected an endpoint such as https://host:9000, found {endpoint!r}", "check 'endpoint'")
    return endpoint.rstrip("/")


def _wrong(url: str, why: str, hint: str) -> StoreError:
    # Without its query: somebody may have put a password there.
    return StoreError(f"the store's URL {url.partition('?')[0]}: {why}", hint=hint)
