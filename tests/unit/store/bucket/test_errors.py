"""What goes wrong with a bucket is said in our words, with what to do; the answers are those that clouds give."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import KeyMissing, MonkeyError, StoreForbidden, StoreRefused, StoreUnavailable, StoreUnsafe
from monkey.store.bucket.errors import SOURCES, StoreOperation, translate_bucket_error
from monkey.store.bucket.google_credentials import VARIABLES
from monkey.store.bucket.url import parse_bucket_url
from monkey.store.open import open_store
from monkey.store.store_port import Store
from tests.bucket import FakeBucket, Fault, Refusal
from tests.loops import Run

WHO = "User: arn:aws:iam::1:user/me is not authorized to perform this"
REGION = "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-west-1'"

#: What the server answers → the kind of error, a word of what is said, and one of what to do.
ANSWERS = [
    (Refusal(404, "NoSuchBucket"), StoreRefused, "there is no bucket 'bucket'", "create the bucket"),
    (Refusal(400, "ExpiredToken", "The provided token has expired."), StoreRefused, "have expired", "aws sso login"),
    (Refusal(403, "InvalidAccessKeyId"), StoreRefused, "not accepted", "AWS_ACCESS_KEY_ID"),
    (Refusal(403, "SignatureDoesNotMatch"), StoreRefused, "not accepted", "AWS_ACCESS_KEY_ID"),
    (Refusal(401, "Unauthorized"), StoreRefused, "not accepted", "AWS_ACCESS_KEY_ID"),
    (Refusal(403, "RequestTimeTooSkewed"), StoreRefused, "clock is wrong", "NTP"),
    (Refusal(403, "QuotaExceeded", "The bucket is full"), StoreRefused, "it refused (QuotaExceeded", ""),
    (
        Refusal(400, "AuthorizationHeaderMalformed", REGION),
        StoreRefused,
        "the bucket is in eu-west-1",
        "region: eu-west-1",
    ),
    (Refusal(301, "PermanentRedirect"), StoreRefused, "in another region", "get-bucket-location"),
    (Refusal(400, "KeyTooLongError", "Your key is too long"), StoreRefused, "Your key is too long", ""),
    (Refusal(503, "SlowDown"), StoreUnavailable, "cannot answer now", ""),
    (Refusal(500, "InternalError"), StoreUnavailable, "cannot answer now", ""),
    (Refusal(429, "TooManyRequests"), StoreUnavailable, "cannot answer now", ""),
]


@pytest.fixture
def store(bucket: FakeBucket, run: Run) -> Store:
    opened: Store = run(open_store(bucket.url(), begin=True))
    return opened


async def refusals(store: Store, tmp_path: Path) -> dict[str, Any]:
    """Ask for everything at once; returns what was raised, by the permission that it takes."""
    file = tmp_path / "file"
    file.write_bytes(b"x")
    asked = {
        "s3:PutObject": store.put("k", b"x"),
        "s3:PutObject ": store.put_file("k", file),
        "s3:PutObject  ": store.create("k", b"x"),
        "s3:GetObject and s3:ListBucket": store.get("k"),
        "s3:GetObject and s3:ListBucket ": store.get_file("k", tmp_path / "copy"),
        "s3:ListBucket": store.list("k"),
        "s3:DeleteObject": store.delete("k"),
    }
    return dict(zip(asked, await asyncio.gather(*asked.values(), return_exceptions=True), strict=True))


@pytest.mark.parametrize(("answer", "kind", "said", "hint"), ANSWERS, ids=lambda x: getattr(x, "code", None))
def test_each_answer_is_told_in_words(
    bucket: FakeBucket,
    store: Store,
    run: Run,
    tmp_path: Path,
    answer: Refusal,
    kind: type[MonkeyError],
    said: str,
    hint: str,
) -> None:
    bucket.refusal = answer
    for error in run(refusals(store, tmp_path)).values():
        assert isinstance(error, kind), repr(error)
        assert said in error.message
        assert hint in (error.hint or "")
        assert store.url in error.message
        assert "<" not in error.message and "Debug" not in error.message
    assert not list(tmp_path.glob("*copy*"))


def test_a_denial_names_the_permission(bucket: FakeBucket, store: Store, run: Run, tmp_path: Path) -> None:
    bucket.refusal = Refusal(403, "AccessDenied", WHO)
    for permission, error in run(refusals(store, tmp_path)).items():
        assert isinstance(error, StoreForbidden)
        assert "these credentials may not" in error.message and WHO in error.message
        assert f"it takes {permission.strip()};" in (error.hint or "")


def test_a_missing_key_is_no_missing_bucket(bucket: FakeBucket, store: Store, run: Run) -> None:
    with pytest.raises(KeyMissing):
        run(store.get("k"))
    for begin in (False, True):
        with pytest.raises(StoreRefused, match="there is no bucket 'other'") as caught:
            run(open_store(bucket.url(bucket="other"), begin=begin))
        assert (caught.value.hint or "").startswith("create the bucket, or")  # whose it is makes it
    told = translate_bucket_error(
        Exception("status code: 404 <Code>NoSuchBucket</Code>"), parse_bucket_url("s3://other/x"), StoreOperation.READ
    )
    assert "`monkey init --provider aws --create-bucket`" in (told.hint or "")


def test_a_server_that_is_not_there_is_named(run: Run) -> None:
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1 cannot be reached") as caught:
        run(open_store("s3://bucket?endpoint=http://127.0.0.1:1"))
    assert "network" in (caught.value.hint or "")
    with pytest.raises(StoreUnavailable, match=r"the host no-such-host\.invalid"):
        run(open_store("s3://bucket?endpoint=http://no-such-host.invalid"))


def test_a_refusal_after_a_lost_answer_promises_nothing(bucket: FakeBucket, store: Store, run: Run) -> None:
    """The first try was carried out, the second one refused: nobody may be told that nothing was written."""

    bucket.faults.script([Fault.BUSY_AFTER, Fault.DENY], lambda kind, key: key == "k")
    with pytest.raises(StoreUnavailable, match="expired"):
        run(store.create("k", b"x"))
    assert bucket.objects.get("k")


def test_what_others_put_there_is_not_taken_for_a_place_to_begin(bucket: FakeBucket, run: Run) -> None:
    bucket.objects.put("thesis.tex", b"", if_absent=False)
    with pytest.raises(StoreRefused, match=r"found 'thesis\.tex' there") as caught:
        run(open_store(bucket.url(), begin=True))
    assert "prefix" in (caught.value.hint or "")
    assert bucket.objects.keys == ["thesis.tex"]
    bucket.objects.put("dvc/files/md5/aa/b", b"", if_absent=False)
    run(open_store(bucket.url(prefix="dvc"), begin=True))


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_bucket_whose_promise_is_a_lie_is_refused(bucket: FakeBucket, run: Run, scheme: str) -> None:
    bucket.objects.lies = True
    with pytest.raises(StoreUnsafe, match="expected one to win"):
        run(open_store(bucket.url(scheme), begin=True))
    assert bucket.objects.keys == []


def test_whose_credentials_were_refused_is_said_and_no_secret(
    bucket: FakeBucket, store: Store, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.refusal = Refusal(403, "AccessDenied", WHO)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAMINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    with pytest.raises(StoreRefused, match="access key AKIAMINE, from AWS_ACCESS_KEY_ID") as caught:
        run(store.get("k"))
    assert "very-secret" not in caught.value.message


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have no credentials of any cloud."""
    for name in [each for each in os.environ if each.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def no_client(run: Run, url: str) -> StoreRefused:
    """Return what is said where no client can be made."""
    with pytest.raises(StoreRefused) as caught:
        run(open_store(url))
    error = caught.value
    assert "Debug" not in error.message and "SECRET" not in error.message.replace("AWS_SECRET", "")
    assert error.hint == SOURCES[url[:2]]
    return error


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("given", "missing"),
    [("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")],
)
def test_half_of_amazons_credentials_is_none(
    run: Run, monkeypatch: pytest.MonkeyPatch, given: str, missing: str
) -> None:
    monkeypatch.setenv(given, "SECRET")
    assert f"expected credentials, found {given} without {missing}" in no_client(run, "s3://bucket").message


