"""Machines of AWS on a real account: rented, at work, gone by themselves, and nothing left.

MONKEY_CLOUD=aws MONKEY_CLOUD_STORE=s3://BUCKET/PREFIX pytest tests/real_clouds

takes about half an hour and some cents: one machine of MONKEY_CLOUD_TYPE (t3.small) in MONKEY_CLOUD_REGION
(eu-central-1), whose price an hour is at most MONKEY_CLOUD_PRICE (0.03 USD), for an hour at most. Whatever happens,
everything is taken away at the end. Needs Pulumi with its plugin for AWS: `monkey doctor` says which.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.shop import Shop, until

#: As it was before the tests' own settings: these are somebody's real keys.
THEIRS = dict(os.environ)
STORE, REGION = THEIRS.get("MONKEY_CLOUD_STORE", ""), THEIRS.get("MONKEY_CLOUD_REGION", "eu-central-1")
TYPE, PRICE = THEIRS.get("MONKEY_CLOUD_TYPE", "t3.small"), THEIRS.get("MONKEY_CLOUD_PRICE", "0.03")
#: Seconds for a machine to boot, do its work, find itself idle and go.
SOON = 1800.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(THEIRS.get("MONKEY_CLOUD") != "aws" or not STORE, reason="MONKEY_CLOUD=aws asks for it"),
]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Return a project of a name of its own; what it rented is gone afterwards, or the test fails."""
    shop, name = Shop(tmp_path), f"monkey-test-{secrets.token_hex(3)}"
    shop.env |= {
        key: value for key, value in THEIRS.items() if key.startswith("AWS_") or key in ("HOME", "PULUMI_HOME")
    }
    shop.spec("provider: cloud\nexpires: 1h\ncommand: echo {i}\noutputs: []\n", jobs=4)
    (shop.root / "monkey.yaml").write_text(
        f"project: {name}\nstore: {STORE}\nproviders:\n  cloud:\n    type: aws\n    region: {REGION}\n"
        f"    instance_type: {TYPE}\n    idle_timeout: 2m\n    price: {PRICE}\n    max_cost: 1\n"
    )
    try:
        yield shop
    finally:
        shop.run("destroy", "--yes", patience=SOON)
        assert tagged(name) == set(), "look at the account: something of it is left"


def tagged(project: str) -> set[str]:
    """Return what AWS has of the project, asked as its own tool asks; machines that ended left out."""
    ec2, found = _client("ec2"), set[str]()
    for page in ec2.get_paginator("describe_tags").paginate(
        Filters=[{"Name": "tag:monkey:project", "Values": [project]}]
    ):
        found |= {each["ResourceId"] for each in page["Tags"] if each["ResourceType"] not in ("instance", "volume")}
    live = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
    ours = [{"Name": "tag:monkey:project", "Values": [project]}, *live]
    for page in ec2.get_paginator("describe_instances").paginate(Filters=ours):
        found |= {each["InstanceId"] for lot in page["Reservations"] for each in lot["Instances"]}
    found |= {each["AutoScalingGroupName"] for each in groups(project)}
    roles = (each for page in _client("iam").get_paginator("list_roles").paginate() for each in page["Roles"])
    return found | {each["RoleName"] for each in roles if each["RoleName"].startswith(f"monkey-{project}-")}


def groups(project: str) -> list[dict[str, Any]]:
    """Return the project's groups."""
    asked = _client("autoscaling").describe_auto_scaling_groups(
        Filters=[{"Name": "tag:monkey:project", "Values": [project]}]
    )
    return list(asked["AutoScalingGroups"])


def _client(service: str) -> Any:
    import boto3

    keys = {
        name: THEIRS[name]
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        if name in THEIRS
    }
    given = {name.lower(): value for name, value in keys.items()}
    return boto3.session.Session(profile_name=None if given else THEIRS.get("AWS_PROFILE")).client(
        service, region_name=REGION, **given
    )


def test_a_machine_is_rented_works_and_goes(shop: Shop) -> None:
    project = (shop.root / "monkey.yaml").read_text().split()[1]
    assert "0 → 1" in shop.run("plan", patience=SOON).stdout
    done: subprocess.CompletedProcess[str] = shop.run("apply", "--yes", patience=SOON)
    assert "all 4 jobs succeeded" in done.stdout
    assert shop.run("plan", "--detailed-exitcode", patience=SOON).stdout.startswith("No changes")
    shop.run("audit", patience=SOON)
    until(
        lambda: all(not each["DesiredCapacity"] for each in groups(project)), "the machine does not go", SOON, step=15
    )
