"""What goes wrong at Google is told in one message: what it is, what Google said, and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, cast

import pytest

from monkey.errors import FleetError
from monkey_stacks.cloud.cloud_fleet import CloudFleet
from monkey_stacks.gcp.fleet import GcpApi
from tests.clouds.gcp.desk import Google
from tests.clouds.gcp.offers import REGION, ZONES
from tests.clouds.gcp.renter import Renter
from tests.clouds.renter import FLEET


class Case(NamedTuple):
    """Which question is refused, in which words; what people read, and what they are told to do."""

    match: str
    words: str
    said: str
    hint: str


OFF = "Error 403: Compute Engine API has not been used in project my-project before or it is disabled."
RATE = "Error 403: Quota exceeded for quota metric 'Read requests', rateLimitExceeded"
AT_ONCE = [
    Case("GET .*machineTypes", "Error 403: Required 'compute.machineTypes.list' permission", "not permit", "init"),
    Case("GET .*machineTypes", OFF, "an API is not enabled in the project", "gcloud services enable"),
    Case("GET .*images", "Error 404: The resource was not found", "there is no image debian-cloud/debian-12", "image:"),
    Case("GET .*instanceGroupManagers", "Error 429: Too Many Requests", "Google is asked too often", "try again"),
]
FULL = "googleapi: Error 403: Quota 'NETWORKS' exceeded. Limit: 5.0 globally., quotaExceeded"
DENIED = "googleapi: Error 403: Required 'iam.serviceAccounts.create' permission, forbidden"


@pytest.fixture
def renter(pulumi: None, gcp: Google) -> Renter:
    """Return who applies there."""
    return Renter(gcp.url)


def fail(gcp: Google, *faults: dict[str, object]) -> None:
    (gcp.shelf.base / "faults.json").write_text(json.dumps(faults))


def told(ask: Callable[[], object]) -> FleetError:
    with pytest.raises(FleetError) as raised:
        ask()
    assert "Traceback" not in str(raised.value) and len(str(raised.value).splitlines()) <= 4
    return raised.value


@pytest.mark.parametrize("case", AT_ONCE, ids=lambda case: case.said)
def test_what_google_refuses_is_told(renter: Renter, gcp: Google, case: Case) -> None:
    fail(gcp, {"match": case.match, "say": case.words, "times": 99})
    error = told(renter.preview)
    assert case.said in error.message and case.hint in (error.hint or "")
    assert not gcp.shelf.things


def test_who_is_not_known_is_told_so(renter: Renter, gcp: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "old")
    assert told(renter.preview).message.startswith(f"provider '{FLEET}': Google does not know these credentials")
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    # As on a machine that nobody logged in on, and that is not at Google.
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(gcp.base))
    assert told(renter.preview).message.startswith(f"provider '{FLEET}': there are no credentials for Google here")


@pytest.mark.parametrize(
    ("entry", "said", "hint"),
    [
        ({"machine_type": "e9-huge-2"}, "there is no type of machines e9-huge-2 in europe-west4", "machine-types list"),
        ({"region": "moon-north1"}, "there is no region moon-north1", "regions list"),
        ({"image": "team/none"}, "there is no image team/none", "PROJECT/FAMILY"),
        ({"image": "debian-cloud/debian-12-arm64"}, "expected an image for x86_64", "name one"),
        ({"machine_type": "g2-standard-8"}, "g2-standard-8 has GPUs, and Debian", "deeplearning-platform-release/"),
        (
            {"machine_type": "g2-standard-8", "image": "team/ours", "zones": [ZONES[2]]},
            f"g2-standard-8 is not to be had in {ZONES[2]}",
            f"it is in {ZONES[0]}, {ZONES[1]}",
        ),
        ({"network": "theirs", "subnetwork": "none"}, "there is no such network in europe-west4", "leave both out"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_monkey_yaml_asks_for_must_be_there(
    renter: Renter, entry: dict[str, object], said: str, hint: str
) -> None:
    renter.entry |= entry
    error = told(renter.preview)
    assert error.message.startswith(f"provider '{FLEET}': {said}") and hint in (error.hint or "")
    assert error.message == told(lambda: renter.run(CloudFleet.check_offer)).message


def elsewhere(fleet: CloudFleet) -> CloudFleet:
    """Return the fleet of the same name of another store."""
    return replace(fleet, api=replace(cast(GcpApi, fleet.api), store_url="gs://other/team"))


@pytest.mark.slow
def test_what_google_refuses_pulumi_is_told_and_why_machines_do_not_come(renter: Renter, gcp: Google) -> None:
    fail(gcp, {"match": "create .*network:Network", "say": FULL}, {"match": "create .*Account", "say": DENIED})
    error = told(renter.converge)
    assert "a quota of the project is used up" in error.message or "does not permit" in error.message
    none = f"The zone {ZONES[0]} does not have enough resources available"
    gcp.rest.shortage = ("ZONE_RESOURCE_POOL_EXHAUSTED", none)
    renter.converge()
    assert renter.run(lambda fleet: fleet.has_workers()), "there may be some in a while"
    gcp.rest.shortage = ("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded.  Limit: 8.0 in region europe-west4.")
    assert "a quota of the project is used up" in told(lambda: renter.run(lambda fleet: fleet.has_workers())).message

    # One that shut down has a disk that is paid for; and what nobody knows of is taken away.
    gcp.rest.supply()
    shut = min(gcp.rest.machines())
    gcp.shelf.change("instance", shut, {**gcp.rest.machines()[shut], "status": "TERMINATED"})
    [found] = renter.run(lambda fleet: fleet.audit(busy=False))
    assert found.machine == shut.rpartition("/")[2] and "it has shut down" in found.text
    assert [(each.machine, each.why) for each in renter.preview().changes] == [(found.machine, "it has shut down")]
    # Into somebody's own network: the machines first, then what they were in.
    theirs = theirs_too(gcp)
    renter.entry |= {"network": "theirs", "subnetwork": "theirs", "spot": True}
    renter.converge()
    machines = gcp.rest.machines()
    assert len(machines) == 4 and shut not in machines
    assert {(each["subnetwork"], each["scheduling"]["provisioningModel"]) for each in machines.values()} == {
        (theirs, "SPOT")
    }
    things = gcp.shelf.things
    [firewall] = [each for each in things.values() if each["type"].endswith("Firewall")]
    assert firewall["network"].endswith("/theirs") and len([id_ for id_ in things if "networks/" in id_]) == 2
    # Who has another store finds it all, as somebody else's.
    held = renter.run(lambda fleet: elsewhere(fleet).tagged_resources())
    assert {each.of.provider for each in held if each.of is not None} == {"cloud"} and all(each.of for each in held)
    kinds = {each.kind for each in held}
    assert {"instance group", "instance template", "firewall", "instance e2-standard-2"} <= kinds
    forget(gcp)
    assert any("what no apply has written down" in note for note in renter.preview().notes)
    renter.destroy()
    left = {each["type"].partition("/")[0] for id_, each in gcp.shelf.things.items() if not id_.endswith("/theirs")}
    assert left == {"gcp:storage", "gcp:projects"}, "rights of an account that is gone are nobody's"


@pytest.mark.slow
def test_machines_and_disks_that_no_group_counts_are_taken_away(renter: Renter, gcp: Google) -> None:
    renter.converge()
    gcp.rest.orphan("aa01")
    foreseen = {(each.op, each.machine.partition(" ")[0], each.machine[-4:]) for each in renter.preview().changes}
    assert foreseen == {("delete", "instance", "aa01"), ("delete", "disk", "aa01")}
    renter.converge()
    assert len(gcp.rest.machines()) == 4 and not renter.run(lambda fleet: fleet.audit(busy=False))
    gcp.rest.orphan("aa02")
    found = renter.run(lambda fleet: fleet.audit(busy=False))
    assert [each.machine[-4:] for each in found] == ["aa02"] * 2
    assert all(f"--zone {ZONES[0]} " in each.hint for each in found)
    renter.destroy()
    assert gcp.shelf.things == {}


def theirs_too(gcp: Google) -> str:
    """Make a network that is somebody's own; returns its part in the region."""
    network = "projects/my-project/global/networks/theirs"
    part = f"projects/my-project/regions/{REGION}/subnetworks/theirs"
    gcp.shelf.make("gcp:compute/network:Network", network, {"name": "theirs"})
    gcp.shelf.make("gcp:compute/subnetwork:Subnetwork", part, {"name": "theirs", "network": network})
    return part


def forget(gcp: Google) -> None:
    """Remove the state, as somebody does who should not."""
    there = gcp.bucket.objects.keys
    for key in (key for key in there if "/machines/" in key):
        gcp.bucket.objects.delete(key)
