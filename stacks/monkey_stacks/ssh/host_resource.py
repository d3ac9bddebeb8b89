"""The resource of a host: its outputs and its id in Pulumi's state, and its provider's environment. Needs no Pulumi."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Names the variable by which a provider gets what is written down nowhere.
HANDED = "MONKEY_HANDED"

#: Inputs that make another machine of it: everything would be in another place.
PLACE = ("host", "workdir", "store", "project", "fleet")

#: In the outputs: in what the host was found not to be as it had been left. As an input it is always empty.
DRIFT = "drift"

#: In the outputs: it could not even be looked at.
AWAY = "away"

#: In the outputs: why nothing could be changed there now, though it was looked at.
TROUBLE = "trouble"


@dataclass(frozen=True)
class ProviderEnvironment:
    """What providers get besides the inputs, by their environment: it must not enter the state."""

    secrets: Mapping[str, str] = field(default_factory=dict)
    #: Names of secrets whose values stay as the hosts have them.
    kept: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    #: There is nothing to do: an agent that has left need not come back.
    idle: bool = False
    #: Outputs of hosts that were looked at just now, by hosts: nobody need look again.
    seen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variable that carries it."""
        return {HANDED: json.dumps(asdict(self))}


def make_identity(inputs: Mapping[str, Any]) -> str:
    """Return the id under which Pulumi knows a host, made from its inputs: one being set up is found again by it."""
    return f"{inputs['host']}:{inputs['workdir']}"
