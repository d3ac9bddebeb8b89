"""How a project begins at AWS: its bucket, and the policy that `apply` needs."""

from __future__ import annotations

from typing import Any

from monkey.errors import FleetError
from monkey.spec.project.cloud import CloudSettings
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.aws.api.account import open_account
from monkey_stacks.aws.api.errors import translate_errors
from monkey_stacks.aws.applier_rights import write_policy

#: Days after which what was never sent whole is paid for no more.
_PARTS = 7


def list_permissions(project: str, store_url: str, cloud: CloudSettings) -> str:
    """Return the policy that `apply` needs, for a project's machines in one region. Raises FleetError."""
    return write_policy(
        store_url, project, cloud.region, open_account(cloud.region, store_url).partition, cloud.network or ""
    )


def make_store(store_url: str, cloud: CloudSettings) -> bool:
    """Make the bucket, private, in the machines' region; False where it is there already. Raises FleetError."""
    where = parse_bucket_url(store_url)
    if where.options.get("endpoint"):
        raise FleetError(
            f"the store is not at AWS: it names the endpoint {where.options['endpoint']}",
            hint="make the bucket with the tools of whose it is",
        )
    s3 = open_account(cloud.region, store_url).client("s3")
    with translate_errors():
        if _there(s3, where.bucket, where.prefix):
            return False
        # The oldest region has no name here.
        elsewhere = {} if cloud.region == "us-east-1" else {"LocationConstraint": cloud.region}
        s3.create_bucket(Bucket=where.bucket, **({"CreateBucketConfiguration": elsewhere} if elsewhere else {}))
        shut = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
        s3.put_public_access_block(Bucket=where.bucket, PublicAccessBlockConfiguration=dict.fromkeys(shut, True))
        parts: dict[str, Any] = {"DaysAfterInitiation": _PARTS}
        rule = {"ID": "parts", "Status": "Enabled", "Filter": {"Prefix": ""}, "AbortIncompleteMultipartUpload": parts}
        s3.put_bucket_lifecycle_configuration(Bucket=where.bucket, LifecycleConfiguration={"Rules": [rule]})
    return True


def _there(s3: Any, bucket: str, prefix: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        # Not by its head: whoever may see what is below the prefix alone may not see that.
        s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/" if prefix else "", MaxKeys=1)
    except ClientError as exc:
        code = exc.response["ResponseMetadata"]["HTTPStatusCode"]
        if code == 403:
            raise FleetError(
                f"the bucket {bucket!r} is there, and is not ours to see",
                hint="names of buckets are the whole world's: choose another, or have its owner let you in",
            ) from exc
        if code != 404:
            raise
        return False
    return True
