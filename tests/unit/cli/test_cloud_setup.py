"""`monkey init --provider`: what it writes, what it leaves alone, what it prints; the bucket that it makes."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from monkey.cli.commands.init import init_command
from monkey.spec.project.project import load_project
from monkey.spec.sweep.load import load_spec
from tests.clouds.gcp.desk import Google

HERE = ["--region", "eu-central-1", "--type", "g5.xlarge", "--store", "s3://of-tests-1/sweeps"]
GOOGLE = ["--region", "europe-west4", "--type", "e2-small", "--store", "gs://of-tests-1/sweeps"]
GOOGLE += ["--gcp-project", "my-project"]


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what runs `monkey init` in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(init_command, words)


def policy(result: Result) -> dict[str, object]:
    """Return the policy: all that is on stdout."""
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_a_project_begins_with_machines_and_still_runs_here(init: Callable[..., Result], tmp_path: Path) -> None:
    told = policy(first := init("p", "--provider", "aws", *HERE))
    assert (
        "specs/experiment.yaml who is to run it" in first.stderr
        and "provider: cloud, and expires: 12h." in first.stderr
    )
    assert "Types with GPUs need an image" in first.stderr
    assert "arn:aws:s3:::of-tests-1/sweeps/*" in json.dumps(told) and "monkey-p-" in json.dumps(told)
    project = load_project(tmp_path / "p")
    assert project.store == "s3://of-tests-1/sweeps" and sorted(project.providers) == ["cloud", "local"]
    cloud = project.providers["cloud"].cloud
    assert cloud is not None and (cloud.region, cloud.types) == ("eu-central-1", ("g5.xlarge",))
    assert load_spec(tmp_path / "p/specs/experiment.yaml", project.root, project.providers).fleets == ["local"]
    written = (tmp_path / "p/monkey.yaml").read_text()
    assert policy(init("p", "--provider", "aws")) == told, "said again, it prints it again"
    assert (tmp_path / "p/monkey.yaml").read_text() == written


def test_machines_are_added_to_a_project_and_nothing_of_it_is_changed(
    init: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "monkey.yaml"
    file.write_text("# Ours.\nproject: digits  # of old")
    assert policy(added := init("--provider", "aws", *HERE)) and "Next: say in your spec" in added.stderr
    assert file.read_text().startswith(
        "# Ours.\nproject: digits  # of old\nstore: s3://of-tests-1/sweeps\nproviders:\n"
    )
    file.write_text(before := "providers: {lab: {type: ssh, hosts: [gpu1]}}\n")
    refused = init("--provider", "aws", *HERE)
    assert "monkey.yaml has providers already; nothing was written" in str(refused.exception)
    assert "instance_type: g5.xlarge" in str(refused.exception) and file.read_text() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--provider", "aws"], "expected --region and --type and --store"),
        (["--provider", "gcp", *GOOGLE[:-2]], "expected --gcp-project for a provider of type gcp"),
        (["--provider", "gcp", *GOOGLE[:4], *HERE[4:], *GOOGLE[-2:]], "machines of gcp cannot reach the store"),
        (["--provider", "aws", *HERE[:-1], "ssh://host/dir"], "machines of aws cannot reach the store"),
        (["--provider", "aws", "--region", "Frankfurt", *HERE[2:]], "expected a region, found the text 'Frankfurt'"),
        (HERE, "--region needs --provider"),
        (GOOGLE, "(hint: add --provider gcp)"),
        (
            ["--provider", "aws", "--create-bucket", *HERE[:-1], "s3://b/p?endpoint=http://mine:9000"],
            "expected a bucket of aws's own, found the endpoint http://mine:9000",
        ),
    ],
)
def test_what_cannot_be_rented_is_refused_and_nothing_written(
    init: Callable[..., Result], tmp_path: Path, words: list[str], said: str
) -> None:
    assert said in str(init(*words).exception) and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--region", "us-east-1"], "has eu-central-1 for provider 'cloud', and --region is us-east-1"),
        (
            ["--type", "m5.large"],
            "has g5.xlarge for provider 'cloud', and --type is m5.large; nothing was written",
        ),
        (
            ["--store", "s3://other/x"],
            "has s3://of-tests-1/sweeps for the store, and --store is s3://other/x",
        ),
    ],
)
def test_what_is_asked_for_anew_and_is_not_there_is_refused(
    init: Callable[..., Result], tmp_path: Path, asked: list[str], said: str
) -> None:
    again = policy(init("--provider", "aws", *HERE))
    before = (tmp_path / "monkey.yaml").read_text()
    assert said in str(init("--provider", "aws", *asked).exception)
    assert (tmp_path / "monkey.yaml").read_text() == before
    assert policy(init("--provider", "aws", *HERE[:-1], f"{HERE[-1]}/")) == again, "the same may be said again"


def test_the_bucket_is_made_once_where_the_machines_are_and_private(
    moto: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_ENDPOINT_URL": moto}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    words = [Path(sys.executable).with_name("monkey"), "init", "p", "--provider", "aws", *HERE, "--create-bucket"]
    first = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0 and "the bucket was made" in first.stderr, first.stderr
    assert json.loads(first.stdout)["Statement"]
    s3 = boto3.client("s3", endpoint_url=moto, region_name="eu-central-1")
    assert s3.get_bucket_location(Bucket="of-tests-1")["LocationConstraint"] == "eu-central-1"
    assert set(s3.get_public_access_block(Bucket="of-tests-1")["PublicAccessBlockConfiguration"].values()) == {True}
    assert s3.get_bucket_lifecycle_configuration(Bucket="of-tests-1")["Rules"][0]["Status"] == "Enabled"
    again = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and "is there already" in again.stderr
    assert urllib.parse.urlsplit(moto).hostname == "127.0.0.1", "no account of anybody's was asked"


def test_the_bucket_at_google_is_private_and_has_rights_that_end_at_a_prefix(
    gcp: Google, init: Callable[..., Result], tmp_path: Path
) -> None:
    words = ["p", "--provider", "gcp", *GOOGLE, "--create-bucket"]
    told: dict[str, Any] = policy(first := init(*words))
    assert "the bucket was made" in first.stderr and "is there already" in init(*words).stderr
    [made] = gcp.rest.buckets.values()
    access = made["iamConfiguration"]
    assert access == {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}
    assert (made["project"], made["location"]) == ("my-project", "europe-west4")
    cloud = load_project(tmp_path / "p").providers["cloud"].cloud
    assert cloud is not None and (cloud.gcp_project, cloud.types) == ("my-project", ("e2-small",))
    roles = told["roles"]
    assert sorted(roles) == ["monkeyGroups", "monkeyMachines", "monkeyStore"], "there are no secrets to be read"
    everything = {name for role in roles.values() for name in role["includedPermissions"]}
    assert not [name for name in everything if "projects.setIamPolicy" in name or name.endswith((".*", "roles.create"))]
    [giving] = [each for each in told["bindings"] if "condition" in each]
    assert giving["condition"]["expression"].endswith(".hasOnly(['projects/my-project/roles/monkeyGroups'])")
