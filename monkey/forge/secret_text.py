"""Secrets in a text that others will read: a comment, a status, a summary."""

from __future__ import annotations

import re
from collections.abc import Mapping

from monkey.plan.text.credential_forms import MASK, mask_credentials

#: Names of variables whose values are secrets, and the fewest characters of a value that cannot be an accident.
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE|(^|_)(API_?)?KEY(_|$|S$)", re.IGNORECASE
)
_FEWEST = 6
#: What a header gives.
_IN_HEADER = re.compile(r"(?i)\b(authorization:\s*\w+|bearer|x-amz-security-token[:=])\s+\S+")


def mask_secrets(text: str, environ: Mapping[str, str]) -> str:
    """Return the text without what looks like a secret, and without the values of secret variables."""
    values = {value.strip() for name, value in environ.items() if _SECRET_NAME.search(name)}
    lines = {line.strip() for value in values for line in [value, *value.splitlines()]}
    # The longest first: a part of one may be another.
    for value in sorted((line for line in lines if len(line) >= _FEWEST), key=len, reverse=True):
        text = text.replace(value, MASK)
    text = _IN_HEADER.sub(lambda match: f"{match[1]} {MASK}", text)
    return mask_credentials(text)
