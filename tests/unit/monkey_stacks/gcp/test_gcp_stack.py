"""What a fleet is called at Google, what its machines are made from, until when, and Google's errors in our words."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import FleetError
from monkey.fleet.cloud.http_client import ApiError
from monkey.spec.project.cloud import CloudSettings
from monkey.spec.project.provider import Provider
from monkey_stacks.bundle.bundle import Bundle
from monkey_stacks.cloud import machine_settings
from monkey_stacks.engine.engine_outcome import ResourceChange, ResourceOp, StateResource
from monkey_stacks.gcp import descriptions as words
from monkey_stacks.gcp import desired_resources, machine_rights
from monkey_stacks.gcp.api import errors
from monkey_stacks.gcp.api.account import GcpAccount
from monkey_stacks.gcp.api.catalog import GcpImage, select_disk_type
from monkey_stacks.gcp.api.group import parse_time
from monkey_stacks.gcp.api.inventory import TYPES, GcpResource, find_orphans, identify_resource, name_service_account
from monkey_stacks.gcp.api.naming import name_stack

URL = "gs://bucket/team"
CLOUD = CloudSettings("europe-west4", ("g2-standard-8",), gcp_project="my-project")
IMAGE = GcpImage("projects/p/global/images/i", "x86_64", 8 << 30)
HERE = GcpAccount("my-project", "europe-west4")
NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@pytest.mark.parametrize(
    ("project", "fleet"), [("digits", "cloud"), ("p" * 63, "f" * 63), ("Digits_1.2", "a.b_c"), ("p" * 27, "ab")]
)
def test_a_stack_has_names_that_google_takes(project: str, fleet: str) -> None:
    one = name_stack(URL, project, fleet)
    template = one.template("0123abcd", "all of it")
    for name, most in ((one.name, 58), (template, 63), (one.account, 30)):
        assert NAME.fullmatch(name) and 6 <= len(name) <= most
    assert all(re.fullmatch(r"[a-z0-9_-]{1,63}", value) for value in one.labels.values())
    assert one.name.endswith(one.id) and "--" not in one.name.removesuffix(one.id)[-2:]
    link = f"https://www.googleapis.com/compute/v1/projects/p/global/instanceTemplates/{template}"
    assert one.made(template) == one.made(f"{link}?uniqueId=1") == "0123abcd" and one.made(f"{template}-x") == ""
    assert one.template("0123abcd", "something else") != template


def test_a_stack_is_of_one_place_in_one_bucket() -> None:
    one = name_stack(URL, "digits", "cloud")
    assert one == name_stack(f"{URL}/?endpoint=http://127.0.0.1:9", "digits", "cloud")
    others = [
        name_stack("gs://bucket/team2", "digits", "cloud"),
        name_stack(URL, "digits", "b"),
        name_stack(URL, "other", "cloud"),
    ]
    assert len({one.id, *(other.id for other in others)}) == 4
    with pytest.raises(FleetError, match=r"expected a bucket of Google's, found s3://bucket"):
        name_stack("s3://bucket", "digits", "cloud")
    assert name_service_account(HERE, one) == f"monkey-{one.id}@my-project.iam.gserviceaccount.com"
    assert name_service_account(GcpAccount("example.com:p", ""), one).endswith("@p.example.com.iam.gserviceaccount.com")


def test_a_machine_is_outdated_by_all_but_the_agents_code_and_its_end() -> None:
    def made(
        cloud: CloudSettings,
        bundle: str = "b",
        max_slots: int | None = None,
        zones: tuple[str, ...] = ("b", "a"),
        signers: str = "alice",
    ) -> str:
        provider = Provider("gcp", max_slots, cloud=cloud)
        stack = name_stack(URL, "digits", "cloud")
        code = Bundle(bundle, Path(bundle), (1,) * len(bundle))
        said = machine_settings.make_settings(provider, stack, URL, code, "group", signers)
        return machine_settings.hash_machine_inputs(cloud, IMAGE.id, said, zones)

    one = made(CLOUD)
    assert one == made(CLOUD, "another") == made(replace(CLOUD, max_instances=9, prices={"x": 1}))
    others = [made(replace(CLOUD, disk=1)), made(replace(CLOUD, spot=True)), made(CLOUD, max_slots=3)]
    others += [made(replace(CLOUD, secrets={"A": "a"})), made(replace(CLOUD, orphan_timeout=200))]
    others += [made(CLOUD, zones=("a",)), made(CLOUD, signers="alice\nbob")]
    assert len({one, *others}) == 8 and one == made(CLOUD, zones=("a", "b"))


def test_machines_end_at_the_time_of_their_sweeps_and_none_is_replaced_for_a_minute() -> None:
    def template(at: str) -> list[StateResource]:
        return [StateResource(TYPES["instance-template"], "template", "t", {"scheduling": {"terminationTime": at}})]

    at = time.time() // 60 * 60 + 3600
    said = desired_resources.find_end_time(at, [])
    assert parse_time(said) == at
    assert (
        desired_resources.find_end_time(at + 30, template(said))
        == desired_resources.find_end_time(None, template(said))
        == said
    )
    assert desired_resources.find_end_time(time.time() - 1, template(said)) == said, "what is over is not asked for"
    assert (
        desired_resources.find_end_time(at + 90, template(said)) != said
        and desired_resources.find_end_time(None, []) == ""
    )
    with pytest.raises(FleetError, match="after 120 days"):
        desired_resources.find_end_time(time.time() + 121 * 86400, [])


def test_what_was_cut_off_is_known_by_its_name_and_what_is_astray_by_not_being_known() -> None:
    one = name_stack(URL, "digits", "cloud")
    network = identify_resource(HERE, one, TYPES["network"], {"name": one.name})
    assert network == f"projects/my-project/global/networks/{one.name}"
    member = {"bucket": "b", "role": machine_rights.WRITE, "member": "serviceAccount:x", "condition": {"title": "t"}}
    assert identify_resource(HERE, one, "gcp:storage/bucketIAMMember:BucketIAMMember", member) == (
        f"b/b/{machine_rights.WRITE}/serviceAccount:x/t"
    )
    assert identify_resource(HERE, one, "gcp:other:Other", {}) is None
    things = [
        GcpResource("network", network),
        GcpResource("subnetwork", "projects/my-project/s"),
        GcpResource("instance", "i"),
    ]
    cut = [StateResource(TYPES["network"], "network", "", {"name": one.name}, interrupted=True)]
    assert find_orphans(HERE, one, things, cut) == [things[1]]


def test_changes_are_told_as_monkey_yaml_has_them() -> None:
    def why(**changes: tuple[Any, Any]) -> str:
        names = tuple(changes)
        before, after = (tuple(each[at] for each in changes.values()) for at in (0, 1))
        return words.describe_resource_change(
            ResourceChange(ResourceOp.REPLACE, "t", "template", names, before, after)
        ).why

    spot = {"provisioningModel": "SPOT"}
    ends = ({"terminationTime": "2026-01-01T00:00:00Z"}, {**spot, "terminationTime": "2026-01-01T06:00:00Z"})
    assert why(name=("a", "b"), machineType=("e2-small", "e2-medium")) == "machine_type e2-small → e2-medium"
    assert why(scheduling=ends) == ("spot false → true; machines end 2026-01-01 00:00 UTC → 2026-01-01 06:00 UTC")
    disks = ([{"diskSizeGb": 50.0, "sourceImage": "i"}], [{"diskSizeGb": 60.0, "sourceImage": "j"}])
    assert why(disks=disks) == "disk 50GiB → 60GiB; image's version i → j"
    names = ({"monkey-image": "team/a"}, {"monkey-image": "team/b"})
    shielded = ({"enableSecureBoot": True}, {"enableSecureBoot": False})
    said = why(disks=disks, metadata=names, shieldedInstanceConfig=shielded)
    assert said == "disk 50GiB → 60GiB; image team/a → team/b"
    assert (
        select_disk_type("c4-standard-2") == "hyperdisk-balanced" and select_disk_type("g2-standard-8") == "pd-balanced"
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("googleapi: Error 403: Required 'compute.networks.create' permission, forbidden", "does not permit it"),
        ("Error creating Network: googleapi: Error 403: Quota 'NETWORKS' exceeded. Limit: 5.0", "a quota of"),
        ('oauth2: "invalid_grant" "Token has been expired or revoked."', "credentials have expired"),
        ("Unable to find credentials, either GOOGLE_APPLICATION_CREDENTIALS or gcloud", "no credentials for Google"),
        ("googleapi: Error 403: Compute Engine API has not been used in project 1 before", "an API is not enabled"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED: The zone does not have enough resources", "no such machines now"),
        ("Error: could not find image or family team/none", "no such image"),
        ("googleapi: Error 412: To use conditions, uniform bucket-level access must be enabled", "single objects"),
        ("googleapi: Error 400: The network resource 'x' is already being used by 'y'", "something else still uses it"),
        ("googleapi: Error 404: The specified bucket does not exist., notFound", "no such bucket"),
    ],
)
def test_googles_errors_are_told_in_our_words(said: str, message: str) -> None:
    error = errors.translate_cloud_error(f"1 error occurred:\n\t* {said}\n\n")
    assert error is not None and message in error.message and error.message.endswith(said) and error.hint


def test_what_an_api_says_is_told_without_its_json() -> None:
    body = (
        '{"error": {"code": 403, "message": "No.", "status": "PERMISSION_DENIED", "errors": [{"reason": "forbidden"}]}}'
    )
    with pytest.raises(FleetError) as raised, errors.translate_errors():
        raise ApiError("GET https://compute.googleapis.com/x", 403, body)
    assert raised.value.message == "Google does not permit it: Error 403: No. (forbidden, PERMISSION_DENIED)"
    with pytest.raises(FleetError, match=r"Google refused: GET x: 418 teapot"), errors.translate_errors():
        raise ApiError("GET x", 418, "teapot")
