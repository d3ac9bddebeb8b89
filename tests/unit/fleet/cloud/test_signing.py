"""Amazon's signature, as Amazon's own library makes it."""

from __future__ import annotations

import calendar
import time

import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from monkey.fleet.cloud.signing import AwsKeys, sign_request

KEYS = AwsKeys("ASIAKEY", "se/cret+", "to=ken")


@pytest.mark.parametrize("token", ["", KEYS.token])
@pytest.mark.parametrize(
    ("method", "url", "service", "body", "headers"),
    [
        ("GET", "http://bucket.s3.eu-central-1.amazonaws.com/a/bundle/0.tar.gz", "s3", b"", {}),
        ("PUT", "http://127.0.0.1:9000/bucket/a%20b/%C3%A9~x", "s3", b"data", {"Content-Type": "text/plain"}),
        (
            "POST",
            "http://autoscaling.eu-central-1.amazonaws.com/",
            "autoscaling",
            b"Action=A&B=c",
            {"X-Amz-Target": "t"},
        ),
        ("POST", "http://localhost:5000/", "ssm", b'{"Name": "/x"}', {"Content-Type": "application/x-amz-json-1.1"}),
    ],
)
def test_it_is_the_one_that_botocore_makes(
    method: str, url: str, service: str, body: bytes, headers: dict[str, str], token: str
) -> None:
    request = AWSRequest(method, url, data=body, headers=headers)
    theirs = (S3SigV4Auth if service == "s3" else SigV4Auth)(
        Credentials(KEYS.id, KEYS.secret, token or None), service, "eu-central-1"
    )
    if service != "s3":
        request.headers["X-Amz-Content-SHA256"] = sign_request(method, url, "", "", KEYS, body, {}, 0)[
            "X-Amz-Content-SHA256"
        ]
    theirs.add_auth(request)
    now = calendar.timegm(time.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
    ours = sign_request(method, url, "eu-central-1", service, AwsKeys(KEYS.id, KEYS.secret, token), body, headers, now)
    assert ours["Authorization"] == request.headers["Authorization"]
    assert ours == dict(request.headers.items())
