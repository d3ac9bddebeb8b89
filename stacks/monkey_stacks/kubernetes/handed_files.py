"""The files that pods get by the Secret: what their agents work with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monkey.fleet.secret_values import VARIABLE
from monkey.spec.project.provider import Provider
from monkey_stacks import store_credentials
from monkey_stacks.kubernetes.manifests.pilot_manifests import HANDED, PLACE
from monkey_stacks.pilots.agent_arguments import list_agent_arguments
from monkey_stacks.pilots.pilot_engine import PilotRequest


@dataclass(frozen=True)
class HandedFiles:
    """The files of one fleet; `store`: as pods open it, `links`: where they fetch the parts of the agent's code."""

    fleet: str
    provider: Provider
    project: str
    store: str
    links: Sequence[str] = field(repr=False)

    def write(self, request: PilotRequest, store_url: str, there: str) -> Mapping[str, bytes]:
        """Return name to contents. `there`: the secrets that pods have already, as lines. Raises FleetError."""
        place = f"{PLACE}/fleet"
        arguments = list_agent_arguments(self.provider, self.store, self.project, self.fleet)
        settings = {
            "arguments": [*arguments, "--signers", f"{place}/signers"],
            "environment": {VARIABLE: f"{place}/secrets"},
            "project": self.project,
            "fleet": self.fleet,
            "store": self.store,
            "handed": HANDED,
        }
        # A service account has an identity of its own at the cloud.
        own = bool(self.provider.clustered.service_account) or self.store.startswith("/")
        credentials = {} if own else dict(store_credentials.find_credentials(store_url).variables)
        return {
            "settings.json": json.dumps(settings, sort_keys=True).encode(),
            "credentials.json": json.dumps(credentials, sort_keys=True).encode(),
            "secrets": _merge_lines(there, request),
            "signers": request.signers.encode(),
            "links": "\n".join(self.links).encode(),
        }


def _merge_lines(there: str, request: PilotRequest) -> bytes:
    kept = {name: line for line in there.split("\n") if (name := line.partition("=")[0]) in request.kept}
    return "".join(f"{line}\n" for _, line in sorted({**kept, **request.secrets}.items())).encode()
