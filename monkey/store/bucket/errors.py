"""What goes wrong with a bucket, in our words: the one place that reads a cloud's errors.

obstore tells of them in text, with the server's own answer in it: its <Code> says most.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import NamedTuple

from monkey.errors import KeyMissing, StoreError, StoreForbidden, StoreRefused, StoreUnavailable
from monkey.store.bucket import google_credentials
from monkey.store.bucket.url import BucketUrl
from monkey.store.keys import shorten_key


class StoreOperation(Enum):
    """What was tried."""

    CREATE = "create"
    WRITE = "write"
    READ = "read"
    LIST = "list"
    DELETE = "delete"


#: What must be allowed, by scheme.
PERMISSIONS = {
    "s3": {
        StoreOperation.CREATE: "s3:PutObject",
        StoreOperation.WRITE: "s3:PutObject",
        # Without the second, S3 answers 403, not 404, where nothing is.
        StoreOperation.READ: "s3:GetObject and s3:ListBucket",
        StoreOperation.LIST: "s3:ListBucket",
        StoreOperation.DELETE: "s3:DeleteObject",
    },
    "gs": {
        StoreOperation.CREATE: "storage.objects.create",
        StoreOperation.WRITE: "storage.objects.create and storage.objects.delete",
        StoreOperation.READ: "storage.objects.get and storage.objects.list",
        StoreOperation.LIST: "storage.objects.list",
        StoreOperation.DELETE: "storage.objects.delete",
    },
    "az": dict.fromkeys(StoreOperation, "the role 'Storage Blob Data Contributor' on the container"),
}

#: Where credentials come from, by scheme.
SOURCES = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws configure`",
    "gs": "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
    "az": "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY (or AZURE_STORAGE_CONNECTION_STRING), or run `az login`",
}

_RENEW = {
    "s3": "renew them (`aws sso login`, or new AWS_* variables)",
    "gs": "renew them: `gcloud auth application-default login`",
    "az": "renew them: `az login`, or a new SAS token",
}

_NO_KEY = {"NoSuchKey", "BlobNotFound", "ResourceNotFound"}
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"}
_UNKNOWN = {
    "InvalidAccessKeyId",
    "InvalidToken",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "AuthenticationFailed",
    "InvalidAuthenticationInfo",
    "Unauthenticated",
    "AuthenticationRequired",
    "NoAuthenticationInformation",
}
_REGION = {
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "TemporaryRedirect",
}
#: 4xx that a second try may fix.
_PASSING = {"RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "SlowDown", "TooManyRequests"}

#: Addresses at which a cloud's machines ask who they are: asked last, when nothing else gave credentials.
_METADATA = ("169.254.169.254", "169.254.170.2", "metadata.google.internal", "Error performing token request")


class _Told(NamedTuple):
    """What an error's text says."""

    text: str
    #: HTTP status; 0: no answer.
    status: int
    code: str
    message: str
    #: Whether an earlier try of the same request may have been carried out.
    retried: bool


def _whose(address: BucketUrl) -> str:
    """Say which credentials were used, as far as that is known here; never a secret."""
    env = os.environ
    if address.scheme == "s3":
        profile = address.options.get("profile")
        if not profile and (key := env.get("AWS_ACCESS_KEY_ID")):
            return f"access key {key}, from AWS_ACCESS_KEY_ID"
        name = profile or env.get("AWS_PROFILE") or "default"
        return f"the profile {name!r}, or else this machine's role"
    if address.scheme == "gs":
        file = env.get("GOOGLE_APPLICATION_CREDENTIALS")
        return f"those in {file}" if file else "gcloud's application-default, or else this machine's service account"
    account = address.options.get("account") or env.get("AZURE_STORAGE_ACCOUNT") or "of the environment"
    return f"those for the storage account {account}"


def _read(exc: Exception) -> _Told:
    text = str(exc)
    status = re.search(r"status code: (\d{3})", text) or re.search(r"status: (\d{3})", text)
    code, message = re.search(r"<Code>(.*?)</Code>", text), re.search(r"<Message>(.*?)</Message>", text, re.DOTALL)
    return _Told(
        text,
        int(status[1]) if status else 0,
        code[1] if code else "",
        " ".join(message[1].split())[:300] if message else "",
        re.search(r"after [1-9]\d* retries", text) is not None,
    )


def explain_refusal(exc: Exception, address: BucketUrl) -> StoreRefused:
    """Return the error to raise where obstore refuses to make a client; values that obstore cites are left out."""
    said = re.sub(r"\"[^\"]*\"|`[^`]*`", "…", str(exc).partition("Debug source")[0])
    if lacks := re.search(r"Missing (SecretAccessKey|AccessKeyId)", said):
        names = ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")
        missing, given = names if lacks[1] == "SecretAccessKey" else reversed(names)
        why = f"expected credentials, found {given} without {missing}"
    elif address.scheme == "gs" and (file := google_credentials.explain_unusable()):
        why = f"expected credentials, found none that can be used: {file}"
    else:
        why = f"no client can be made of what the environment says: {' '.join(said.split())[:300]}"
    return StoreRefused(f"the store {address.url}: {why}", hint=SOURCES[address.scheme])


