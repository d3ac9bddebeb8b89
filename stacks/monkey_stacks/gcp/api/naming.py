"""The names of a fleet's resources at Google: each resource has a name, by which it is found again."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256

from monkey.errors import FleetError
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.cloud.machine_settings import HASH

#: Labels of machines, disks and templates, which say the stack of each.
PROJECT, FLEET_LABEL, STACK = "monkey-project", "monkey-fleet", "monkey-stack"
#: Key of a template's metadata with its image, as named in monkey.yaml.
IMAGE = "monkey-image"
#: Characters of a stack's id, and of the text before it in a name: a template's name, of at most 63, adds two hashes.
_ID = 10
_CUT = 63 - 2 * (HASH + 1) - _ID - 1
_LABEL = 63


@dataclass(frozen=True)
class GcpStack:
    """The stack of one fleet at Google; a project with two stores has two stacks."""

    project: str
    fleet: str
    id: str

    @property
    def name(self) -> str:
        """Return the name of the network, the group, and other resources that a stack has one of."""
        return f"{_plain(f'{make_name_prefix(self.project)}{self.fleet}')[:_CUT].rstrip('-')}-{self.id}"

    @property
    def account(self) -> str:
        """Return the name of the machines' service account, which may have 30 characters."""
        return f"monkey-{self.id}"

    def group(self, region: str) -> str:
        """Return the path of the stack's group in the project."""
        return f"regions/{region}/instanceGroupManagers/{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of all resources that can have labels."""
        return {PROJECT: _plain(self.project)[:_LABEL], FLEET_LABEL: _plain(self.fleet)[:_LABEL], STACK: self.id}

    def template(self, made: str, all_of_it: str) -> str:
        """Return the name of a template. A template cannot be changed, and two exist while one replaces the other.

        `made`: the mark of its machines' inputs, without the agent's code; `all_of_it`: all inputs.
        """
        return f"{self.name}-{made[:HASH]}-{sha256(all_of_it.encode()).hexdigest()[:HASH]}"

    def made(self, template: str) -> str:
        """Return the mark of a template's machines, by the template's name or link; "" for one of another stack."""
        name = template.rpartition("/")[2].partition("?")[0]
        found = re.fullmatch(rf"{re.escape(self.name)}-([0-9a-f]{{{HASH}}})-[0-9a-f]{{{HASH}}}", name)
        return found[1] if found else ""


def make_name_prefix(project: str) -> str:
    """Return the beginning of the names of all stacks of a project."""
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
