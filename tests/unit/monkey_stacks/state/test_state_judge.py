"""The judge of state documents: what Pulumi wrote for us passes, and what another program wrote does not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from monkey.errors import CorruptObject, FleetError
from monkey_stacks.engine.state import StackState
from monkey_stacks.engine.state_bucket import LARGEST
from monkey_stacks.state.state_judge import parse_urn_name
from monkey_stacks.state.state_rules import StateRules
from tests.unit.monkey_stacks.state.recorded_states import MARK, NAMES, RULES, judge, recorded, resources

#: Where the first host is in the state of hosts.
HOST = 2


def refused(kind: str, body: Any) -> str:
    with pytest.raises(CorruptObject) as raised:
        judge(kind, json.dumps(body).encode())
    assert raised.value.message.startswith(f"projects/shop/machines/{NAMES[kind]}/state/") and raised.value.hint
    return raised.value.message


@pytest.mark.parametrize("kind", RULES)
def test_a_state_of_ours_passes_without_its_pickles(kind: str) -> None:
    body = recorded(kind)
    made = judge(kind, json.dumps(body).encode())
    assert "__provider" not in [name for each in resources(made) for name in (*each.get("inputs", ()), *each["urn"])]
    ours = [each for each in resources(body) if not each["type"].startswith("pulumi:")]
    known = StackState("key", made).resources
    assert [(each.type, each.id) for each in known] == [(each["type"], each["id"]) for each in ours]
    for each, raw in zip(known, ours, strict=True):
        raw["inputs"].pop("__provider", None)
        assert each.inputs == raw["inputs"]
    # What was judged is judged again: it is what Pulumi wrote since.
    assert judge(kind, json.dumps(made).encode()) == made


def forge_thing(body: Any) -> None:
    urn = "urn:pulumi:lab::shop::evil:index:Thing::thing"
    resources(body).append({"urn": urn, "custom": True, "id": "1", "type": "evil:index:Thing"})


def forge_provider(body: Any) -> None:
    """As in the proof: a provider with an address to fetch it from, after a host that is as it should be."""
    urn = "urn:pulumi:lab::shop::pulumi:providers:evil::default"
    inputs = {"version": "1.0.0", "pluginDownloadURL": "http://evil"}
    made = {"urn": urn, "custom": True, "id": "1", "type": "pulumi:providers:evil", "inputs": inputs}
    resources(body).append(made)


def forge_setting(name: str, value: Any) -> Callable[[Any], None]:
    def forge(body: Any) -> None:
        resources(body)[1]["inputs"] = {"version": "3.0.0", name: value}

    return forge


def forge_host(**changed: Any) -> Callable[[Any], None]:
    def forge(body: Any) -> None:
        resources(body)[HOST].update(changed)

    return forge


def forge_inputs(**changed: Any) -> Callable[[Any], None]:
    def forge(body: Any) -> None:
        for part in ("inputs", "outputs"):
            resources(body)[HOST][part].update(changed)

    return forge


def forge_keeper(keeper: Any) -> Callable[[Any], None]:
    def forge(body: Any) -> None:
        body["checkpoint"]["latest"]["secrets_providers"] = keeper

    return forge


def forge_pending(body: Any) -> None:
    thing = {"urn": "urn:pulumi:lab::shop::evil:index:Thing::thing", "custom": True, "type": "evil:index:Thing"}
    body["checkpoint"]["latest"]["pending_operations"] = [{"type": "creating", "resource": thing}]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (forge_thing, "names 'thing' of type 'evil:index:Thing', which monkey does not make"),
        (forge_pending, "names 'thing' of type 'evil:index:Thing', which monkey does not make"),
        (forge_provider, "names a provider of Pulumi's that monkey does not use here: 'evil'"),
        (forge_setting("pluginDownloadURL", "http://evil"), "'pluginDownloadURL' is 'http://evil'"),
        (forge_setting("__internal", {"pluginDownloadURL": "x"}), "a setting that monkey does not: '__internal'"),
        (forge_setting("endpoints", [{"ec2": "http://evil"}]), "a setting that monkey does not: 'endpoints'"),
        # Pulumi reads the type of a provider from the URN.
        (forge_host(urn="urn:pulumi:lab::shop::pulumi:providers:evil::h1"), "under the URN 'urn:pulumi:lab::shop::pul"),
        (forge_host(urn="urn:pulumi:other::shop::pulumi-python:dynamic/monkey:Host::h1"), "under the URN"),
        (forge_host(provider="urn:pulumi:lab::shop::pulumi:providers:evil::default::1"), "no provider of its type"),
        (forge_host(parent="urn:pulumi:lab::shop::a:b:C::c"), "within another resource"),
        (forge_host(type="pulumi:pulumi:StackReference"), "under the URN"),
        (forge_keeper({"type": "service", "state": {"url": "http://evil"}}), "has its secrets kept by 'service'"),
        (forge_keeper({"type": "cloud", "state": {"url": "hashivault://evil"}}), "has its secrets kept by 'cloud'"),
        (forge_inputs(gpus=[{MARK: "c44067f5952c0a294b673a41bacd8c17", "path": "/etc/passwd"}]), "a file, an archive"),
        (forge_inputs(host="-oProxyCommand=x"), "is the host '-oProxyCommand=x' in another place"),
        (forge_inputs(project="theirs"), "is of fleet 'lab' of project 'theirs'"),
        (forge_inputs(workdir={"a": 1}), "has 'workdir' of another type"),
        (forge_inputs(idle_timeout=True), "has 'idle_timeout' of another type"),
        (forge_host(outputs={}, inputs={}), "has the id"),
        (forge_host(id="h1:/elsewhere"), "has the id 'h1:/elsewhere'"),
    ],
)
def test_what_another_program_wrote_is_refused_and_named(forge: Callable[[Any], None], said: str) -> None:
    body = recorded("ssh")
    forge(body)
    told = refused("ssh", body)
    assert said in told and told.endswith(". Nothing of it was run")


@pytest.mark.parametrize("kind", ["aws", "gcp"])
def test_a_cloud_s_provider_has_no_settings_but_ours(kind: str) -> None:
    for name in ("accessKey", "endpoints", "profile", "credentials", "impersonateServiceAccount", "httpProxy"):
        body = recorded(kind)
        resources(body)[1]["outputs"][name] = "theirs"
        assert f"{name!r} is 'theirs'" in refused(kind, body)
    body = recorded(kind)
    resources(body)[1]["inputs"] |= {"insecure": "true", "skipTlsVerify": True}
    assert not {"insecure", "skipTlsVerify"} & resources(judge(kind, json.dumps(body).encode()))[1]["inputs"].keys()
    body = recorded(kind)
    next(each for each in resources(body) if "Template" in each["type"])["inputs"] |= {
        "tags": "none",
        "metadata": "none",
    }
    assert "has inputs that monkey does not write" in refused(kind, body)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"version": 3}',
        b'{"version": 1, "checkpoint": {}}',
        b'{"version": true, "checkpoint": {}}',
        b'{"version": 3, "checkpoint": {"latest": [1]}}',
        b'{"version": 3, "checkpoint": {"latest": {"manifest": {}, "resources": {"a": 1}}}}',
        b'{"version": NaN, "checkpoint": {}}',
        b'{"version": 3, "checkpoint": {"latest": ' + b"[" * 100_000,
        b'{"version": 3, "checkpoint": {}}' + b" " * LARGEST,
    ],
    ids=lambda data: str(data[:40]),
)
def test_what_is_no_state_is_told_as_such(data: bytes) -> None:
    with pytest.raises(CorruptObject, match="not a state of Pulumi's") as raised:
        judge("ssh", data)
    assert "older version" in (raised.value.hint or "")


def test_fields_that_pulumi_reads_in_another_case_or_that_keep_a_resource_are_dropped() -> None:
    body = recorded("ssh")
    forged = copy.deepcopy(resources(body))
    forge_thing(body)
    body["checkpoint"]["latest"] |= {"Resources": resources(body), "resources": forged}
    body["checkpoint"]["config"] = {"pulumi:x": "y"}
    resources(body)[HOST] |= {"Type": "evil:index:Thing", "protect": True, "retainOnDelete": True, "aliases": ["urn:x"]}
    body["checkpoint"]["latest"]["manifest"]["plugins"] = [{"name": "evil", "path": "/tmp/evil"}]
    assert judge("ssh", json.dumps(body).encode()) == judge("ssh", json.dumps(recorded("ssh")).encode())


def test_machines_of_another_type_of_provider_are_told_apart_from_forgeries() -> None:
    with pytest.raises(FleetError, match="provider 'cloud' is of type ssh now, and has machines of type aws still"):
        judge("aws", json.dumps(recorded("aws")).encode(), RULES["ssh"])


def test_the_entry_that_a_same_named_one_hides_is_an_entry_too() -> None:
    """Pulumi deletes it, and a dictionary by URNs would have only one of them."""
    body = recorded("aws")
    network = next(each for each in resources(body) if each["type"].endswith("Vpc"))
    resources(body).insert(2, {**network, "id": "vpc-of-a-stranger", "delete": True})
    state = StackState("key", judge("aws", json.dumps(body).encode()))
    assert {"vpc-of-a-stranger", network["id"]} <= {each.id for each in state.entries}


def test_our_own_parts_are_put_in() -> None:
    state = StackState("key", judge("ssh", json.dumps(recorded("ssh")).encode()))
    state.give_own({"pulumi-python:dynamic/monkey:Host": "ours"}, lambda package, found: {"of": package})
    made = resources(json.loads(state.encode()))
    assert [each["inputs"]["__provider"] + each["outputs"]["__provider"] for each in made[HOST:]] == ["oursours"] * 2
    state = StackState("key", judge("aws", json.dumps(recorded("aws")).encode()))
    state.give_own({}, lambda package, found: {"of": package, **found})
    assert resources(json.loads(state.encode()))[1]["inputs"]["of"] == "aws"


def test_a_name_with_colons_is_whole() -> None:
    urn = "urn:pulumi:lab::shop::pulumi-python:dynamic/monkey:Host::me@[fd00::1]:22"
    assert parse_urn_name(urn) == parse_urn_name(f"{urn}~left2") == "me@[fd00::1]:22"


def test_rules_of_nothing_permit_no_resource() -> None:
    with pytest.raises(CorruptObject):
        judge("ssh", json.dumps(recorded("ssh")).encode(), StateRules())
