"""What a test of Google's fleets begins with: an empty shelf, its APIs, a bucket for the store, and who rents there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.gcp.applier_rights import list_roles
from monkey_stacks.gcp.machine_rights import GROUP_ROLE, spell_group_role
from tests.clouds.account import plugins
from tests.clouds.double import LEDGER
from tests.clouds.gcp.guard import TOKEN, GuardedBucket
from tests.clouds.gcp.offers import REGION
from tests.clouds.gcp.renter import GCP_PROJECT
from tests.clouds.gcp.rest import Rest
from tests.clouds.gcp.shelf import SHELF, Shelf


@dataclass
class Google:
    """A project of Google's."""

    shelf: Shelf
    rest: Rest
    bucket: GuardedBucket
    base: Path

    @property
    def environment(self) -> dict[str, str]:
        """What who applies has in the environment, besides the PATH of Pulumi."""
        apis = {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": self.rest.endpoint for name in ("COMPUTE", "IAM", "STORAGE")}
        return {
            **apis,
            SHELF: str(self.shelf.base),
            LEDGER: str(self.ledger),
            "GOOGLE_OAUTH_ACCESS_TOKEN": TOKEN,
            # The store's own client reads another one.
            "GOOGLE_BEARER_TOKEN": TOKEN,
            "PATH": f"{plugins(self.base)}{os.pathsep}{os.environ['PATH']}",
        }

    @property
    def ledger(self) -> Path:
        """What the plugin was asked: "create gcp:compute/network:Network NAME"."""
        return self.base / "cloud-ledger"

    @property
    def url(self) -> str:
        """A store in it."""
        return self.bucket.url("gs", "team/sweeps")


@contextmanager
def google(base: Path) -> Iterator[Google]:
    """Give an empty project for a while."""
    shelf = Shelf(base / "google")
    shelf.base.mkdir()
    # What an administrator makes of what `monkey init` prints.
    cloud = CloudSettings(REGION, ("e2-standard-2",), gcp_project=GCP_PROJECT)
    role = list_roles("gs://bucket", cloud)["roles"][GROUP_ROLE]
    shelf.make_role(spell_group_role(GCP_PROJECT), role)
    with Rest(shelf).running() as rest, GuardedBucket(rest.guard) as bucket:
        yield Google(shelf, rest, bucket, base)
