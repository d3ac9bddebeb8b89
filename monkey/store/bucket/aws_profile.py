"""Profiles of Amazon's own files, ~/.aws/credentials and ~/.aws/config: obstore reads the environment alone.

Keys that stand in the files are read here. What takes more (SSO, roles, processes) is left to botocore, where it is.
"""

from __future__ import annotations

import configparser
import importlib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monkey.errors import StoreRefused

if TYPE_CHECKING:
    from obstore.store import S3Credential

#: After so long the files are read again: short-lived keys are replaced in them while agents run.
_FRESH_FOR = timedelta(minutes=5)

#: What needs a conversation with Amazon.
_TALKS = ("sso_session", "sso_start_url", "role_arn", "credential_process", "web_identity_token_file", "login_session")


class AwsProfile(NamedTuple):
    """What the files say; nothing where they say nothing."""

    region: str | None = None
    #: None: credentials come from elsewhere.
    credentials: Callable[[], S3Credential] | None = None


def find_profile(asked: str | None) -> AwsProfile:
    """Return the profile `asked` for, else the one of AWS_PROFILE, else the default one.

    Keys in the environment go before a profile that the user did not choose. Raises StoreRefused where the profile that
    was asked for is not there, or needs what is not installed.
    """
    name = asked or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    said = _read(name or "default")
    region = said.get("region")
    if not asked and os.environ.get("AWS_ACCESS_KEY_ID"):
        return AwsProfile(region)
    if "aws_access_key_id" in said:
        return AwsProfile(region, lambda: _keys(name or "default"))
    if any(key in said for key in _TALKS):
        return AwsProfile(region, _by_botocore(name or "default"))
    if name and not said:
        raise StoreRefused(
            f"expected the profile {name!r} in {_path('CREDENTIALS')} or {_path('CONFIG')}, found none of that name",
            hint="`aws configure list-profiles` tells which there are",
        )
    return AwsProfile(region)


def _path(what: str) -> Path:
    variable = {"CREDENTIALS": "AWS_SHARED_CREDENTIALS_FILE", "CONFIG": "AWS_CONFIG_FILE"}[what]
    return Path(os.environ.get(variable) or f"~/.aws/{what.lower()}").expanduser()


def _read(name: str) -> Mapping[str, str]:
    """Return what both files say of a profile; the credentials file goes before the other."""
    section = name if name == "default" else f"profile {name}"
    return {**_section(_path("CONFIG"), section), **_section(_path("CREDENTIALS"), name)}


def _section(path: Path, section: str) -> Mapping[str, str]:
    file = configparser.RawConfigParser(default_section="")
    try:
        file.read_string(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, configparser.Error) as exc:
        why = str(exc).splitlines()[0]
        raise StoreRefused(f"{path} cannot be read: {why}", hint="mend it, or remove it") from exc
    return dict(file[section]) if file.has_section(section) else {}


def _keys(name: str) -> S3Credential:
    said = _read(name)
    return {
        "access_key_id": said.get("aws_access_key_id", ""),
        "secret_access_key": said.get("aws_secret_access_key", ""),
        "token": said.get("aws_session_token"),
        "expires_at": datetime.now(UTC) + _FRESH_FOR,
    }


def _by_botocore(name: str) -> Callable[[], S3Credential]:
    try:
        botocore: Any = importlib.import_module("botocore.session")
    except ImportError:
        raise StoreRefused(
            f"the profile {name!r} needs more than keys (SSO, a role or a process), which botocore knows how to get",
            hint="pip install botocore; or `aws configure export-credentials --format env`",
        ) from None
    try:
        held = botocore.Session(profile=name).get_credentials()
    except Exception as exc:  # botocore's own are not ours to import, and anything else means the same
        raise StoreRefused(f"the profile {name!r}: {exc}", hint="mend it in ~/.aws/config") from exc
    if held is None:
        raise StoreRefused(f"the profile {name!r} gives no credentials", hint="mend it in ~/.aws/config")

    def credentials() -> S3Credential:
        frozen = held.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": datetime.now(UTC) + _FRESH_FOR,
        }

    return credentials