def translate_bucket_error(exc: Exception, address: BucketUrl, verb: StoreOperation, key: str = "") -> StoreError:
    """Return the error to raise for what obstore raised."""
    told = _read(exc)
    error = _error(told, exc, address, verb, key)
    if verb is StoreOperation.CREATE and told.retried and not isinstance(error, StoreUnavailable):
        # The first of several tries may have been carried out: a refusal would promise that nothing was written.
        return StoreUnavailable(error.message, hint=error.hint)
    return error


def _error(told: _Told, exc: Exception, address: BucketUrl, verb: StoreOperation, key: str) -> StoreError:
    """Look at what is most specific first."""
    where, whose = f"the store {address.url}", _whose(address)
    if told.code in _NO_BUCKET:
        return _no_bucket(address)
    if told.code in _NO_KEY or (isinstance(exc, FileNotFoundError) and not told.code):
        return KeyMissing(key)
    if any(place in told.text for place in _METADATA):
        return StoreRefused(f"{where}: expected credentials, found none", hint=SOURCES[address.scheme])
    if (provider := re.search(r"External \w+ credential provider: (.*)", told.text)) is not None:
        said = f"{where}: the credentials could not be fetched: {provider[1][:300]}"
        return StoreRefused(said, hint=_RENEW[address.scheme])
    if told.code in _EXPIRED or "expired" in told.message.lower():
        return StoreRefused(
            f"{where}: the credentials have expired ({_said(told)}): {whose}", hint=_RENEW[address.scheme]
        )
    if told.code in _UNKNOWN or told.status == 401:
        return StoreRefused(
            f"{where}: the credentials are not accepted ({_said(told)}): {whose}", hint=SOURCES[address.scheme]
        )
    if told.code in _REGION or "Received redirect" in told.text:
        return _wrong_region(told, address)
    if told.code == "RequestTimeTooSkewed":
        return StoreRefused(f"{where}: this machine's clock is wrong ({_said(told)})", hint="set it (NTP)")
    if told.status == 403 and "quota" not in told.code.lower():
        return _forbidden(told, address, verb, key)
    return _rest(told, where)


def _no_bucket(address: BucketUrl) -> StoreRefused:
    """Not StoreMissing: there, a store would be created, and a bucket is made by the user who pays for it."""
    what = "container" if address.scheme == "az" else "bucket"
    makes = "" if address.options.get("endpoint") else {"s3": "aws", "gs": "gcp"}.get(address.scheme, "")
    how = f" (`monkey init --provider {makes} --create-bucket` does)" if makes else ""
    return StoreRefused(
        f"the store {address.url}: there is no {what} {address.bucket!r}",
        hint=f"create the {what}{how}, or correct 'store:' in monkey.yaml",
    )


def _wrong_region(told: _Told, address: BucketUrl) -> StoreRefused:
    expected = re.search(r"expecting '([\w-]+)'", told.message)
    region = address.options.get("region", "the environment's, or us-east-1")
    is_in = f"in {expected[1]}" if expected else "in another region"
    hint = f"write region: {expected[1]}" if expected else "`aws s3api get-bucket-location --bucket NAME` tells which"
    return StoreRefused(
        f"the store {address.url}: wrong region: asked in {region}, the bucket is {is_in}",
        hint=f"{hint} (in 'store:', or as ?region= in its URL)",
    )


def _forbidden(told: _Told, address: BucketUrl, verb: StoreOperation, key: str) -> StoreForbidden:
    what = f"{verb.value} {shorten_key(key)!r}" if key else verb.value
    return StoreForbidden(
        f"the store {address.url}: these credentials may not {what} ({_said(told)}): {_whose(address)}",
        hint=f"it takes {PERMISSIONS[address.scheme][verb]}; the documentation's page on stores has a minimal policy",
    )


def _rest(told: _Told, where: str) -> StoreError:
    if told.status == 0:
        return _no_answer(told, where)
    if told.status >= 500 or told.status in (408, 409, 429) or told.code in _PASSING:
        return StoreUnavailable(f"{where}: it cannot answer now ({_said(told)})")
    return StoreRefused(f"{where}: it refused ({_said(told)})")


def _no_answer(told: _Told, where: str) -> StoreError:
    """Say why there was no answer; obstore's text has the reasons, from reqwest, innermost last."""
    host = re.search(r"https?://([^/\s?]+)", told.text)
    name = host[1] if host else "the server"
    if "certificate" in told.text.lower():
        return StoreRefused(
            f"{where}: the certificate of {name} is not trusted", hint="install its CA on this machine, or use its name"
        )
    if "dns error" in told.text:
        return StoreUnavailable(f"{where}: the host {name} is not found", hint="check the network, and 'endpoint'")
    if "TimedOut" in told.text:
        return StoreUnavailable(f"{where}: {name} does not answer in time", hint="check the network")
    if "tcp connect error" in told.text or "Connect" in told.text:
        return StoreUnavailable(f"{where}: {name} cannot be reached", hint="check the network, and 'endpoint'")
    if "HTTP error" in told.text:
        return StoreUnavailable(f"{where}: the connection to {name} broke")
    return StoreUnavailable(f"{where}: {told.text.partition('Debug source')[0].strip()[:300]}")


def _said(told: _Told) -> str:
    """Return what the server said, in its own words."""
    return ": ".join(filter(None, (told.code or f"HTTP {told.status}", told.message)))