KEY = "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n"
ACCOUNT = {"type": "service_account", "client_email": "a", "private_key_id": "1"}
FILES = [
    (None, "cannot be read: No such file or directory"),
    ("", "is not JSON"),
    ('{"type": SECRET', "is not JSON"),
    ('"SECRET"', "does not say its 'type'"),
    ('{"type": "external_account"}', "is 'external_account', expected one of 'service_account' or 'authorized_user'"),
    ('{"type": "SECRET"}', "is of a type that is not known"),
    ('{"type": "authorized_user", "client_id": "a"}', "has no 'client_secret'"),
    (json.dumps({**ACCOUNT, "private_key": KEY}), "has a 'private_key' that is not one"),
]


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("variable", [*VARIABLES, "HOME"])
@pytest.mark.parametrize(("content", "why"), FILES)
def test_a_file_of_googles_that_is_none_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, content: str | None, why: str
) -> None:
    file = tmp_path / ".config/gcloud/application_default_credentials.json"
    if content is None and variable == "HOME":
        return  # the machine's own account is asked
    file.parent.mkdir(parents=True)
    if content is not None:
        file.write_text(content)
    if variable != "HOME":
        monkeypatch.setenv(variable, str(file))
    assert why in no_client(run, "gs://bucket").message


@pytest.mark.usefixtures("nobody")
def test_variables_of_which_no_client_can_be_made_are_told_without_their_values(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
    assert "GOOGLE_APPLICATION_CREDENTIALS is set, and empty" in no_client(run, "gs://bucket").message
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "SECRET")
    assert "GOOGLE_SERVICE_ACCOUNT_KEY" in no_client(run, "gs://bucket").message
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "!SECRET")
    assert "Invalid Access Key" in no_client(run, "az://bucket?account=a").message
    monkeypatch.setenv("AWS_CHECKSUM_ALGORITHM", "SECRET")
    assert "… is not a valid checksum algorithm" in no_client(run, "s3://bucket").message
