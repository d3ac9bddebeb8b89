"""Mutated state documents: each is judged in our own words, and what passes names nothing that is not ours."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from monkey.errors import MonkeyError
from monkey_stacks.aws import requirements as aws_requirements
from monkey_stacks.engine.state import StackState
from monkey_stacks.gcp import requirements as gcp_requirements
from monkey_stacks.ssh.descriptions import describe_instance
from monkey_stacks.ssh.host_resource import ProviderEnvironment, list_host_changes, parse_host_plan
from tests.unit.monkey_stacks.state.recorded_states import MARK, NAMES, RULES, judge, recorded

#: Documents of each kind.
ROUNDS = {"ssh": 400, "aws": 50, "gcp": 80}
LONG = 100 if os.environ.get("MONKEY_LONG") else 1
pytestmark = [pytest.mark.slow] if LONG > 1 else []
#: What another program may write in place of anything.
ODD: list[Any] = [
    *(None, True, False, 0, -1, 2.5, 10**30, 1e308, "", "a", "__provider", "\ud800", "x\x1b[2J", [], {}, [[]], [None]),
    *({"a": {}}, {MARK: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}, {MARK: 1}, {MARK: "x", "path": "/"}),
    *("pulumi:providers:evil", "evil:index:Thing", "pulumi:pulumi:Stack", {"pluginDownloadURL": "http://evil"}),
    *("pulumi-python:dynamic/monkey:Host", "aws:ec2/vpc:Vpc", "urn:pulumi:lab::shop::evil:index:Thing::h1"),
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a document, with each of its keys."""
    for key, within in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(within, dict | list):
            yield from places(within)


def mutate(dice: random.Random, body: Any) -> bytes:
    """Return a document with a few mistakes, which may be one of bytes."""
    for _ in range(dice.randrange(1, 4)):
        if not (found := list(places(body))):
            break  # all of it was removed
        where, key = dice.choice(found)
        other, other_key = dice.choice(found)
        way = dice.randrange(6)
        if way == 0:
            where[key] = copy.deepcopy(dice.choice(ODD))
        elif way == 1:
            where[key] = copy.deepcopy(other[other_key])
        elif way == 2:
            del where[key]
        elif way == 3 and isinstance(where, list):
            where.insert(key, copy.deepcopy(dice.choice([where[key], *ODD])))
        elif way == 3:
            where[dice.choice([str(key).upper(), "__provider", "delete", "type", MARK])] = copy.deepcopy(where[key])
        elif way == 4 and isinstance(where[key], str):
            where[key] = where[key][: dice.randrange(len(where[key]) + 1)] + dice.choice(["", "::x", "\0", "~left1"])
        elif way == 5:
            latest = body.get("checkpoint", {}).get("latest", {}) if isinstance(body.get("checkpoint"), dict) else {}
            if isinstance(latest, dict) and isinstance(latest.get("resources"), list) and latest["resources"]:
                cut = copy.deepcopy(dice.choice(latest["resources"]))
                latest["pending_operations"] = [{"type": dice.choice(["creating", "deleting", "x"]), "resource": cut}]
    data = json.dumps(body).encode()
    if dice.random() < 0.1:
        at = dice.randrange(len(data))
        data = data[:at] + bytes([dice.randrange(256)]) * dice.randrange(3) + data[at + dice.randrange(2) :]
    return data


def read_all(kind: str, made: dict[str, Any]) -> None:
    """Do with a document that passed what plans, audits and the engine do with it."""
    state = StackState("key", made)
    known = list(state.resources)
    assert {each.type for each in state.entries} <= set(RULES[kind].types)
    state.mend(lambda type_, inputs: None)
    state.give_own({"pulumi-python:dynamic/monkey:Host": "ours"}, lambda package, found: dict(found))
    sent = state.encode().decode()
    json.loads(sent, parse_constant=lambda text: pytest.fail(text))
    assert "pluginDownloadURL" not in sent or kind != "ssh"
    if kind == "ssh":
        by_name = {each.name: each for each in known}
        wanted = [each.inputs for each in known]
        assert not [each for each in list_host_changes(wanted, by_name, {}) if each.forced_by != ("interrupted",)]
        for each in known:
            describe_instance(each)
            parse_host_plan({**each.inputs, **each.outputs}, ProviderEnvironment())
    elif kind == "aws":
        aws_requirements.recall_requirements(known)
        aws_requirements.find_kept_image(known, "ami-ead9dbd6a55954abf")
        aws_requirements.find_region(known)
    else:
        gcp_requirements.recall_requirements(known)
        gcp_requirements.find_kept_image(known, "debian-cloud/debian-12")
        gcp_requirements.find_place(known)
        gcp_requirements.list_kept_zones(known)


def judge_mutants(kind: str, seed: int, rounds: int) -> tuple[int, int]:
    """Judge that many documents; return how many passed and how many were refused."""
    dice, body, passed = random.Random(seed), recorded(kind), 0
    for number in range(rounds):
        data = mutate(dice, copy.deepcopy(body))
        try:
            made = judge(kind, data)
        except MonkeyError as exc:
            assert NAMES[kind] in exc.message and exc.hint, number
            continue
        read_all(kind, made)
        passed += 1
    return passed, rounds - passed


@pytest.mark.parametrize("kind", RULES)
def test_a_mutated_state_is_refused_in_our_words_or_harmless(kind: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    passed, refused = judge_mutants(kind, seed, ROUNDS[kind] * LONG)
    # Both must happen, or nothing was shown.
    assert passed > ROUNDS[kind] // 50 and refused > ROUNDS[kind] // 10
