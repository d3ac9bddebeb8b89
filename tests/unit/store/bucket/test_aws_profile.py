"""Where keys come from: the environment, Amazon's files, a profile; by what the bucket sees as the signer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from monkey.errors import StoreRefused
from monkey.store.open import open_store
from tests.bucket import FakeBucket

CREDENTIALS = """\
[default]
aws_access_key_id = DEFAULT
aws_secret_access_key = s%cret
[work]
aws_access_key_id=WORK
aws_secret_access_key=secret
aws_session_token=token
"""
CONFIG = """\
[default]
region = eu-west-1
[profile work]
region = eu-north-1
s3 =
    addressing_style = path
[profile sso]
sso_start_url = https://corp.example.com
sso_region = eu-west-1
sso_account_id = 1
sso_role_name = me
[profile role]
role_arn = arn:aws:iam::1:role/me
source_profile = nobody
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Return the environment of somebody who has both files, and no keys in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, text in (("AWS_SHARED_CREDENTIALS_FILE", CREDENTIALS), ("AWS_CONFIG_FILE", CONFIG)):
        (tmp_path / name).write_text(text)
        monkeypatch.setenv(name, str(tmp_path / name))
    return monkeypatch


def signer(bucket: FakeBucket, options: str = "") -> str:
    """Begin a store, and return who signed for it."""

    async def begin() -> None:
        await (await open_store(f"{bucket.url()}{options}", begin=True)).close()

    asyncio.run(begin())
    [found] = bucket.signers
    return found


def test_the_default_profile_is_found(bucket: FakeBucket, home: pytest.MonkeyPatch) -> None:
    assert signer(bucket) == "DEFAULT/eu-west-1"


def test_the_environment_goes_first(bucket: FakeBucket, home: pytest.MonkeyPatch) -> None:
    home.setenv("AWS_ACCESS_KEY_ID", "ENVIRONMENT")
    home.setenv("AWS_SECRET_ACCESS_KEY", "x")
    home.setenv("AWS_REGION", "us-west-2")
    assert signer(bucket) == "ENVIRONMENT/us-west-2"


def test_a_profile_that_the_store_names_goes_before_all(bucket: FakeBucket, home: pytest.MonkeyPatch) -> None:
    home.setenv("AWS_ACCESS_KEY_ID", "ENVIRONMENT")
    home.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert signer(bucket, "&profile=work") == "WORK/eu-north-1"


def test_a_region_that_the_store_names_goes_before_all(bucket: FakeBucket, home: pytest.MonkeyPatch) -> None:
    home.setenv("AWS_PROFILE", "work")
    assert signer(bucket, "&region=sa-east-1") == "WORK/sa-east-1"


def test_a_profile_that_is_not_there_is_named(bucket: FakeBucket, home: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreRefused, match="expected the profile 'wrok'") as caught:
        signer(bucket, "&profile=wrok")
    assert "list-profiles" in (caught.value.hint or "")


def test_a_torn_file_is_named(bucket: FakeBucket, home: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "AWS_CONFIG_FILE").write_text("region = x\n")
    with pytest.raises(StoreRefused, match="AWS_CONFIG_FILE cannot be read"):
        signer(bucket)


def test_a_profile_that_needs_more_says_what_to_install(bucket: FakeBucket, home: pytest.MonkeyPatch) -> None:
    code = (
        "import asyncio, sys; sys.modules['botocore.session'] = None\n"
        "from monkey.store.open import open_store\n"
        "asyncio.run(open_store(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code, f"{bucket.url()}&profile=sso"], capture_output=True, text=True)
    assert "pip install botocore" in done.stderr.splitlines()[-1]
    assert "'sso' needs more than keys" in done.stderr.splitlines()[-1]


@pytest.mark.needs("boto3")
def test_botocore_s_own_troubles_are_told(bucket: FakeBucket, home: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home.setenv("HOME", str(tmp_path))
    with pytest.raises(StoreRefused, match="could not be fetched: SSOTokenLoadError") as caught:
        signer(bucket, "&profile=sso")
    assert "aws sso login" in (caught.value.hint or "")
    with pytest.raises(StoreRefused, match='The source_profile "nobody"'):
        signer(bucket, "&profile=role")
