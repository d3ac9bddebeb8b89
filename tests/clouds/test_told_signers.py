"""Whom machines at AWS obey: told by their launch template, shown in plans, and asked of nobody else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from monkey.signing.allowed_signers import AllowedSigner
from monkey.signing.entry_signers import load_user_signers
from monkey.signing.machine_list import hash_signers, spell_signers_key
from monkey.signing.signer_list import add_signer
from tests import services
from tests.clouds.account import Account
from tests.clouds.renter import Renter
from tests.signing import make_key

pytestmark = pytest.mark.slow


def read_user_data(aws: Account) -> str:
    """Return what machines of the newest template are told."""
    ec2 = aws.client("ec2")
    [template] = ec2.describe_launch_templates()["LaunchTemplates"]
    found = ec2.describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Latest"])
    return base64.b64decode(found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"]).decode()


def test_a_changed_list_is_in_the_plan_and_replaces_machines(renter: Renter, aws: Account, tmp_path: Path) -> None:
    home = tmp_path / "config"
    renter.signers = lambda: load_user_signers(home, {})
    renter.preview()
    assert not home.exists(), "a plan makes no key"
    renter.converge()
    told = renter.signers().format_for_plan()
    assert told.startswith("owner ") and f'"signers":"{hash_signers(told)}"' in read_user_data(aws)
    key = f"sweeps/{spell_signers_key(hash_signers(told))}"
    there = aws.client("s3").get_object(Bucket=services.BUCKET, Key=key)["Body"].read()
    assert there.decode() == told
    assert not renter.preview().changes
    # A hundred: user data grow by nothing.
    before = len(read_user_data(aws))
    for n in range(100):
        add_signer(home / "allowed_signers", AllowedSigner(f"colleague-{n}", make_key(n + 1).public))
    replaced = [each for each in renter.preview().changes if each.op == "replace"]
    assert {each.why for each in replaced} == {"settings that machines are told when they boot"}
    renter.converge()
    assert len(read_user_data(aws)) == before
    assert f'"signers":"{hash_signers(renter.signers().format_for_plan())}"' in read_user_data(aws)
    assert not renter.preview().changes
    renter.destroy()
