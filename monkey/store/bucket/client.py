"""Clients of obstore, with our patience, and credentials from where each cloud's own tools find them."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from monkey.errors import StoreError
from monkey.store.bucket import aws_profile
from monkey.store.bucket.errors import explain_refusal
from monkey.store.bucket.url import BucketUrl

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

#: Seconds for one request, whole; with its retries it must stay well below the time after which jobs are frozen.
_TIMEOUT_SECONDS = 8
#: Seconds for a request that carries a part of a large file.
TIMEOUT_BULK = 120
#: Seconds to reach the server.
TIMEOUT_CONNECT = 5

_RETRY_SETTINGS: RetryConfig = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2},
}


def make_clients(address: BucketUrl) -> tuple[ObjectStore, ObjectStore]:
    """Return two clients of `address`: one for small objects, and one for files. Raises StoreRefused, StoreError."""
    make = {"s3": _s3, "gs": _gs, "az": _az}[address.scheme]
    try:
        return make(address, _options(address, _TIMEOUT_SECONDS)), make(address, _options(address, TIMEOUT_BULK))
    except BaseError as exc:
        raise explain_refusal(exc, address) from None


def _options(address: BucketUrl, timeout: float) -> ClientConfig:
    # Whoever names an endpoint without TLS means it: a server of their own.
    plain = (address.endpoint or "").startswith("http://")
    return {
        "timeout": timedelta(seconds=timeout),
        "connect_timeout": timedelta(seconds=TIMEOUT_CONNECT),
        "allow_http": plain,
    }


def _s3(address: BucketUrl, options: ClientConfig) -> ObjectStore:
    profile = aws_profile.find_profile(address.options.get("profile"))
    region = address.options.get("region") or _first("AWS_REGION", "AWS_DEFAULT_REGION") or profile.region
    said: dict[str, Any] = {"region": region or "us-east-1"}
    if address.endpoint:
        said["endpoint"] = address.endpoint
    return S3Store(
        address.bucket,
        prefix=address.prefix or None,
        # One request a key: servers that imitate S3 need not know the other way, and we remove one at a time.
        config={**said, "disable_bulk_delete": True},  # type: ignore[arg-type]  # a TypedDict of its own
        client_options=options,
        retry_config=_RETRY_SETTINGS,
        credential_provider=profile.credentials,
    )


def _gs(address: BucketUrl, options: ClientConfig) -> ObjectStore:
    said: dict[str, Any] = {"base_url": address.endpoint} if address.endpoint else {}
    return GCSStore(
        address.bucket,
        prefix=address.prefix or None,
        config=said,  # type: ignore[arg-type]  # a TypedDict of its own
        client_options=options,
        retry_config=_RETRY_SETTINGS,
    )


def _az(address: BucketUrl, options: ClientConfig) -> ObjectStore:
    said = _azure_environment()
    said |= {"account_name": account} if (account := address.options.get("account")) else {}
    said |= {"endpoint": address.endpoint} if address.endpoint else {}
    if "account_name" not in said and not os.environ.get("AZURE_STORAGE_ACCOUNT_NAME"):
        raise StoreError(
            f"the store {address.url}: it does not say which storage account it is in",
            hint="write az://container/prefix?account=NAME, or set AZURE_STORAGE_ACCOUNT",
        )
    return AzureStore(
        address.bucket,
        prefix=address.prefix or None,
        config=said,  # type: ignore[arg-type]  # a TypedDict of its own
        client_options=options,
        retry_config=_RETRY_SETTINGS,
    )


def _azure_environment() -> dict[str, Any]:
    """Return what Azure's own tools read from the environment, and obstore does not."""
    names = {"AccountName": "account_name", "AccountKey": "account_key", "BlobEndpoint": "endpoint"}
    names |= {"SharedAccessSignature": "sas_key"}
    connection = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    pairs = (part.split("=", 1) for part in connection.split(";") if "=" in part)
    said: dict[str, Any] = {names[name]: value for name, value in pairs if name in names}
    for variable, name in (("AZURE_STORAGE_ACCOUNT", "account_name"), ("AZURE_STORAGE_KEY", "account_key")):
        if value := os.environ.get(variable):
            said.setdefault(name, value)
    given = any(os.environ.get(name) for name in os.environ if name.startswith("AZURE_") and name.endswith(_SECRETS))
    if not given and "account_key" not in said and "sas_key" not in said and shutil.which("az"):
        said["use_azure_cli"] = True
    return said


#: Ends of the names of variables that give Azure credentials.
_SECRETS = ("_KEY", "_TOKEN", "_SECRET", "_TOKEN_FILE", "_ENDPOINT")


def _first(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)
