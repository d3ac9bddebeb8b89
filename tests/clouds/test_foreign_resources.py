"""A state that names what is not the fleet's own: plan, apply and destroy touch none of it, and say what it is."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from monkey.errors import FleetError, MonkeyError
from monkey.store.open import open_store
from tests.clouds.account import Account
from tests.clouds.gcp.desk import Google
from tests.clouds.gcp.renter import Renter as GoogleRenter
from tests.clouds.renter import FLEET, PROJECT, Renter

pytestmark = pytest.mark.slow


def state_key(fleet: str = FLEET) -> str:
    return f"projects/{PROJECT}/machines/{fleet}/state/.pulumi/stacks/{PROJECT}/{fleet}.json"


def change_state(renter: Renter, change: Callable[[list[dict[str, Any]]], None] = lambda found: None) -> Any:
    """Change the resources of the state as anybody can who may write to the store; return the state as it was."""

    async def write() -> Any:
        store = await open_store(renter.url)
        try:
            body = json.loads(await store.get(state_key(renter.fleet)))
            forged = copy.deepcopy(body)
            change(forged["checkpoint"]["latest"]["resources"])
            await store.put(state_key(renter.fleet), json.dumps(forged).encode())
            return body
        finally:
            await store.close()

    return asyncio.run(write())


def restore_state(renter: Renter, body: Any) -> None:
    async def write() -> None:
        store = await open_store(renter.url)
        await store.put(state_key(renter.fleet), json.dumps(body).encode())
        await store.close()

    asyncio.run(write())


def refuse(ask: Callable[[], object]) -> MonkeyError:
    with pytest.raises(FleetError) as raised:
        ask()
    assert f"machines/{FLEET}/state in the store" in raised.value.message and raised.value.hint
    assert raised.value.message.endswith("Nothing was changed")
    return raised.value


def name_theirs(name: str, thing: dict[str, Any]) -> Callable[[list[dict[str, Any]]], None]:
    """Have the state's resource of this name be a resource of theirs."""

    def change(found: list[dict[str, Any]]) -> None:
        [ours] = [each for each in found if each["urn"].endswith(f"::{name}")]
        ours.update({part: thing[part] for part in ("id", "inputs", "outputs") if part in thing})

    return change


def hide_theirs(name: str, thing: dict[str, Any]) -> Callable[[list[dict[str, Any]]], None]:
    """Have the state name a resource of theirs behind ours, as one that a replacement left."""

    def change(found: list[dict[str, Any]]) -> None:
        at = next(at for at, each in enumerate(found) if each["urn"].endswith(f"::{name}"))
        found.insert(at, {**found[at], "id": thing["id"], "delete": True})

    return change


def list_things(renter: Renter) -> dict[str, dict[str, Any]]:
    """Return the resources of the state as Pulumi wrote them, by the names that the program gave."""
    found = change_state(renter)["checkpoint"]["latest"]["resources"]
    return {each["urn"].rpartition("::")[2]: each for each in found if not each["type"].startswith("pulumi:")}


def test_at_amazon_tags_say_whose_a_resource_is(renter: Renter, aws: Account) -> None:
    stranger = Renter(renter.url, **renter.entry)
    stranger.fleet = "theirs"
    for each in (renter, stranger):
        each.converge(0 if each is stranger else None)
    theirs, honest = list_things(stranger), change_state(renter)
    before = aws.there()
    mark = len(aws.wire.changes)
    kinds = set()
    for name, thing in theirs.items():
        change_state(renter, name_theirs(name, thing))
        said = refuse(renter.destroy).message
        assert repr(thing["id"]) in said and "expected monkey:fleet=cloud" in said and "monkey:fleet='theirs'" in said
        kinds.add(thing["type"])
        restore_state(renter, honest)
    assert len(kinds) == 12, "every kind that the program makes"
    for forge in (name_theirs, hide_theirs):
        change_state(renter, forge("vpc", theirs["vpc"]))
        for ask in (renter.preview, renter.converge, renter.destroy):
            assert f"names the vpc {theirs['vpc']['id']!r} at AWS" in refuse(ask).message
        restore_state(renter, honest)

    # One that nobody tagged, and one of another region.
    lone = aws.client("ec2").create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    change_state(renter, name_theirs("vpc", {"id": lone}))
    assert "found none of these" in refuse(renter.destroy).message
    restore_state(renter, honest)
    change_state(renter, name_theirs("vpc", {"outputs": {**theirs["vpc"]["outputs"], "region": "us-east-1"}}))
    with pytest.raises(FleetError, match=r"are in us-east-1, and monkey\.yaml says eu-central-1"):
        renter.destroy()
    assert aws.there() == {**before, lone: "Vpcs"} and not set(aws.wire.changes[mark:]) & {"DeleteVpc", "CreateTags"}

    # What is there no more is nobody's, and hinders nobody.
    restore_state(renter, honest)
    aws.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[list_things(renter)["endpoint"]["id"]])
    aws.client("iam").delete_role_policy(RoleName=renter.known()["role"].id, PolicyName=renter.known()["role"].id)
    renter.destroy()
    assert aws.there("monkey:fleet", FLEET) == {} and aws.there("monkey:fleet", "theirs")


def test_at_google_names_and_labels_say_whose_a_resource_is(pulumi: None, gcp: Google) -> None:
    renter, stranger = GoogleRenter(gcp.url), GoogleRenter(gcp.url)
    stranger.fleet = "theirs"
    renter.converge()
    stranger.converge(1)
    theirs, honest, before = list_things(stranger), change_state(renter), dict(gcp.shelf.things)
    for name, thing in theirs.items():
        change_state(renter, name_theirs(name, thing))
        said = refuse(renter.destroy).message
        assert f"{thing['id']!r} at Google, which is not this fleet's: expected " in said
        restore_state(renter, honest)
    # Google's plugin goes by the name, whatever the id says.
    network = theirs["network"]
    for part in ("inputs", "outputs"):
        ours = list_things(renter)["network"]
        change_state(renter, name_theirs("network", {part: {**ours[part], "name": network["inputs"]["name"]}}))
        for ask in (renter.preview, renter.converge, renter.destroy):
            assert f"found name={network['inputs']['name']!r}" in refuse(ask).message
        restore_state(renter, honest)
    admin = {**list_things(renter)["leave"]["inputs"], "member": "user:admin@example.com", "role": "roles/owner"}
    change_state(renter, name_theirs("leave", {"inputs": admin, "outputs": admin}))
    assert "found member='user:admin@example.com'" in refuse(renter.destroy).message
    restore_state(renter, honest)
    # Of our name, and with somebody else's labels.
    template = list_things(renter)["template"]["id"]
    labels = {**before[template]["labels"], "monkey-stack": "0000000000"}
    gcp.shelf.change("template", template, {**before[template], "labels": labels})
    assert "found monkey-stack='0000000000'" in refuse(renter.destroy).message
    gcp.shelf.change("template", template, before[template])
    assert gcp.shelf.things == before
    renter.destroy()
    assert {each["name"] for each in gcp.shelf.things.values() if "network:" in each["type"]} == {
        network["inputs"]["name"]
    }
