"""What agents elsewhere are given for a bucket, from the environment and files here, and until when it is good."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.store_credentials import StoreCredentials, find_credentials, strip_profile

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OURS = ("AWS_", "AZURE_", "GOOGLE_")


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Be on a machine that has two profiles of Amazon's, and nothing else."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = d\n"
        "[work]\naws_access_key_id = W\naws_secret_access_key = w\naws_session_token = t\n"
    )
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n[profile work]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return monkeypatch


def test_a_profile_becomes_keys() -> None:
    found = find_credentials("s3://bucket/x")
    assert found.variables == {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "D", "AWS_SECRET_ACCESS_KEY": "d"}
    assert found.warning(NOW) == ""
    found = find_credentials("s3://bucket/x?profile=work")
    assert found.variables["AWS_ACCESS_KEY_ID"] == "W" and found.variables["AWS_REGION"] == "eu-north-1"
    assert "end by themselves" in found.warning(NOW), "a session token ends"
    assert strip_profile("s3://bucket/x?profile=work&region=a") == "s3://bucket/x?region=a"
    assert strip_profile("ssh://host/dir") == "ssh://host/dir"


def test_variables_are_handed_on_with_the_time_at_which_they_end(nobody: pytest.MonkeyPatch) -> None:
    said = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "e", "AWS_SESSION_TOKEN": "s", "AWS_REGION": "r"}
    for name, value in {**said, "AWS_CREDENTIAL_EXPIRATION": "2026-11-21T15:58:00+00:00"}.items():
        nobody.setenv(name, value)
    found = find_credentials("s3://bucket/x")
    assert found.variables == said
    assert "end at 2026-11-21 15:58 UTC, in 3 h 58 min" in found.warning(NOW)
    nobody.setenv("AWS_CREDENTIAL_EXPIRATION", "soon")
    assert find_credentials("s3://bucket/x").until is None


def test_of_azure_what_begins_so_and_nothing_else(nobody: pytest.MonkeyPatch) -> None:
    nobody.setenv("AZURE_STORAGE_KEY", "k")
    nobody.setenv("AZURE_DEVOPS_PAT", "none of theirs")
    assert find_credentials("az://container/x").variables == {"AZURE_STORAGE_KEY": "k"}


def test_of_google_the_content_of_a_service_account_s_file(nobody: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(FleetError, match="no credentials for a store at gs://") as caught:
        find_credentials("gs://bucket/x")
    assert "GOOGLE_APPLICATION_CREDENTIALS" in (caught.value.hint or "")
    file = tmp_path / "key.json"
    nobody.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    for text, message in (
        (None, "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"type": "authorized_user"}', "found one of type 'authorized_user'"),
    ):
        if text is not None:
            file.write_text(text)
        with pytest.raises(FleetError, match=message):
            find_credentials("gs://bucket/x")
    file.write_text(json.dumps({"type": "service_account", "private_key": "k"}))
    assert find_credentials("gs://bucket/x").variables == {"GOOGLE_SERVICE_ACCOUNT_KEY": file.read_text()}


def test_other_stores_need_none_and_nothing_secret_is_shown() -> None:
    assert not find_credentials("ssh://host/dir").variables and not find_credentials("/mnt/store").variables
    assert "hidden" not in repr(StoreCredentials({"KEY": "hidden"}))
