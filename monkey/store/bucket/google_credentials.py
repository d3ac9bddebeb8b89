"""The file of credentials that Google's tools and obstore read: what is wrong with it, and none of its values."""

from __future__ import annotations

import json
import os
from pathlib import Path

#: Variables that name such a file, as obstore looks for them.
VARIABLES = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_APPLICATION_CREDENTIALS")
#: Holds what such a file would.
_KEY = "GOOGLE_SERVICE_ACCOUNT_KEY"
_GCLOUD = "~/.config/gcloud/application_default_credentials.json"

#: What a file of each type that obstore reads must say.
_FIELDS = {
    "service_account": ("client_email", "private_key"),
    "authorized_user": ("client_id", "client_secret", "refresh_token"),
}
#: Types of Google's that obstore does not read.
_OTHERS = (
    "external_account",
    "external_account_authorized_user",
    "impersonated_service_account",
    "gdch_service_account",
)


def explain_unusable() -> str:
    """Say what of the credentials that are named here cannot be used, and why; "" where none of them is at fault."""
    named = [(variable, os.environ[variable]) for variable in VARIABLES if variable in os.environ]
    if _KEY in os.environ:
        return next(
            (told for each in named if (told := _told(*each))), f"what {_KEY} holds is no service account's key"
        )
    return next((told for each in named or [("", _GCLOUD)] if (told := _told(*each))), "")


def _told(variable: str, path: str) -> str:
    if not path:
        return f"{variable} is set, and empty"
    why = _wrong(Path(path).expanduser() if not variable else Path(path))
    return f"the file {path}{f' ({variable})' if variable else ''} {why}" if why else ""


def _wrong(path: Path) -> str:
    try:
        said = json.loads(path.read_bytes())
    except OSError as exc:
        return f"cannot be read: {exc.strerror}"
    except ValueError:
        return "is not JSON"
    if not isinstance(said, dict) or "type" not in said:
        return "does not say its 'type'"
    if said["type"] not in _FIELDS:
        kind = repr(said["type"]) if said["type"] in _OTHERS else "of a type that is not known"
        return f"is {kind}, expected one of {' or '.join(map(repr, _FIELDS))}"
    missing = [name for name in _FIELDS[said["type"]] if not isinstance(said.get(name), str)]
    if missing:
        return f"has no {missing[0]!r}"
    return "has a 'private_key' that is not one (PEM)" if said["type"] == "service_account" else ""
