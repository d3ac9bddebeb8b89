"""The resource of a host in Pulumi's state: its outputs and its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: In the outputs: in what the host was found not to be as it had been left. As an input it is always empty.
DRIFT = "drift"

#: In the outputs: it could not even be looked at.
AWAY = "away"

#: In the outputs: why nothing could be changed there now, though it was looked at.
TROUBLE = "trouble"


def make_identity(inputs: Mapping[str, Any]) -> str:
    """Return the id under which Pulumi knows a host, made from its inputs: one being set up is found again by it."""
    return f"{inputs['host']}:{inputs['workdir']}"
