"""How machines elsewhere reach a bucket: by the variables that this machine would use itself, and until when."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from monkey.errors import FleetError
from monkey.store.bucket.aws_profile import find_profile
from monkey.store.bucket.url import BucketUrl, parse_bucket_url

#: Variables that are handed on as they are, where they are set.
_AZURE = ("AZURE_STORAGE_", "AZURE_CLIENT_", "AZURE_TENANT_")
_AMAZON = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ALLOW_HTTP")
_AMAZON_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
#: Files of Google's, the first that is named.
_GOOGLE = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_APPLICATION_CREDENTIALS")


@dataclass(frozen=True)
class StoreCredentials:
    """What an agent's environment is to have, and what should be known of it."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: They end by themselves; `until`: when, where that is known.
    temporary: bool = False
    until: datetime | None = None

    def warning(self, now: datetime) -> str:
        """Return what a plan says of credentials that end; "" for those that do not."""
        if not self.temporary:
            return ""
        if self.until is None:
            when = "end by themselves"
        else:
            left = int((self.until - now).total_seconds() // 60)
            when = f"end at {self.until:%Y-%m-%d %H:%M} UTC, in {left // 60} h {left % 60} min"
        return (
            f"warning: the store's credentials {when}: agents that run longer lose the store. "
            "Apply again with new ones before, or use keys that do not end"
        )


def strip_profile(url: str) -> str:
    """Return the store's URL as an agent elsewhere writes it: profiles are none of its. Raises StoreError."""
    if not url.startswith("s3://"):
        return url
    address = parse_bucket_url(url)
    options = {name: value for name, value in address.options.items() if name != "profile"}
    return BucketUrl(address.scheme, address.bucket, address.prefix, options).url


def find_credentials(url: str) -> StoreCredentials:
    """Return what agents elsewhere need for the store at `url`. Raises FleetError, StoreError."""
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme == "s3":
        return _amazon(parse_bucket_url(url))
    if scheme == "gs":
        return StoreCredentials({} if parse_bucket_url(url).endpoint else _google())
    if scheme == "az":
        return StoreCredentials({name: value for name, value in os.environ.items() if name.startswith(_AZURE)})
    return StoreCredentials()


def _amazon(address: BucketUrl) -> StoreCredentials:
    profile = find_profile(address.options.get("profile"))
    said = {name: value for name in _AMAZON if (value := os.environ.get(name))}
    if profile.region and not {"AWS_REGION", "AWS_DEFAULT_REGION"} & said.keys():
        said["AWS_REGION"] = profile.region
    if profile.credentials is not None:
        keys = profile.credentials()
        said |= {"AWS_ACCESS_KEY_ID": keys["access_key_id"], "AWS_SECRET_ACCESS_KEY": keys["secret_access_key"]}
        said |= {"AWS_SESSION_TOKEN": token} if (token := keys.get("token")) else {}
    else:
        said |= {name: value for name in _AMAZON_KEYS if (value := os.environ.get(name))}
    return StoreCredentials(said, "AWS_SESSION_TOKEN" in said, _until(os.environ.get("AWS_CREDENTIAL_EXPIRATION", "")))


def _until(said: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(said)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _google() -> dict[str, str]:
    inline = os.environ.get("GOOGLE_SERVICE_ACCOUNT_KEY")
    if inline:
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": inline}
    named = next((path for name in _GOOGLE if (path := os.environ.get(name))), None)
    hint = "name the key file of a service account by GOOGLE_APPLICATION_CREDENTIALS: agents get what is in it"
    if named is None:
        raise FleetError("agents elsewhere have no credentials for a store at gs://", hint=hint)
    try:
        text = Path(named).expanduser().read_text()
        kind = json.loads(text).get("type")
    except (OSError, ValueError, AttributeError) as exc:
        raise FleetError(f"{named} cannot be read as Google's credentials: {exc}", hint=hint) from exc
    if kind != "service_account":
        raise FleetError(f"expected the key of a service account in {named}, found one of type {kind!r}", hint=hint)
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": text}
