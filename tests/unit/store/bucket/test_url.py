"""Addresses of buckets: one form each, and what is wrong with the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monkey.errors import StoreError
from monkey.store.bucket.url import parse_bucket_url
from monkey.store.open import locate_url


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("s3://b", "s3://b"),
        ("S3://b/", "s3://b"),
        ("s3://b/a//", "s3://b/a"),
        ("s3://b/a b/größe", "s3://b/a%20b/gr%C3%B6%C3%9Fe"),
        ("s3://b/a%20b", "s3://b/a%20b"),
        ("s3://b/p?region=eu-west-1&endpoint=http://h:9/", "s3://b/p?endpoint=http://h:9&region=eu-west-1"),
        ("s3://b?profile=a%26b", "s3://b?profile=a%26b"),
        ("gs://b/p", "gs://b/p"),
        ("az://c/p?account=me", "az://c/p?account=me"),
    ],
)
def test_urls_have_one_form(url: str, place: str) -> None:
    assert locate_url(url) == place
    assert locate_url(place) == place


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://", "no bucket"),
        ("s3:///a", "no bucket"),
        ("s3://buck et/a", "'buck et' names no bucket"),
        ("s3://b/a/../c", "is not a key"),
        ("s3://b/a//c", "is not a key"),
        ("s3://b/a#c", "'#'"),
        ("s3://b?regoin=x", "has no option 'regoin' .hint: did you mean 'region'"),
        ("s3://b?region", "it is no URL"),
        ("s3://b?region=", "'region' is empty"),
        ("s3://b?region=a&region=b", "twice"),
        ("gs://b?region=a", "has no option 'region'"),
        ("s3://b?region=evil.example/", "'evil.example/' is no region"),
        ("s3://b?region=eu@evil.example:1/x", "is no region"),
        ("az://c?account=evil.example/", "'evil.example/' is no account"),
        ("az://c?account=me.evil.example%23", "is no account"),
        ("s3://b?endpoint=h:9", "expected an endpoint"),
        ("s3://b?endpoint=ftp://h", "expected an endpoint"),
        ("s3://b?endpoint=http://u:p@h", "expected an endpoint"),
    ],
)
def test_what_is_wrong_is_said(url: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        locate_url(url)
    assert caught.value.hint


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(StoreError, match="credentials") as caught:
        locate_url("s3://KEY:secret@bucket/a")
    assert "secret" not in str(caught.value)
    with pytest.raises(StoreError, match="has no option") as caught:
        locate_url("s3://bucket/a?aws_secret_access_key=hunter2")
    assert "hunter2" not in str(caught.value)


def test_amazons_endpoint_variables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://all:1")
    assert parse_bucket_url("s3://b").endpoint == "http://all:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3:1")
    assert parse_bucket_url("s3://b").endpoint == "http://s3:1"
    assert parse_bucket_url("s3://b?endpoint=http://told:1").endpoint == "http://told:1"
    assert parse_bucket_url("gs://b").endpoint is None


def test_a_directory_needs_nothing_of_this() -> None:
    code = (
        "import asyncio, sys, tempfile; from monkey.store.open import open_store\n"
        "with tempfile.TemporaryDirectory() as at: asyncio.run(open_store(at + '/s', begin=True))\n"
        "heavy = ('obstore', 'asyncssh', 'monkey.store.bucket.store')\n"
        "print(*[name for name in sys.modules if name.startswith(heavy)])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip() == ""
