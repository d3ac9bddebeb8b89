"""How a project begins at Google: its bucket, and the roles that `apply` needs."""

from __future__ import annotations

import json
from typing import Any

from monkey.errors import FleetError
from monkey.fleet.cloud.http_client import ApiError
from monkey.spec.project.cloud import CloudSettings
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.gcp import applier_rights
from monkey_stacks.gcp.api.account import open_account

#: Days after which what was never sent whole is paid for no more.
_PARTS = 7


def list_permissions(project: str, store_url: str, cloud: CloudSettings) -> str:
    """Return the roles that `apply` needs, and where they are given. Raises StoreError."""
    return json.dumps(applier_rights.list_roles(store_url, cloud))


def make_store(store_url: str, cloud: CloudSettings) -> bool:
    """Make the bucket, private, in the machines' region; False where it is there already. Raises FleetError."""
    where = parse_bucket_url(store_url)
    if where.options.get("endpoint"):
        raise FleetError(
            f"the store is not at Google: it names the endpoint {where.options['endpoint']}",
            hint="make the bucket with the tools of whose it is",
        )
    at = open_account(cloud.gcp_project, cloud.region)
    try:
        if at.find("storage", f"storage/v1/b/{where.bucket}") is not None:
            return False
    except FleetError as exc:
        if isinstance(exc.__cause__, ApiError) and exc.__cause__.status == 403:
            raise FleetError(
                f"the bucket {where.bucket!r} is there, and is not ours to see",
                hint="names of buckets are the whole world's: choose another, or have its owner let you in",
            ) from exc
        raise
    at.ask("POST", "storage", "storage/v1/b", _bucket(where.bucket, cloud.region), project=cloud.gcp_project)
    return True


def _bucket(name: str, region: str) -> dict[str, Any]:
    parts = {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": _PARTS}}
    return {
        "name": name,
        "location": region,
        # Rights can end at a prefix only where single objects have none.
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"},
        "lifecycle": {"rule": [parts]},
        # Heartbeats are written over all the time: each would be kept, and paid for, for a week.
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
    }
