"""The real CLI in a project whose machines are rented at AWS, and whose store is there, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests import services
from tests.acceptance.shop import Shop
from tests.clouds.account import REGION, Account

BUCKET = "monkeys"
STORE = f"s3://{BUCKET}/team?region={REGION}"
#: Seconds for one command, on a machine that has much else to do.
SLOWLY = 600.0


def project(aws: Account, base: Path, jobs: int = 10, expires: str = "12h", *, bucket: bool = True) -> Shop:
    """Return a project with a sweep of so many jobs, and its bucket; `rent` says what is to be rented."""
    if bucket:
        where = {"LocationConstraint": REGION}
        aws.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
    shop = Shop(base)
    path = os.pathsep.join([str(services.pulumi_directory()), aws.environment["PATH"], shop.env["PATH"]])
    shop.env |= aws.environment | {"PATH": path, "PULUMI_HOME": str(base / "pulumi")}
    shop.spec(f"provider: cloud\nexpires: {expires}\n", jobs=jobs)
    return shop


def rent(shop: Shop, image: str, kind: str = "m5.large", more: str = "", region: str = REGION) -> None:
    """Write down what is to be rented."""
    (shop.root / "monkey.yaml").write_text(
        f"project: shop\nstore: {STORE}\nproviders:\n  cloud:\n    type: aws\n"
        f"    region: {region}\n    instance_type: {kind}\n    image: {image}\n    max_instances: 4\n"
        f"    price: 0.11\n{more}"
    )


def run(shop: Shop, *arguments: str, code: int = 0) -> str:
    """Return what a command says; with Pulumi and its plugin it may wait for the processor for long."""
    return shop.run(*arguments, code=code, patience=SLOWLY).stdout


def group(aws: Account) -> dict[str, Any]:
    """Return the group, as a second client sees it."""
    [found] = aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return dict(found)
