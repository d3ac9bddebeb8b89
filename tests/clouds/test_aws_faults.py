"""What goes wrong at AWS is told in one message: what it is, what AWS said, and what to do; the next apply goes on."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.shop import Shop, until
from tests.clouds.account import Account
from tests.clouds.cli import SLOWLY, group, project, rent, run

pytestmark = pytest.mark.slow

#: Keys of whoever applies, which nobody may be told.
SECRETS = {"AWS_SECRET_ACCESS_KEY": "planted-key-1d5f", "AWS_SESSION_TOKEN": "planted-token-77ab"}
APPLY = ("apply", "--yes", "--detach")


class Case(NamedTuple):
    """What is refused, by which code, status and message; what people read, and what they are told to do."""

    action: str
    code: str
    status: int
    message: str
    said: str
    hint: str


#: Any call but those of S3: it has other words.
ANY, STORE = "(?!.*Object).*", ".*Object"
NOBODY = "AWS was not able to validate the provided access credentials"
EXPIRED = "The security token included in the request is expired"
FORBIDDEN = "You are not authorized to perform this operation."
FULL = "The maximum number of VPCs has been reached."
UNKNOWN = "The AWS Access Key Id you provided does not exist in our records."
POLICY = ("AWS does not permit it", "monkey init --provider aws")
AT_ONCE = [
    Case(STORE, "InvalidAccessKeyId", 403, UNKNOWN, "credentials", "AWS_ACCESS_KEY_ID"),
    Case(ANY, "AuthFailure", 401, NOBODY, "AWS does not know these credentials", "aws sts get-caller-identity"),
    Case(ANY, "ExpiredToken", 400, EXPIRED, "AWS's credentials have expired", "aws sso login"),
    Case("DescribeImages", "UnauthorizedOperation", 403, FORBIDDEN, *POLICY),
    Case("DescribeVpcs", "RequestLimitExceeded", 503, "Request limit exceeded.", "AWS is asked too often", "try again"),
]
BY_PULUMI = [
    Case("CreateVpc", "VpcLimitExceeded", 400, FULL, "a quota of the account is used up", "servicequotas"),
    Case("CreateLaunchTemplate", "UnauthorizedOperation", 403, FORBIDDEN, *POLICY),
]
#: Why a group has no machines: what AWS's own activity says.
NONE_NOW = (
    "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (eu-central-1a)."
)
TOO_MANY = "You have requested more vCPU capacity than your current vCPU limit of 32 allows."


@pytest.fixture
def shop(aws: Account, require: Callable[[str], str], tmp_path: Path) -> Iterator[Shop]:
    """Return a project with work for two machines."""
    require("pulumi")
    shop = project(aws, tmp_path, jobs=4)
    shop.env |= SECRETS
    yield shop
    shop.kill_all()


def told(shop: Shop, *arguments: str) -> str:
    """Return the one message with which a command fails."""
    done = shop.run(*arguments, code=1, patience=SLOWLY)
    return one(done.stdout, done.stderr)


def one(out: str, message: str) -> str:
    assert not [name for name, secret in SECRETS.items() if secret in out + message]
    assert "Traceback" not in out + message
    assert message.startswith("error: ") and message.count("error: ") == 1 and len(message.splitlines()) <= 4, message
    return message


def test_what_goes_wrong_is_told_and_the_next_apply_goes_on(shop: Shop, aws: Account) -> None:
    image = aws.image()
    rent(shop, image)
    for case in [*AT_ONCE, *BY_PULUMI]:
        aws.wire.refuse(case.action, case.code, case.message, case.status)
        message = told(shop, *APPLY)
        assert case.said in message and case.hint in message, message
        assert case.code in message or case.message in message, message
        assert case in BY_PULUMI or not [each for each in aws.wire.changes if "Object" not in each]
        aws.wire.clear()
    rent(shop, "ami-0123456789abcdef0")
    assert "there is no image ami-0123456789abcdef0 in eu-central-1" in told(shop, *APPLY)
    rent(shop, image)
    dead_plugin(shop, aws)
    run(shop, *APPLY)
    assert group(aws)["DesiredCapacity"] == len(group(aws)["Instances"]) == 2
    no_machines(shop, aws)


def dead_plugin(shop: Shop, aws: Account) -> None:
    """Kill the plugin in the middle."""
    hold = aws.wire.hold(1, after=True, chosen=lambda call: call.action == "CreateLaunchTemplate")
    process = shop.start(*APPLY)
    until(lambda: hold.reached.is_set() or process.poll() is not None, "a template is made", SLOWLY)
    for pid in shop.processes("tests.clouds.aws.plugin"):
        os.kill(pid, signal.SIGKILL)
    aws.wire.release()
    out, message = process.communicate(timeout=SLOWLY)
    assert process.returncode == 1
    said = one(out, message)
    assert "template: a plugin of Pulumi's ended in the middle" in said and "apply again" in said


def no_machines(shop: Shop, aws: Account) -> None:
    """A group whose machines do not come: one that may get some in a while is waited for, another is not."""
    none = re.compile(r"<Instances>.*?</Instances>", re.DOTALL)
    aws.wire.edits["DescribeAutoScalingGroups"] = lambda body: none.sub("<Instances/>", body)
    aws.wire.edits["DescribeScalingActivities"] = lambda body: failed(NONE_NOW)
    assert "2 machines have not come: AWS has no such machines now" in run(shop, "plan")
    aws.wire.edits["DescribeScalingActivities"] = lambda body: failed(TOO_MANY)
    message = told(shop, "apply", "--yes")
    assert "gets no machine: a quota of the account is used up" in message and "apply again" in message


def test_a_region_that_is_not_there_is_told(shop: Shop, aws: Account) -> None:
    # Where each region has a name of its own, as it has without our endpoint: nobody answers at this one.
    shop.env["AWS_ENDPOINT_URL_S3"] = shop.env.pop("AWS_ENDPOINT_URL")
    rent(shop, aws.image(), region="eu-nowhere-1")
    message = told(shop, *APPLY)
    assert "the region cannot be reached" in message and "check region: in monkey.yaml" in message


def failed(why: str) -> str:
    """Return an answer to DescribeScalingActivities as AWS gives it; moto knows of no failure."""
    begun = "<ActivityId>1</ActivityId><AutoScalingGroupName>x</AutoScalingGroupName><Cause>it is wanted</Cause>"
    ended = f"<StatusCode>Failed</StatusCode><StatusMessage>{why}</StatusMessage>"
    member = f"<member>{begun}<StartTime>2026-01-01T00:00:00Z</StartTime>{ended}</member>"
    listed = f"<DescribeScalingActivitiesResult><Activities>{member}</Activities></DescribeScalingActivitiesResult>"
    name = "DescribeScalingActivitiesResponse"
    return f'<{name} xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/">{listed}</{name}>'
