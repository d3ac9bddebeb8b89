"""Machines of Google's by the real Pulumi and the real CLI: from a plan to nothing left, with a shelf for Google."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.acceptance.shop import Shop
from tests.clouds.gcp.desk import Google
from tests.clouds.gcp.guard import TOKEN
from tests.clouds.gcp.offers import REGION
from tests.clouds.gcp.permitted import needed
from tests.clouds.gcp.renter import GCP_PROJECT
from tests.trusting import trust

pytestmark = pytest.mark.slow

#: Seconds for one command, on a machine that has much else to do.
SLOWLY = 600.0
#: What Pulumi makes of a fleet with a network of its own and a secret.
PARTS = 10


@pytest.fixture
def shop(gcp: Google, require: Callable[[str], str], tmp_path: Path) -> Shop:
    """Return a project whose machines are rented at Google, and whose store is there, too."""
    require("pulumi")
    shop = Shop(tmp_path)
    path = os.pathsep.join([str(services.pulumi_directory()), gcp.environment["PATH"], shop.env["PATH"]])
    shop.env |= gcp.environment | {"PATH": path, "PULUMI_HOME": str(tmp_path / "pulumi")}
    trust(gcp.url.partition("endpoint=")[2].partition("&")[0], env=shop.env)
    shop.spec("provider: cloud\nexpires: 12h\n", jobs=10)
    return shop


def rent(shop: Shop, url: str, kind: str = "e2-standard-2") -> None:
    """Write down what is to be rented."""
    (shop.root / "monkey.yaml").write_text(
        f"project: shop\nstore: {url}\nproviders:\n  cloud:\n    type: gcp\n    gcp_project: {GCP_PROJECT}\n"
        f"    region: {REGION}\n    machine_type: {kind}\n    max_instances: 4\n    price: 0.11\n"
        "    secrets: {TOLD: told}\n"
    )


def run(shop: Shop, *arguments: str, code: int = 0) -> str:
    """Return what a command says; with Pulumi and its plugin it may wait for the processor for long."""
    return shop.run(*arguments, code=code, patience=SLOWLY).stdout


def machines(shop: Shop) -> dict[str, dict[str, Any]]:
    """Return what a plan says of machines, by their names."""
    told = json.loads(run(shop, "plan", "--json"))
    return {each["machine"]: each for each in told["fleets"][0]["machines"]}


def test_from_a_plan_to_nothing_left(shop: Shop, gcp: Google) -> None:
    rent(shop, gcp.url)
    said = run(shop, "plan")
    assert "+ cloud/group: machines e2-standard-2 in europe-west4, at most 4" in said and "0 → 4" in said
    assert not gcp.shelf.things, "a plan rented something"

    run(shop, "apply", "--detach", "--yes")
    begun(gcp)
    assert run(shop, "plan", "--detailed-exitcode").startswith("No changes")
    extended(shop, gcp)

    # Another type: what is there is replaced, and the plan says why; the group stays the same one.
    before = gcp.rest.machines()
    rent(shop, gcp.url, "e2-standard-4")
    plan = machines(shop)
    assert plan["template"]["why"] == "machine_type e2-standard-2 → e2-standard-4" and plan["group"]["op"] == "update"
    old = {id_.rpartition("/")[2] for id_ in before}
    assert {name for name, each in plan.items() if each["op"] in ("replace", "delete")} == {*old, "template"}
    assert [plan[name]["why"] for name in old if plan[name]["op"] == "delete"] == ["there is work for 3"]
    run(shop, "apply", "--detach", "--yes")
    after = gcp.rest.machines()
    assert {each["machineType"].rpartition("/")[2] for each in after.values()} == {"e2-standard-4"} and len(after) == 3
    assert not before.keys() & after.keys() and len(gcp.shelf.things) == PARTS + 3
    run(shop, "audit")

    # A provider that monkey.yaml does not name any more is known by its state.
    printed = json.loads(run(shop, "init", "--provider", "gcp"))
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {gcp.url}\n")
    assert "no longer names its provider" in run(shop, "audit", code=1)
    gcp.rest.orphan("zz99")
    run(shop, "destroy", "--yes")
    assert gcp.shelf.things == {}
    assert "There are no machines" in run(shop, "destroy", "--yes")
    permitted(printed, gcp)


def begun(gcp: Google) -> None:
    """Hold what was made against what there is to be: whoever is alive then, each machine ends when its sweeps do."""
    there, rented = gcp.shelf.things, gcp.rest.machines()
    [group] = [each for each in there.values() if "GroupManager" in each["type"]]
    assert (group["targetSize"], len(rented), len(there)) == (4, 4, PARTS + 4)
    assert group["instanceLifecyclePolicy"]["defaultActionOnFailure"] == "DO_NOTHING", "who shuts down comes again"
    times = template(gcp)["scheduling"]
    assert {each["scheduling"]["terminationTime"] for each in rented.values()} == {times["terminationTime"]}
    assert times["instanceTerminationAction"] == "DELETE"
    kept = {key: found.data for key in gcp.bucket.objects.keys if (found := gcp.bucket.objects.get(key))}
    assert any("/machines/" in key for key in kept), "there is a state"
    told = [*kept.values(), json.dumps(there).encode()]
    assert not [data for data in told if TOKEN.encode() in data], "who applies is written down"


def extended(shop: Shop, gcp: Google) -> None:
    """Give it more time: those that run are left alone, and others are to stay longer."""
    before, rented = template(gcp), gcp.rest.machines()
    run(shop, "extend", "sweep", "6h", "--yes")
    times = [datetime.fromisoformat(each["scheduling"]["terminationTime"]) for each in (before, template(gcp))]
    assert (times[1] - times[0]).total_seconds() == pytest.approx(6 * 3600, abs=60) and gcp.rest.machines() == rented
    assert template(gcp)["metadata"]["monkey-ends"] == f"{times[1].timestamp():.0f}"


def template(gcp: Google) -> dict[str, Any]:
    """Return what machines are made from."""
    [found] = [each for each in gcp.shelf.things.values() if each["type"].endswith("InstanceTemplate")]
    return found


def permitted(printed: dict[str, Any], gcp: Google) -> None:
    """Hold what `monkey init` said that it takes against all that Google was asked."""
    allowed = {name for role in printed["roles"].values() for name in role["includedPermissions"]}
    giving = {name for each in printed["bindings"] if "projectIamAdmin" in each["role"] for name in GIVEN}
    asked = needed(gcp.ledger.read_text().splitlines(), gcp.rest.asked)
    # By the store's own client, and by `monkey init` where it makes the bucket.
    stored = {name for name in allowed if re.match(r"storage\.(objects\.|multipartUploads\.|buckets\.get$)", name)}
    assert asked == (allowed | giving) - stored


#: What the role that gives rights is needed for.
GIVEN = ("resourcemanager.projects.setIamPolicy",)
