"""What machines may do at Google, by an evaluator of its conditions: what they need, and nothing beside it."""

from __future__ import annotations

import pytest

from monkey.spec.project.cloud import CloudSettings
from monkey_stacks.gcp import applier_rights, machine_rights
from tests.clouds.gcp.iam import Asked, Given, Iam, check_condition, holds
from tests.clouds.kind import Refused

ME = "serviceAccount:monkey-0123456789@p.iam.gserviceaccount.com"
BUCKET = "projects/_/buckets/b"
GROUP = Asked(
    "compute.instanceGroupManagers.update",
    "compute.googleapis.com/InstanceGroupManager",
    "projects/p/regions/europe-west4/instanceGroupManagers/monkey-shop-cloud-0123456789",
)
#: Keys that a machine reads and writes, below the store's prefix.
OWN = (
    *("jobs/1/00000000", "jobs/1/out/00000001/machines/a", "bell", "facts/ab", "boots/cloud/m"),
    *("agents/cloud/m/0/beat", "shipments/cloud/m/0/00000001", "permits/s/0/00000001", "notices/s/e/w/00000001"),
    *("stops/s/00000001", "idle/cloud/s/00000001"),
)
#: Keys of the project that it reads at most.
OTHERS = (
    *("agents/lab/m/0/beat", "agents/cloud-2/m/0/beat", "shipments/lab/m/0/1", "boots/lab/m", "adoptions/00000001"),
    *(
        "sweeps/s/00000002",
        "queue/cloud/s/00000001",
        "queue/cloud/s/00000001.end",
        "idle/lab/s/00000001",
        "watch/me",
        "sync/0a/head1/beat",
        "bell2",
        "anything",
    ),
)
#: Keys of the store that it reads at most, and those that it may not even read.
SHARED = ("code/1.tar.gz", "bundle/1", "signers/1", "files/md5/1", "format")
HIDDEN = ("projects/shop/machines/cloud/state/.pulumi/x", "projects/shop-2/bell", "projects/a/machines/x")


def rights(prefix: str = "team/x") -> Iam:
    """Return what a machine of the fleet `cloud` is given."""
    bucket = machine_rights.write_bucket_rights("b", prefix, "shop", "cloud").values()
    given = [Given(BUCKET, each.role, ME, check_condition(each.condition)) for each in bucket]
    role = machine_rights.spell_group_role("p")
    return Iam((*given, Given("projects/p", role, ME)), {role: frozenset(machine_rights.GROUP_CALLS)})


def may(iam: Iam, call: str, key: str, prefix: str = "team/x/") -> bool:
    asked = Asked(f"storage.objects.{call}", "storage.googleapis.com/Object", f"{BUCKET}/objects/{prefix}{key}")
    return iam.allows(ME, asked)


def test_a_machine_leaves_its_group_and_looks_at_it() -> None:
    assert rights().allows(ME, GROUP)
    assert rights().allows(ME, Asked("compute.instanceGroupManagers.get", GROUP.type, GROUP.name))
    assert not rights().allows("serviceAccount:another", GROUP)
    for call in ("compute.instances.create", "compute.instanceGroupManagers.create", "iam.serviceAccounts.actAs"):
        assert not rights().allows(ME, Asked(call, GROUP.type, GROUP.name))
    there = Asked(GROUP.permission, GROUP.type, GROUP.name.replace("/p/", "/q/"))
    assert not rights().allows(ME, there), "the group is in another project"


def test_a_condition_on_the_name_of_a_group_grants_nothing() -> None:
    """The fault that the role of the project's own is for: Google has no attributes of groups."""
    condition = 'resource.name.endsWith("/instanceGroupManagers/monkey-shop-cloud-0123456789")'
    admin = Given("projects/p", "roles/compute.instanceAdmin.v1", ME, condition)
    assert not Iam((admin,), {}).allows(ME, GROUP)
    assert holds(f"{condition} || true", GROUP) and not holds(f"!{condition}", GROUP)
    disk = Asked("compute.disks.get", "compute.googleapis.com/Disk", "projects/p/zones/z/disks/d")
    assert holds('resource.name.endsWith("/disks/d")', disk)


@pytest.mark.parametrize("prefix", ["team/x", "", 'a "quoted\\ one'])
def test_a_machine_writes_what_its_agent_writes(prefix: str) -> None:
    iam, at = rights(prefix), f"{prefix}/" if prefix else ""
    for key in (*(f"projects/shop/{own}" for own in OWN), "files/damaged/1"):
        assert all(may(iam, call, key, at) for call in ("get", "create", "delete")), key
    for key in (*(f"projects/shop/{other}" for other in OTHERS), *SHARED):
        assert [may(iam, call, key, at) for call in ("get", "create", "delete")] == [True, False, False], key
    for key in HIDDEN:
        assert not any(may(iam, call, key, at) for call in ("get", "create", "delete")), key


def test_a_machine_reads_nothing_beside_the_prefix_and_lists_the_bucket() -> None:
    iam = rights()
    lists = Asked("storage.objects.list", "storage.googleapis.com/Bucket", BUCKET)
    assert iam.allows(ME, lists), "an agent looks what there is"
    assert not iam.allows(ME, Asked(lists.permission, lists.type, f"{BUCKET}-2"))
    assert not may(iam, "get", "projects/shop/bell", "team/y/") and not may(iam, "get", "bell", "team/x-2/")
    for call in ("buckets.setIamPolicy", "buckets.delete", "objects.setIamPolicy"):
        assert not iam.allows(ME, Asked(f"storage.{call}", lists.type, BUCKET))


def test_google_takes_no_condition_by_which_requests_fail() -> None:
    listed = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("team/x/")'
    with pytest.raises(Refused, match="Cloud Storage's API"):
        check_condition({"title": "t", "expression": listed})
    with pytest.raises(Refused, match="more than 12"):
        check_condition({"title": "t", "expression": " || ".join(14 * ['resource.name == "a"'])})
    assert check_condition({"title": "t", "expression": " || ".join(13 * ['resource.name == "a || b"'])})


def test_whoever_applies_gives_machines_that_role_and_no_other() -> None:
    cloud = CloudSettings("europe-west4", ("e2-small",), gcp_project="p")
    said = applier_rights.list_roles("gs://b/team/x", cloud)
    assert said["roles"]["monkeyGroups"]["includedPermissions"] == sorted(machine_rights.GROUP_CALLS)
    [giving] = [each for each in said["bindings"] if "condition" in each]
    assert giving["condition"]["expression"].endswith(".hasOnly(['projects/p/roles/monkeyGroups'])")
    assert not [each for each in said["bindings"] if each["role"].endswith("monkeyGroups")], "no person needs it"
