"""What requests and answers look like: S3's XML, which Google's XML interface speaks, too."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.bucket.objects import Object


@dataclass(frozen=True)
class Request:
    """One request, taken apart."""

    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """What it is, in the words of price lists: PUT, LIST, GET, DELETE; and MULTIPART for what is about parts."""
        if "uploads" in self.query or "uploadId" in self.query:
            return "MULTIPART"
        if self.method == "GET" and not self.key:
            return "LIST"
        return self.method

    @property
    def if_absent(self) -> bool:
        """Whether it is to be written only where nothing is: S3's way to say it, or Google's."""
        return self.headers.get("if-none-match") == "*" or self.headers.get("x-goog-if-generation-match") == "0"

    @property
    def signer(self) -> str:
        """Whose key signed it, and for which region; "" where none did so in Amazon's way."""
        found = re.search(r"Credential=([^/]+)/\d+/([^/]+)/", self.headers.get("authorization", ""))
        return f"{found[1]}/{found[2]}" if found else ""

    @property
    def range(self) -> tuple[int, int] | None:
        """First and last byte of what is asked for."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        return (int(found[1]), int(found[2] or 2**62)) if found else None


@dataclass(frozen=True)
class Answer:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def parse(method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes) -> Request:
    """Take a request apart; the bucket is the path's first part."""
    url = urlsplit(path)
    bucket, _, key = unquote(url.path).lstrip("/").partition("/")
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    return Request(method, bucket, key, query, {name.lower(): value for name, value in headers}, body)


def error(status: int, code: str, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """Return an error as S3 words it."""
    text = f"<Error><Code>{code}</Code><Message>{escape(message or code)}</Message></Error>"
    return _xml(text, status, headers)


def written(found: Object) -> Answer:
    """Return what a writer is told."""
    return Answer(headers={"ETag": found.etag, "x-goog-generation": str(found.generation)})


def read(found: Object, wanted: tuple[int, int] | None) -> Answer:
    """Return the object, or a range of it."""
    headers = {
        "ETag": found.etag,
        "x-goog-generation": str(found.generation),
        "Last-Modified": email.utils.formatdate(found.modified, usegmt=True),
        "Content-Type": "application/octet-stream",
    }
    if wanted is None:
        return Answer(200, found.data, headers)
    size = len(found.data)
    first, last = wanted[0], min(wanted[1], size - 1)
    if first >= size:
        return error(416, "InvalidRange")
    return Answer(206, found.data[first : last + 1], {**headers, "Content-Range": f"bytes {first}-{last}/{size}"})


def listing(items: list[tuple[str, Object]], more: bool) -> Answer:
    """Return one page of a listing; who wants the next one says where this one ended."""
    rows = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>{_time(found.modified)}</LastModified>"
        f"<ETag>{escape(found.etag)}</ETag><Size>{len(found.data)}</Size></Contents>"
        for key, found in items
    )
    token = f"<NextContinuationToken>{escape(items[-1][0])}</NextContinuationToken>" if more else ""
    head = f"<KeyCount>{len(items)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>{token}"
    return _xml(f"<ListBucketResult>{head}{rows}</ListBucketResult>")


def directories(names: list[str]) -> Answer:
    """Return a listing by a delimiter: the parts of keys that end with it."""
    rows = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in names)
    return _xml(f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>")


def upload_begun(name: str) -> Answer:
    """Return the name of a multipart upload."""
    return _xml(f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>")


def upload_ended(found: Object) -> Answer:
    """Return what an upload became."""
    return _xml(f"<CompleteMultipartUploadResult><ETag>{escape(found.etag)}</ETag></CompleteMultipartUploadResult>")


def _xml(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
    return Answer(status, body, {"Content-Type": "application/xml", **(headers or {})})


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))
