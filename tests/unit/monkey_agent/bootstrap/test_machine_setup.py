"""How a machine of a cloud learns whom it is to obey: real metadata over HTTP, and a bucket."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import SigningError
from monkey.fleet.cloud.http_client import ApiError
from monkey.fleet.cloud.machine_paths import CODE
from monkey.signing.allowed_signers import AllowedSigner
from monkey.signing.entry_signers import load_agent_signers
from monkey.signing.machine_list import hash_signers, spell_signers_key
from monkey.signing.signer_list import OWNER
from monkey_agent.bootstrap import machine_setup
from tests.bucket import FakeBucket
from tests.rented.metadata import Metadata, role
from tests.signing import make_key

LIST = "".join(f"{AllowedSigner(name, make_key(n).public).line}\n" for n, name in ((1, OWNER), (2, "bob")))
SAID = {
    "aws": role("machines", {"AccessKeyId": "A", "SecretAccessKey": "s", "Token": "t"}),
    "gcp": {"service-accounts/default/token": '{"access_token": "t"}'},
}


@pytest.fixture(params=["aws", "gcp"])
def settings(request: pytest.FixtureRequest, bucket: FakeBucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what user data tell a machine that can be told so here."""
    metadata = Metadata(request.param, SAID[request.param])
    address = metadata.serve_here()
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://{address}")
    monkeypatch.setenv("GCE_METADATA_HOST", address)
    monkeypatch.setattr(machine_setup, "LATE", 0.1)
    url = bucket.url("s3" if request.param == "aws" else "gs", "team")
    yield {"cloud": request.param, "store": url, "region": "eu-central-1", "signers": hash_signers(LIST)}
    metadata.close()


def put(bucket: FakeBucket, text: str) -> None:
    bucket.objects.put(f"team/{spell_signers_key(hash_signers(LIST))}", text.encode(), if_absent=False)


def test_the_list_that_user_data_announce_is_what_the_agent_reads(
    settings: dict[str, Any], bucket: FakeBucket, tmp_path: Path
) -> None:
    put(bucket, LIST)
    path = tmp_path / "signers"
    for _ in range(2):
        machine_setup.write_signers(settings, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [signer.name for signer in load_agent_signers(path).signers] == [OWNER, "bob"]


def test_another_list_is_refused_and_the_one_that_was_there_stays(
    settings: dict[str, Any], bucket: FakeBucket, tmp_path: Path
) -> None:
    path = tmp_path / "signers"
    path.write_text("before")
    put(bucket, LIST.replace("bob", "eve"))
    with pytest.raises(SigningError, match="is another list of signers"):
        machine_setup.write_signers(settings, path)
    assert path.read_text() == "before"
    bucket.objects.delete(f"team/{spell_signers_key(hash_signers(LIST))}")
    with pytest.raises(ApiError, match="404"):
        machine_setup.write_signers(settings, path)
    assert path.read_text() == "before"


def test_the_list_lies_where_jobs_cannot_change_it() -> None:
    """The agent's own directory belongs to the user whose jobs run: they could put another file in its place."""
    assert machine_setup.SIGNERS.parent == CODE
