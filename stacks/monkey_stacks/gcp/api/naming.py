"""What everything of a fleet is called at Google: all of it has a name, by which it is known again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256

from monkey.errors import FleetError
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.cloud.machine_settings import HASH

#: Labels of machines and what they are made from. Of which stack a thing is.
PROJECT, FLEET_LABEL, STACK = "monkey-project", "monkey-fleet", "monkey-stack"
#: Of a template: its image as monkey.yaml has it.
IMAGE = "monkey-image"
#: Characters of a stack's id; and of what comes before it in a name: a template's has two hashes more, and 63 at most.
_ID = 10
_CUT = 63 - 2 * (HASH + 1) - _ID - 1
_LABEL = 63


@dataclass(frozen=True)
class GcpStack:
    """All that one fleet has at Google; two stores of one project have two."""

    project: str
    fleet: str
    id: str

    @property
    def name(self) -> str:
        """The network, the group and what else there is but one of, is called so."""
        return f"{_plain(f'{name_prefix(self.project)}{self.fleet}')[:_CUT].rstrip('-')}-{self.id}"

    @property
    def account(self) -> str:
        """The machines' service account is called so: its name may have 30 characters."""
        return f"monkey-{self.id}"

    def group(self, region: str) -> str:
        """Return the path of its group in the project."""
        return f"regions/{region}/instanceGroupManagers/{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """What can be labelled is so."""
        return {PROJECT: _plain(self.project)[:_LABEL], FLEET_LABEL: _plain(self.fleet)[:_LABEL], STACK: self.id}

    def template(self, made: str, all_of_it: str) -> str:
        """Return what a template is called: nothing of one can be changed, and two are there while it is replaced.

        `made`: what its machines are made from, but for the agent's code; `all_of_it`: all.
        """
        return f"{self.name}-{made[:HASH]}-{sha256(all_of_it.encode()).hexdigest()[:HASH]}"

    def made(self, template: str) -> str:
        """Return what the machines of a template are made from, by its name or its link; "" for somebody else's."""
        name = template.rpartition("/")[2].partition("?")[0]
        found = re.fullmatch(rf"{re.escape(self.name)}-([0-9a-f]{{{HASH}}})-[0-9a-f]{{{HASH}}}", name)
        return found[1] if found else ""


def name_prefix(project: str) -> str:
    """Return how the names of all stacks of a project begin."""
    return _plain(f"monkey-{project}-")[:_CUT]


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9-]", "-", text.lower())


def name_stack(store_url: str, project: str, fleet: str) -> GcpStack:
    """Return the stack of a fleet whose state is in the store at `store_url`. Raises FleetError, StoreError."""
    if not store_url.startswith("gs://"):
        raise FleetError(
            f"machines of Google's cannot reach the store: expected a bucket of Google's, found {store_url}",
            hint="write store: gs://bucket/prefix into monkey.yaml; `monkey init --provider gcp` can make a bucket",
        )
    where = parse_bucket_url(store_url)
    told = json.dumps([where.bucket, where.prefix, project, fleet])
    return GcpStack(project, fleet, sha256(told.encode()).hexdigest()[:_ID])
