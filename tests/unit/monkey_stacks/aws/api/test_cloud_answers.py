"""Who answers in place of a cloud, and how a cloud says what is wrong: told in our words, and never a bug of ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.aws.api import catalog, group, inventory
from monkey_stacks.aws.api import errors as aws
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.naming import AwsStack
from monkey_stacks.gcp.api.account import GcpAccount as Project

OURS = AwsStack("shop", "cloud", "1234")
LOGIN = b"<html><head><title>Log in</title></head><body>hello</body></html>"
UNTIDY = b"<!DOCTYPE html><html><body><br>hello</html>"
#: What botocore takes for an answer in which nothing is.
EMPTY = b"<Answer/>"
WORDS = b"<Response><Errors><Error><Code>RequestExpired</Code><Message>Expired.</Message></Error></Errors></Response>"


class _Server(ThreadingHTTPServer):
    answer: tuple[int, bytes] = (200, b"")


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, body = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[_Server]:
    """Return who answers in place of both clouds."""
    with _Server(("127.0.0.1", 0), _Handler) as made:
        threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{made.server_port}"
        file = tmp_path / "file"
        file.touch()
        for name, value in (
            *(("AWS_ENDPOINT_URL", url), ("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", url), ("NO_PROXY", "127.0.0.1")),
            *(("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("GOOGLE_OAUTH_ACCESS_TOKEN", "c")),
            ("XDG_CACHE_HOME", str(file)),
        ):
            monkeypatch.setenv(name, value)
        yield made
        made.shutdown()


ASKED: list[Callable[[AwsAccount], object]] = [
    lambda at: catalog.read_machine_types(at, ["g5.xlarge"]),
    lambda at: catalog.find_zones(at, ["g5.xlarge"]),
    lambda at: catalog.find_image(at, "resolve:ssm:/a", "x86_64"),
    lambda at: catalog.check_network(at, "vpc-1", ["subnet-1"]),
    lambda at: group.find_group(at, OURS),
    lambda at: group.explain_trouble(at, OURS),
    lambda at: group.schedule_emptying(at, OURS, time.time()),
    lambda at: inventory.list_stack(at, OURS),
]


@pytest.mark.needs("boto3")
def test_who_answers_in_place_of_aws_is_not_taken_for_it(server: _Server) -> None:
    at = AwsAccount("eu-central-1")
    for server.answer in ((200, LOGIN), (200, UNTIDY), (403, LOGIN), (403, UNTIDY)):
        for ask in ASKED:
            with pytest.raises(FleetError, match="it is not AWS that answers") as caught:
                ask(at)
            assert "HTTPS_PROXY" in (caught.value.hint or "")
            assert not caught.value.message.endswith(":")
    server.answer = (200, EMPTY)
    for ask in (ASKED[0], ASKED[1], ASKED[3], ASKED[4], ASKED[5], ASKED[7]):
        with pytest.raises(FleetError, match="it is not AWS that answers: its answer has no "):
            ask(at)


@pytest.mark.needs("boto3")
def test_a_request_that_is_too_old_is_a_matter_of_the_clock(server: _Server) -> None:
    server.answer = (400, WORDS)
    with pytest.raises(FleetError, match=r"clock is wrong: .*RequestExpired"):
        catalog.read_machine_types(AwsAccount("eu-central-1"), ["g5.xlarge"])
    login = aws.translate_cloud_error("ExpiredToken: The security token included in the request is expired")
    assert login is not None and "credentials have expired" in login.message


@pytest.mark.needs("boto3")
def test_types_are_known_also_where_nothing_can_be_remembered(server: _Server) -> None:
    server.answer = (200, _TYPES)
    [found] = catalog.read_machine_types(AwsAccount("eu-central-1"), ["m5.large"])
    assert (found.type, found.cpus, found.memory) == ("m5.large", 2, 8 << 30)


_TYPES = b"""<DescribeInstanceTypesResponse><instanceTypeSet><item><instanceType>m5.large</instanceType>
<processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures></processorInfo>
<vCpuInfo><defaultVCpus>2</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>8192</sizeInMiB></memoryInfo>
</item></instanceTypeSet></DescribeInstanceTypesResponse>"""


@pytest.mark.parametrize("answer", [(200, LOGIN), (200, b"[]"), (403, UNTIDY)], ids=str)
def test_who_answers_in_place_of_google_is_not_taken_for_it(server: _Server, answer: tuple[int, bytes]) -> None:
    server.answer = answer
    project = Project("my-project", "europe-west4")
    with pytest.raises(FleetError, match="it is not Google's API that answers") as caught:
        project.ask("GET", "compute", project.here)
    assert "HTTPS_PROXY" in (caught.value.hint or "")
