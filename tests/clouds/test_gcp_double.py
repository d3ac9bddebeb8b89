"""The double of the provider for Google does what it is asked, and refuses what the real one would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import FleetError
from tests.clouds.bench import Bench
from tests.clouds.gcp.kinds import KINDS
from tests.clouds.gcp.shelf import Shelf
from tests.clouds.sdk import Sdk
from tests.stacks.desk import ops

pytestmark = pytest.mark.slow

PLACE = {"project": "my-project", "region": "europe-west4"}


def program(kind: str = "e2-small", **more: Any) -> Callable[[], None]:
    """Return a group of machines in a network of its own."""

    def register() -> None:
        import pulumi
        from pulumi_gcp import Provider, compute, serviceaccount

        here = pulumi.ResourceOptions(provider=Provider("gcp", **PLACE))
        net = compute.Network("net", name="monkey", auto_create_subnetworks=False, opts=here)
        subnet = compute.Subnetwork("sub", name="monkey", network=net.id, ip_cidr_range="10.0.0.0/20", opts=here)
        account = serviceaccount.Account("who", account_id="monkey-machines", opts=here)
        template = compute.InstanceTemplate(
            "template",
            machine_type=kind,
            disks=[{"source_image": "debian-cloud/debian-12", "boot": True, "auto_delete": True}],
            network_interfaces=[{"subnetwork": subnet.id}],
            service_account={"email": account.email, "scopes": ["cloud-platform"]},
            scheduling={"provisioning_model": "SPOT", "preemptible": True, "automatic_restart": False},
            labels={"monkey-fleet": "rig"},
            **more,
            opts=here,
        )
        compute.RegionInstanceGroupManager(
            "group",
            name="monkey",
            base_instance_name="monkey",
            versions=[{"instance_template": template.self_link_unique}],
            opts=pulumi.ResourceOptions.merge(here, pulumi.ResourceOptions(ignore_changes=["targetSize"])),
        )

    return register


def test_life_of_a_group(google: Shelf, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (google.base).mkdir()
    denied = "googleapi: Error 403: Required 'compute.networks.create' permission, forbidden"
    (google.base / "faults.json").write_text(json.dumps([{"match": "create .*Network", "say": denied}]))
    [failure] = bench.up(program()).failures
    assert (failure.name, denied in failure.message) == ("net", True)
    bench.up(program()).check()
    assert len(google.things) == 5
    assert set(ops(bench.up(program(), refresh=True)).values()) == {"same"}

    changed = bench.up(program("e2-medium"))
    changed.check()
    assert {name: op for name, op in ops(changed).items() if op != "same"} == {
        "template": "replace machineType",
        "group": "update versions",
    }
    assert len(google.things) == 5
    bench.run(lambda engine: engine.destroy()).check()
    assert google.things == {}


def test_refuses_what_the_sdk_does_not_define(google: Shelf, tmp_path: Path) -> None:
    with pytest.raises(FleetError) as raised:
        Bench(tmp_path).up(program(shielded_instance_config={"enable_secureboot": True}))
    assert "enable_secureboot" in f"{raised.value} {raised.value.hint}"
    assert not [id_ for id_ in google.things if "instanceTemplates" in id_]


def test_what_it_knows_of_arguments_are_arguments_of_the_sdk() -> None:
    sdk = Sdk("pulumi_gcp")
    for kind in KINDS:
        assert kind.forces | kind.chosen | kind.only_here | kind.documents <= sdk.names(kind.token), kind.token
