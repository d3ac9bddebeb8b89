"""What whoever applies may do, judged by an evaluator of IAM: to a project's own, and to nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from monkey_stacks.aws import applier_rights
from tests.iam import ACCOUNT, Ask, table

REGION = "eu-central-1"
ME = f"arn:aws:iam::{ACCOUNT}:user/researcher"
OURS = {"aws:ResourceTag/monkey:project": "shop"}
THEIRS = {"aws:ResourceTag/monkey:project": "other"}
TAGGED = {"aws:RequestTag/monkey:project": "shop"}
NAME = "monkey-shop-cloud-0123456789"


@pytest.fixture(autouse=True)
def _evaluator(require: Callable[[str], str]) -> None:
    require("iam")


def ec2(action: str, kind: str, context: Mapping[str, str] | None = None) -> Ask:
    return Ask(f"ec2:{action}", f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/{kind}-1", context or {}, ME)


def iam(action: str, what: str, context: Mapping[str, str] | None = None) -> Ask:
    return Ask(f"iam:{action}", f"arn:aws:iam::{ACCOUNT}:{what}", context or {}, ME)


def group(action: str, name: str = NAME, region: str = REGION) -> Ask:
    arn = f"arn:aws:autoscaling:{region}:{ACCOUNT}:autoScalingGroup:5a1c:autoScalingGroupName/{name}"
    return Ask(f"autoscaling:{action}", arn, {}, ME)


def test_whoever_applies_may_change_what_is_the_projects_and_nothing_else() -> None:
    policy = applier_rights.write_policy("s3://bucket/sweeps", "shop", REGION)
    to_machines, to_lambda = ({"iam:PassedToService": f"{each}.amazonaws.com"} for each in ("ec2", "lambda"))
    rows = {
        Ask("ec2:DescribeVpcs", "*", {}, ME): True,
        ec2("CreateVpc", "vpc", TAGGED): True,
        ec2("CreateVpc", "vpc"): False,
        ec2("CreateSubnet", "subnet", TAGGED): True,
        ec2("CreateSubnet", "vpc", OURS): True,
        ec2("CreateSubnet", "vpc", THEIRS): False,
        ec2("CreateTags", "vpc", {**TAGGED, "ec2:CreateAction": "CreateVpc"}): True,
        ec2("CreateTags", "vpc", {**THEIRS, **TAGGED}): False,
        ec2("CreateTags", "instance", THEIRS): False,
        ec2("CreateTags", "vpc", OURS): True,
        ec2("DeleteVpc", "vpc", OURS): True,
        ec2("DeleteVpc", "vpc", THEIRS): False,
        ec2("DeleteVpc", "vpc"): False,
        ec2("AuthorizeSecurityGroupEgress", "security-group", OURS): True,
        ec2("AuthorizeSecurityGroupIngress", "security-group", OURS): False,
        ec2("TerminateInstances", "instance", OURS): True,
        ec2("TerminateInstances", "instance", THEIRS): False,
        ec2("DeleteVolume", "volume"): False,
        ec2("CreateLaunchTemplateVersion", "launch-template", THEIRS): False,
        iam("CreateRole", f"role/{NAME}"): True,
        iam("CreateRole", "role/admin"): False,
        iam("PutRolePolicy", f"role/{NAME}"): True,
        iam("PutRolePolicy", "role/admin"): False,
        iam("AttachRolePolicy", f"role/{NAME}"): False,
        iam("PassRole", f"role/{NAME}", to_machines): True,
        iam("PassRole", f"role/{NAME}", to_lambda): False,
        iam("PassRole", "role/admin", to_machines): False,
        iam("CreateUser", "user/me"): False,
        iam("PutUserPolicy", "user/researcher"): False,
        group("CreateAutoScalingGroup"): True,
        group("SetDesiredCapacity"): True,
        group("SetDesiredCapacity", "monkey-other-cloud-0123456789"): False,
        group("SetDesiredCapacity", NAME, "us-east-1"): False,
        group("DeleteAutoScalingGroup", "production"): False,
        Ask("s3:PutObject", "arn:aws:s3:::bucket/sweeps/projects/a", {}, ME): True,
        Ask("s3:PutObject", "arn:aws:s3:::bucket/else", {}, ME): False,
        Ask("ssm:GetParameter", f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/team/wandb", {}, ME): False,
    }
    table(policy, rows)


def test_roles_that_aws_has_for_itself_may_be_made_at_their_first_use() -> None:
    rows = {}
    for service, may in (("autoscaling", True), ("spot", True), ("ecs", False)):
        who = f"{service}.amazonaws.com"
        rows[iam("CreateServiceLinkedRole", f"role/aws-service-role/{who}/x", {"iam:AWSServiceName": who})] = may
    table(applier_rights.write_policy("s3://bucket/sweeps", "shop", REGION), rows)
