"""Providers of monkey.yaml that are clouds: defaults, what they may say, and each mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.project import load_project
from monkey.spec.project.provider import Provider

AWS = "project: x\nproviders:\n  there:\n    type: aws\n    region: eu-central-1\n"
GCP = "project: x\nproviders:\n  there:\n    type: gcp\n    region: europe-west4\n"
#: What else must be there, on line 6.
ONE = "instance_type: g5.xlarge\n"
BOTH = "machine_type: g2-standard-8\ngcp_project: my-project\n"


def made(head: str, body: str, root: Path) -> Provider:
    """Return the provider `there`; `body` begins on line 6."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (root / "monkey.yaml").write_text(head + lines)
    return load_project(root).providers["there"]


def cloud(head: str, body: str, root: Path) -> CloudSettings:
    """Return what `there` says of its cloud."""
    found = made(head, body, root).cloud
    assert found is not None
    return found


def test_clouds_have_defaults(tmp_path: Path) -> None:
    there = made(AWS, ONE, tmp_path)
    assert there == Provider("aws", idle_timeout=300, cloud=CloudSettings("eu-central-1", ("g5.xlarge",)))
    found = cloud(AWS, ONE, tmp_path)
    assert (found.disk, found.max_instances, found.spot, found.orphan_timeout) == (50 << 30, 1, False, 900)
    assert (found.dearest, found.max_cost, found.unpriced) == (None, None, ())
    part = "instance_type: [g5.xlarge, g4dn.xlarge]\nprice: {g5.xlarge: 1}"
    assert cloud(AWS, part, tmp_path).unpriced == ("g4dn.xlarge",)
    more = cloud(AWS, f"{ONE}price: {{g5.xlarge: 1, p5.48xlarge: 60}}", tmp_path)
    assert (more.dearest, more.prices["p5.48xlarge"]) == (1, 60), "types that specs may choose have a price, too"
    found = cloud(GCP, BOTH, tmp_path)
    assert found == CloudSettings("europe-west4", ("g2-standard-8",), gcp_project="my-project")


def test_everything_that_aws_may_say(tmp_path: Path) -> None:
    body = """\
instance_type: [g5.xlarge, g4dn.xlarge]
image: resolve:ssm:/aws/service/debian/release/12/latest/amd64
disk: 100GiB
max_instances: 4
spot: true
vpc: vpc-0abc
subnets: [subnet-0a, subnet-0b]
orphan_timeout: 20m
price: {g5.xlarge: 1.01, g4dn.xlarge: 0.66}
max_cost: 50
secrets: {WANDB_API_KEY: "ssm:/team/wandb", HF: "secretsmanager:arn:aws:secretsmanager:eu-central-1:1:secret:hf-AbC"}
max_slots: 2
"""
    assert made(AWS, body, tmp_path).max_slots == 2
    found = cloud(AWS, body, tmp_path)
    assert found.types == ("g5.xlarge", "g4dn.xlarge") and found.dearest == 1.01
    assert (found.network, found.subnets) == ("vpc-0abc", ("subnet-0a", "subnet-0b"))
    assert (found.disk, found.max_instances, found.spot, found.orphan_timeout) == (100 << 30, 4, True, 1200)
    assert found.image == "resolve:ssm:/aws/service/debian/release/12/latest/amd64"
    assert found.secrets["WANDB_API_KEY"] == "ssm:/team/wandb" and found.max_cost == 50


def test_everything_that_gcp_may_say(tmp_path: Path) -> None:
    body = """\
image: debian-cloud/debian-12
zones: [europe-west4-a, europe-west4-b]
network: default
subnetwork: default
price: 1
secrets: {WANDB_API_KEY: wandb, HF: projects/other-one/secrets/hf/versions/3}
"""
    found = cloud(GCP, BOTH + body, tmp_path)
    assert (found.network, found.subnets, found.zones) == (
        "default",
        ("default",),
        ("europe-west4-a", "europe-west4-b"),
    )
    assert (found.dearest, found.image) == (1.0, "debian-cloud/debian-12")


