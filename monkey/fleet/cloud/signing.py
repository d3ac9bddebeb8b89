"""Amazon's signature of a request, version 4, for requests that are known whole and have no query."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class AwsKeys:
    """What a role is given for a while."""

    id: str
    secret: str
    token: str


def sign_request(
    method: str, url: str, region: str, service: str, keys: AwsKeys, body: bytes, headers: Mapping[str, str], now: float
) -> dict[str, str]:
    """Return the headers of a request, with its signature at `now` (seconds since 1970). The URL is quoted already."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    parts, digest = urlsplit(url), hashlib.sha256(body).hexdigest()
    said = {**headers, "X-Amz-Date": moment, "X-Amz-Content-SHA256": digest}
    if keys.token:
        said["X-Amz-Security-Token"] = keys.token
    all_said = sorted((name.lower(), value.strip()) for name, value in {**said, "Host": parts.netloc}.items())
    names = ";".join(name for name, _ in all_said)
    lines = "".join(f"{name}:{value}\n" for name, value in all_said)
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    asked = hashlib.sha256(f"{method}\n{parts.path or '/'}\n\n{lines}\n{names}\n{digest}".encode()).hexdigest()
    key = f"AWS4{keys.secret}".encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{asked}".encode(), "sha256").hex()
    said["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return said
