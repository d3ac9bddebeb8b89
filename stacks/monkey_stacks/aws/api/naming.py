"""What everything of a fleet is called on AWS, and tagged with: by this alone it is known again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from monkey.errors import FleetError
from monkey.store.bucket.url import parse_bucket_url

#: Tags. Of which stack a thing is, and which part of it.
PROJECT, FLEET_TAG, STACK, PART_TAG = "monkey:project", "monkey:fleet", "monkey:stack", "monkey:part"
#: Of a machine: what it was made from. One that was made from something else is outdated.
MADE = "monkey:made"
#: Of a template: its image as monkey.yaml has it.
IMAGE = "monkey:image"
#: Characters of a stack's id; and of what comes before it in a name: a role's may have 64.
_ID = 10
_CUT = 64 - _ID - 1


@dataclass(frozen=True)
class AwsStack:
    """All that one fleet has on AWS; two stores of one project have two."""

    project: str
    fleet: str
    id: str

    @property
    def name(self) -> str:
        """What can be named is called so: the same each time, so that it is found again."""
        return f"{make_name_prefix(self.project)}{self.fleet}"[:_CUT] + f"-{self.id}"

    def tags(self, part: str) -> dict[str, str]:
        """Return what a part of it is tagged with."""
        names = {PROJECT: self.project, FLEET_TAG: self.fleet, STACK: self.id, PART_TAG: part}
        return {**names, "Name": f"{self.name} {part}"}


def make_name_prefix(project: str) -> str:
    """Return how the names of all stacks of a project begin."""
    return f"monkey-{project}-"[:_CUT]


def name_stack(store_url: str, project: str, fleet: str) -> AwsStack:
    """Return the stack of a fleet whose state is in the store at `store_url`. Raises FleetError, StoreError."""
    if not store_url.startswith("s3://"):
        raise FleetError(
            f"machines of AWS cannot reach the store: expected a bucket of S3, found {store_url}",
            hint="write store: s3://bucket/prefix into monkey.yaml; `monkey init --provider aws` can make a bucket",
        )
    where = parse_bucket_url(store_url)
    told = json.dumps([where.bucket, where.prefix, project, fleet])
    return AwsStack(project, fleet, sha256(told.encode()).hexdigest()[:_ID])