@pytest.mark.parametrize(
    ("head", "body", "place", "message", "hint"),
    [
        (AWS, "max_slots: 1", (4, 5), "expected instance_type, found none", "g5.xlarge"),
        (
            AWS,
            "instance_type: []",
            (6, 20),
            "expected a list, each a type of instances, found an empty list",
            "g5.xlarge",
        ),
        (AWS, "instance_type: big", (6, 20), "expected a type of instances, found the text 'big'", "g5.xlarge"),
        (AWS, "instance_type: [g5.xlarge, g5.xlarge]", (6, 32), "'g5.xlarge' is there twice", "remove one"),
        (
            AWS,
            ONE + "machine_type: a-b",
            (7, 5),
            "unknown key 'machine_type' of a provider of type aws",
            "'instance_type'",
        ),
        (AWS, ONE + "image: debian", (7, 12), "expected an image, found the text 'debian'", "ami-…"),
        (AWS, ONE + "disk: 1GiB", (7, 11), "expected from 8GiB to 16TiB, found the text '1GiB'", "its unit"),
        (AWS, ONE + "disk: 50", (7, 11), "expected from 8GiB to 16TiB, found 50", "its unit"),
        (AWS, ONE + "disk: big", (7, 11), "expected a size", "GiB"),
        (AWS, ONE + "max_instances: 0", (7, 20), "expected a number of machines from 1 to 1000, found 0", "at once"),
        (AWS, ONE + "spot: maybe", (7, 11), "expected true or false, found the text 'maybe'", "spot: true"),
        (AWS, ONE + "orphan_timeout: 5s", (7, 21), "expected from 2m to 1d, found the text '5s'", "its unit"),
        (
            AWS,
            ONE + "lease: 10m\norphan_timeout: 5m",
            (8, 21),
            "expected an orphan_timeout of the lease (10m) or longer, found 5m",
            "write 15m, or a shorter lease",
        ),
        (AWS, ONE + "vpc: vpc-0", (7, 5), "vpc needs subnets beside it", "subnets:"),
        (AWS, ONE + "subnets: [subnet-0]", (7, 5), "subnets needs vpc beside it", "vpc:"),
        (AWS, ONE + "vpc: mine\nsubnets: [subnet-0]", (7, 10), "expected a VPC, found the text 'mine'", "subnet-…"),
        (AWS, ONE + "vpc: vpc-0\nsubnets: [x]", (8, 15), "expected a subnet, found the text 'x'", "subnet-…"),
        (AWS, ONE + "price: free", (7, 12), "expected a price, above 0 and below 1,000,000, found", "1.01"),
        (AWS, ONE + "price: {g5.xlarge: 0}", (7, 24), "expected a price, above 0 and below 1,000,000, found", "1.01"),
        (AWS, ONE + "price: {}", (7, 12), "expected a price, above 0 and below 1,000,000, found", "by types"),
        (AWS, ONE + "price: .nan", (7, 12), "expected a finite number, found .nan", "write a number"),
        (AWS, ONE + "price: {g5.large: 1}", (7, 13), "'g5.large' is no type of this provider", "'g5.xlarge'"),
        (
            AWS,
            ONE + "price: {g5.xlarge: 1, G5.4xlarge: 2}",
            (7, 27),
            "expected a type of instances, found the text 'G5.4xlarge'",
            "g5.xlarge",
        ),
        (AWS, ONE + "price: {g5.xlarge: 1, g2-standard-8: 2}", (7, 27), "expected a type of instances", "AWS"),
        (AWS, ONE + "max_cost: 5", (7, 5), "max_cost cannot be held: nobody says what g5", "write price: USD"),
        (AWS, ONE + "price: 1\nmax_cost: -5", (8, 15), "expected USD, above 0 and below 1,000,000, found", "write 50"),
        (AWS, ONE + "secrets: [A]", (7, 14), "expected a mapping, found a list", "ssm:/team/wandb"),
        (AWS, ONE + "secrets: {a b: ssm:/x}", (7, 15), "'a b' cannot name a secret", "letters"),
        (AWS, ONE + "secrets: {MONKEY_X: ssm:/x}", (7, 15), "'MONKEY_X' cannot name a secret", "own"),
        (AWS, ONE + "secrets: {PATH: ssm:/x}", (7, 15), "'PATH' is no secret: programs need it", "out"),
        (AWS, ONE + "secrets: {LD_PRELOAD: ssm:/x}", (7, 15), "'LD_PRELOAD' is no secret: programs", "out"),
        (AWS, ONE + "secrets: {A: hunter2}", (7, 18), "expected where the machines read it", "secretsmanager:NAME"),
        (AWS.replace("-1\n", "-1a\n"), ONE, (5, 13), "expected a region, found the text 'eu-central-1a'", "zone"),
        (GCP, "gcp_project: my-project", (4, 5), "expected machine_type, found none", "g2-standard-8"),
        (GCP, "machine_type: n1-standard-1", (4, 5), "expected gcp_project, found none", "my-project-1"),
        (GCP, "gcp_project: my-project\nmachine_type: [a-b]", (7, 19), "expected a type of machines, found a list", ""),
        (GCP, BOTH + "zones: [us-east1-b]", (8, 13), "'us-east1-b' is not in the region 'europe-west4'", "-a]"),
        (GCP, BOTH + "zones: [europe-west4]", (8, 13), "expected a zone, found the text 'europe-west4'", "-a]"),
        (GCP, BOTH + "price: 0", (8, 12), "expected a price, above 0", "{g2-standard-8: 1.01}"),
        (GCP, BOTH + "network: default", (8, 5), "network needs subnetwork beside it", "subnetwork:"),
        (GCP, BOTH + "secrets: {A: 'ssm:/x'}", (8, 18), "expected where the machines read it", "Secret Manager"),
    ],
)
def test_mistakes(head: str, body: str, place: tuple[int, int], message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        made(head, body, tmp_path)
    found = caught.value.problems[0]
    assert ((found.line, found.column), hint in (found.hint or "")) == (place, True)
    assert found.message.startswith(message)


def test_a_key_of_a_cloud_says_which(tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text("providers:\n  there: {region: eu-central-1}\n")
    with pytest.raises(SpecError) as caught:
        load_project(tmp_path)
    assert caught.value.problems[0].hint == "write type: aws or gcp beside it"
