"""A machine of a fleet that apply made does what it must at Google, by the rights that apply gave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from monkey.errors import FleetError, KeyMissing, StoreError
from monkey.fleet.cloud.gcp_machine import GcpMachine
from monkey.fleet.cloud.http_client import ApiError
from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey_stacks.gcp.api.naming import name_stack
from monkey_stacks.gcp.machine_rights import spell_group_role
from tests.clouds.gcp.desk import Google
from tests.clouds.gcp.guard import make_token
from tests.clouds.gcp.offers import REGION
from tests.clouds.gcp.renter import GCP_PROJECT, Renter
from tests.clouds.renter import FLEET, PROJECT
from tests.loops import Run
from tests.rented.metadata import Metadata

pytestmark = pytest.mark.slow

MINE = f"projects/{PROJECT}"


@pytest.fixture
def renter(pulumi: None, gcp: Google) -> Renter:
    """Return who applies there."""
    return Renter(gcp.url)


@pytest.fixture
def machine(renter: Renter, gcp: Google, monkeypatch: pytest.MonkeyPatch) -> Iterator[GcpMachine]:
    """Return a machine of a fleet that apply made: it knows its metadata, and has the token of its account."""
    renter.converge()
    stack = name_stack(gcp.url, PROJECT, FLEET)
    id_, props = next(iter(gcp.rest.machines().items()))
    about = {
        "name": id_.rpartition("/")[2],
        "zone": f"projects/42/zones/{id_.split('/')[3]}",
        "attributes/created-by": f"projects/{GCP_PROJECT}/{stack.group(REGION)}",
        "attributes/instance-template": f"projects/42/global/instanceTemplates/{props['template']}",
        "service-accounts/default/token": f'{{"access_token": "{token(gcp)}"}}',
    }
    metadata = Metadata("gcp", about)
    monkeypatch.setenv("GCE_METADATA_HOST", metadata.serve_here())
    yield GcpMachine({"gcp_project": GCP_PROJECT, "group": stack.group(REGION), "store": gcp.url})
    metadata.close()


def token(gcp: Google) -> str:
    """Return what the machines' account says who it is by."""
    [account] = [id_ for id_, props in gcp.shelf.things.items() if props["type"].endswith("Account")]
    return make_token(account.rpartition("/")[2])


def denied(ask: Callable[[], Any]) -> bool:
    """Say whether Google denies it."""
    try:
        ask()
    except ApiError as exc:
        return exc.status == 403
    return False


def test_a_machine_leaves_its_group_and_is_made_anew(machine: GcpMachine, gcp: Google) -> None:
    before = set(gcp.rest.machines())
    assert not machine.outlived()
    machine.renew()
    assert set(gcp.rest.machines()) == before
    machine.leave()
    [group] = [props for props in gcp.shelf.things.values() if "GroupManager" in props["type"]]
    assert before - set(gcp.rest.machines()) == {id_ for id_ in before if id_.endswith(machine.name())}
    assert group["targetSize"] == len(before) - 1
    template = machine.about("attributes/instance-template").rpartition("/")[2]
    at = f"{machine.at('compute')}compute/v1/projects/{GCP_PROJECT}/global/instanceTemplates/{template}"
    assert denied(lambda: machine.call("DELETE", at))


def test_a_machine_uses_what_is_its_own_of_the_store(
    machine: GcpMachine, gcp: Google, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    machine.put(f"{MINE}/boots/{FLEET}/m", b"why")
    assert machine.fetch(f"{MINE}/boots/{FLEET}/m") == b"why"
    others = ("agents/lab/m/0/beat", "idle/lab/s/00000001", "sweeps/s/00000002", "adoptions/00000001")
    for key in (f"machines/{FLEET}/x", f"queue/{FLEET}/s/00000001", *others):
        assert denied(lambda key=key: machine.put(f"{MINE}/{key}", b""))
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", token(gcp))

    async def as_an_agent() -> None:
        store: Store = await open_store(gcp.url)
        try:
            await use(store)
        finally:
            await store.close()

    run(as_an_agent())


async def use(store: Store) -> None:
    """Do with a store what agents do, and what no agent does."""
    beat = f"{MINE}/agents/{FLEET}/m/0/beat"
    with pytest.raises(KeyMissing):
        await store.get(beat)
    for data in (b"1", b"2"):
        await store.put(beat, data)
    assert [item.key for item in await store.list(f"{MINE}/agents/")] == [beat]
    for key in (f"{MINE}/jobs/j/00000000", f"{MINE}/stops/s/00000001", f"{MINE}/idle/{FLEET}/s/00000001"):
        assert await store.create(key, b"{}") and not await store.create(key, b"[]")
    await store.delete(beat)
    for key in (f"{MINE}/agents/lab/m/0/beat", f"{MINE}/machines/{FLEET}/lock/00000000", "code/1.tar.gz"):
        with pytest.raises(StoreError):
            await store.put(key, b"")


def test_apply_says_that_the_role_of_machines_is_not_there(renter: Renter, gcp: Google) -> None:
    role = spell_group_role(GCP_PROJECT)
    made = gcp.shelf.roles[role]
    for found, said, verb in (
        (None, "there is none in the project", "create monkeyGroups --project my-project --stage GA --permissions"),
        ({**made, "deleted": True}, "it was deleted", "undelete monkeyGroups --project my-project`"),
        ({**made, "includedPermissions": ["compute.instanceGroupManagers.get"]}, "it lacks", "update monkeyGroups"),
    ):
        gcp.shelf.make_role(role, found)
        with pytest.raises(FleetError, match=said) as raised:
            renter.preview()
        assert verb in (raised.value.hint or "") and not gcp.shelf.things
