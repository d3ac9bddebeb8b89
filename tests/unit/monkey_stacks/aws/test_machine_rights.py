"""What machines may do, judged by an evaluator of IAM: what they need, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from monkey_stacks.aws import machine_rights
from monkey_stacks.aws.api.naming import AwsStack
from tests.iam import ACCOUNT, Ask, table

REGION = "eu-central-1"
STACK = AwsStack("shop", "cloud", "1234")
GROUP = STACK.name
SECRETS = {
    "WANDB": "ssm:/team/wandb",
    "HF": "secretsmanager:team/hf",
    "KEY": f"secretsmanager:arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:full-AbCdEf",
}
STORE = "arn:aws:s3:::bucket/sweeps"
#: Requests that nobody's machine may make.
NEVER = [
    *(
        Ask(f"iam:{what}", f"arn:aws:iam::{ACCOUNT}:role/monkey")
        for what in ("PassRole", "PutRolePolicy", "CreateRole")
    ),
    Ask("iam:CreateUser", f"arn:aws:iam::{ACCOUNT}:user/me"),
    Ask("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
    Ask("ec2:RunInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/*"),
    Ask("ec2:TerminateInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
    Ask("s3:ListAllMyBuckets"),
    Ask("s3:DeleteBucket", "arn:aws:s3:::bucket"),
    Ask("s3:PutBucketPolicy", "arn:aws:s3:::bucket"),
]


@pytest.fixture(autouse=True)
def _evaluator(require: Callable[[str], str]) -> None:
    require("iam")


def group(name: str, region: str = REGION) -> str:
    return f"arn:aws:autoscaling:{region}:{ACCOUNT}:autoScalingGroup:5a1c:autoScalingGroupName/{name}"


def parameter(name: str, region: str = REGION) -> str:
    return f"arn:aws:ssm:{region}:{ACCOUNT}:parameter/{name}"


def secret(name: str) -> str:
    return f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{name}"


def test_a_machine_may_use_its_store_leave_its_group_and_read_its_secrets() -> None:
    policy = machine_rights.write_machine_rights("s3://bucket/sweeps", STACK, REGION, "aws", SECRETS)
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
    opened = {
        "kms:ViaService": f"ssm.{REGION}.amazonaws.com",
        "kms:EncryptionContext:PARAMETER_ARN": parameter("team/wandb"),
    }
    leave = "autoscaling:TerminateInstanceInAutoScalingGroup"
    may = {
        Ask("s3:GetObject", "arn:aws:s3:::bucket/sweeps-of-others/a"): False,
        Ask("s3:PutObject", "arn:aws:s3:::bucket/a"): False,
        Ask("s3:GetObject", "arn:aws:s3:::other/sweeps/a"): False,
        Ask("s3:PutObjectAcl", "arn:aws:s3:::bucket/sweeps/a"): False,
        Ask("s3:ListBucket", "arn:aws:s3:::bucket", {"s3:prefix": "sweeps/projects/"}): True,
        Ask("s3:ListBucket", "arn:aws:s3:::bucket", {"s3:prefix": "sweeps-of-others/"}): False,
        Ask("s3:ListBucket", "arn:aws:s3:::bucket", {"s3:prefix": ""}): False,
        Ask("s3:ListBucket", "arn:aws:s3:::bucket"): False,
        Ask(leave, group(GROUP)): True,
        Ask(leave, group(f"{GROUP}-2")): False,
        Ask(leave, group("another")): False,
        Ask(leave, group(GROUP, "us-east-1")): False,
        Ask("autoscaling:SetDesiredCapacity", group(GROUP)): False,
        Ask("autoscaling:UpdateAutoScalingGroup", group(GROUP)): False,
        Ask("ssm:GetParameter", parameter("team/wandb")): True,
        Ask("ssm:GetParameter", parameter("team/wandb2")): False,
        Ask("ssm:GetParameter", parameter("team")): False,
        Ask("ssm:GetParametersByPath", parameter("team")): False,
        Ask("ssm:PutParameter", parameter("team/wandb")): False,
        Ask("secretsmanager:GetSecretValue", secret("team/hf-x1Y2z3")): True,
        Ask("secretsmanager:GetSecretValue", secret("full-AbCdEf")): True,
        Ask("secretsmanager:GetSecretValue", secret("team/other-x1Y2z3")): False,
        Ask("secretsmanager:GetSecretValue", secret("team/hf-of-others-x1Y2z3")): False,
        Ask("secretsmanager:PutSecretValue", secret("team/hf-x1Y2z3")): False,
        Ask("kms:Decrypt", key, opened): True,
        Ask("kms:Decrypt", key, {**opened, "kms:EncryptionContext:PARAMETER_ARN": parameter("other")}): False,
        Ask("kms:Decrypt", key, {**opened, "kms:ViaService": f"ec2.{REGION}.amazonaws.com"}): False,
        Ask("kms:Decrypt", key): False,
        **dict.fromkeys(NEVER, False),
    }
    table(policy, may)


#: How an agent creates what must not be there yet.
ABSENT = {"s3:if-none-match": "*"}
#: Keys that a machine reads, writes and deletes.
OWN = (
    *("projects/shop/jobs/1/00000000", "projects/shop/jobs/1/out/00000001/machines/a", "projects/shop/bell"),
    *("projects/shop/agents/cloud/m/0/beat", "projects/shop/shipments/cloud/m/0/00000001"),
    *("projects/shop/boots/cloud/m", "projects/shop/permits/s/0/00000001", "projects/shop/notices/s/e/w/00000001"),
    *("projects/shop/facts/ab", "files/damaged/0123"),
)
#: Keys that it creates at most: what its agent concludes, and hints to its own fleet.
ENTRIES = ("projects/shop/stops/s/00000001", "projects/shop/idle/cloud/s/00000001")
#: Keys that it reads at most.
OTHERS = (
    *("projects/shop/machines/cloud/state/.pulumi/x", "projects/shop/machines/cloud/lock/00000000"),
    *("projects/shop/agents/lab/m/0/beat", "projects/shop/agents/cloud-2/m/0/beat"),
    *("projects/shop/shipments/lab/m/0/00000001", "projects/shop/boots/lab/m"),
    *("projects/shop/queue/cloud/s/00000001", "projects/shop/queue/cloud/s/00000001.end"),
    *("projects/shop/sweeps/s/00000002", "projects/shop/idle/lab/s/00000001"),
    *("projects/shop/adoptions/00000001", "projects/shop/watch/me", "projects/shop/sync/0a/head1/beat"),
    "projects/shop/anything",
    *("projects/shop-2/jobs/1/00000000", "projects/a/machines/x"),
    *("code/1.tar.gz", "bundle/1", "signers/1", "files/md5/1", "format"),
)


def test_a_machine_writes_what_its_agent_writes() -> None:
    calls = ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts")
    rows = {
        **{Ask(f"s3:{call}", f"{STORE}/{key}"): True for call in calls for key in OWN},
        **{Ask("s3:PutObject", f"{STORE}/{key}", ABSENT): True for key in (*OWN, *ENTRIES)},
        **{Ask("s3:GetObject", f"{STORE}/{key}"): True for key in (*ENTRIES, *OTHERS)},
    }
    table(machine_rights.write_machine_rights("s3://bucket/sweeps", STACK, REGION, "aws", {}), rows)


def test_a_machine_does_not_overwrite_orders_nor_write_what_is_of_others() -> None:
    rows = {
        **{Ask("s3:PutObject", f"{STORE}/{key}"): False for key in ENTRIES},
        **{Ask("s3:DeleteObject", f"{STORE}/{key}"): False for key in (*ENTRIES, *OTHERS)},
        **{Ask("s3:PutObject", f"{STORE}/{key}", given): False for key in OTHERS for given in ({}, ABSENT)},
    }
    table(machine_rights.write_machine_rights("s3://bucket/sweeps", STACK, REGION, "aws", {}), rows)


def test_a_machine_without_secrets_reads_none_and_a_bucket_of_its_own_is_all_its_own() -> None:
    policy = machine_rights.write_machine_rights("s3://bucket", STACK, REGION, "aws", {})
    may = {
        Ask("s3:GetObject", "arn:aws:s3:::bucket/projects/a"): True,
        Ask("s3:PutObject", "arn:aws:s3:::bucket/projects/shop/bell"): True,
        Ask("s3:PutObject", "arn:aws:s3:::bucket/projects/shop/machines/cloud/lock/00000000"): False,
        Ask("s3:ListBucket", "arn:aws:s3:::bucket", {"s3:prefix": ""}): True,
        Ask("s3:GetObject", "arn:aws:s3:::bucket2/projects/a"): False,
        Ask("ssm:GetParameter", parameter("team/wandb")): False,
        Ask("kms:Decrypt", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"): False,
        **dict.fromkeys(NEVER, False),
    }
    table(policy, may)
