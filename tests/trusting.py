"""A machine's word for the endpoints of servers that a test runs, as its user would give it."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

#: Names endpoints that may get credentials.
TRUSTED = "MONKEY_TRUSTED_ENDPOINTS"


def trust(*urls: str, env: MutableMapping[str, str] = os.environ) -> None:
    """Let an environment name the endpoints, besides those that it names."""
    env[TRUSTED] = " ".join([env.get(TRUSTED, ""), *urls]).strip()
