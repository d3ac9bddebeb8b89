"""What is said of machines of any cloud: whose an error is, and what of a disk."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from monkey.errors import FleetError
from monkey.signing.entry_signers import load_user_signers
from monkey.spec.project.provider import parse_provider
from monkey_stacks.aws.api.errors import translate_errors
from monkey_stacks.aws.fleet import make_fleet
from monkey_stacks.cloud import cloud_descriptions as words


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("there is no such image in this region: x", "provider 'cloud': there is no such image in eu-central-1: x"),
        ("Google does not permit it", "provider 'cloud': Google does not permit it"),
        ("the machines of provider 'cloud' are in a", "the machines of provider 'cloud' are in a"),
    ],
)
def test_an_error_names_the_provider_once(message: str, said: str) -> None:
    with pytest.raises(FleetError) as caught, words.name_provider("cloud", "eu-central-1"):
        raise FleetError(message, hint="mend it")
    assert (caught.value.message, caught.value.hint) == (said, "mend it")


def test_amazons_own_words_are_told_without_its_librarys() -> None:
    refused: Any = {"Error": {"Code": "InvalidInstanceType", "Message": "The following types do not exist: [m5.nope]"}}
    with pytest.raises(FleetError) as caught, words.name_provider("cloud", "eu-central-1"), translate_errors():
        raise ClientError(refused, "DescribeInstanceTypes")
    assert caught.value.message == (
        "provider 'cloud': there is no such type of machines in eu-central-1: "
        "InvalidInstanceType (DescribeInstanceTypes): The following types do not exist: [m5.nope]"
    )
    with pytest.raises(FleetError, match=r"AWS refused: Odd: An error occurred \(Odd\)"), translate_errors():
        raise ClientError({"Error": {"Code": "Odd", "Message": ""}}, "DescribeInstanceTypes")


@pytest.mark.parametrize(("disk", "gibibytes", "notes"), [(8 << 30, 8, 0), ((8 << 30) - 5, 8, 0), (8 << 30, 15, 1)])
def test_a_disk_that_the_image_makes_larger_is_noted(disk: int, gibibytes: int, notes: int) -> None:
    wanted = cast("words.CloudFleetPlan", SimpleNamespace(disk=disk, gibibytes=gibibytes))
    said = words.describe_larger_disk(wanted)
    assert said == ["disk: 8 GiB is too small for the image: machines have 15 GiB"][:notes]


def test_where_a_secret_is_can_be_pasted_into_monkey_yaml() -> None:
    provider = parse_provider({"type": "aws", "region": "eu-central-1", "instance_type": "m5.large"})
    with pytest.raises(FleetError) as caught:
        make_fleet("cloud", provider, "p", "s3://b", lambda: None, load_user_signers).check_secrets(["TOK"])
    assert (caught.value.hint or "").startswith("write secrets: {TOK: ssm:/PATH} beside type: aws in monkey.yaml")
