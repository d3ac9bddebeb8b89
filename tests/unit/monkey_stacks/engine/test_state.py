"""What was cut off, mended in the state itself: data in, data out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey.store.memory import MemoryStore
from monkey_stacks.engine.engine_outcome import Identify, identify_nothing
from monkey_stacks.engine.state import StackState, read_state
from monkey_stacks.engine.state_bucket import STACKS, StateBucket
from monkey_stacks.state.state_rules import StateRules

TYPE = "pulumi-python:dynamic/ssh:Host"
STACK = {"urn": "urn:pulumi:f::p::pulumi:pulumi:Stack::p-f", "type": "pulumi:pulumi:Stack"}


def known(name: str, id_: str = "", **more: Any) -> dict[str, Any]:
    inputs = {"host": name, "__provider": "pickled"}
    urn = f"urn:pulumi:f::p::{TYPE}::{name}"
    return {"urn": urn, "custom": True, "id": id_ or name, "type": TYPE, "inputs": inputs, "outputs": inputs, **more}


def cut(kind: str, raw: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "resource": {key: value for key, value in raw.items() if key not in ("id", "outputs")}}


def state(resources: list[dict[str, Any]], pending: list[dict[str, Any]]) -> StackState:
    latest = {"resources": [dict(STACK), *resources], "pending_operations": pending}
    return StackState("key", {"version": 3, "checkpoint": {"stack": "f", "latest": latest}})


def latest(mended: StackState) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(mended.encode())["checkpoint"]["latest"]
    return found


def identify(host: str) -> Identify:
    return lambda type_, inputs: host


def test_nothing_is_done_where_nothing_was_cut_off() -> None:
    there = state([known("a")], [])
    before = there.encode()
    mended = there.mend(identify_nothing)
    assert (mended.changed, mended.leftovers, mended.forgotten) == (False, [], [])
    assert there.encode() == before


def test_what_was_being_created_is_known_and_made_whole() -> None:
    there = state([], [cut("creating", known("a"))])
    [seen] = there.resources
    assert (seen.name, seen.interrupted, seen.inputs) == ("a", True, {"host": "a"})
    assert there.mend(identify("id-a")).changed
    _, made = latest(there)["resources"]
    assert (made["id"], made["initErrors"], made["outputs"]["__provider"]) == ("id-a", ["interrupted"], "pickled")
    assert latest(there)["pending_operations"] == []


def test_what_was_created_but_not_written_down_yet_has_its_own_id() -> None:
    there = state([], [{"type": "creating", "resource": known("a", "id-of-its-own")}])
    assert (there.mend(identify_nothing).forgotten, latest(there)["resources"][1]["id"]) == ([], "id-of-its-own")


def test_what_is_known_not_to_be_there_is_dropped() -> None:
    there = state([], [cut("creating", known("a"))])
    mended = there.mend(identify(""))
    assert (mended.changed, mended.forgotten, latest(there)["resources"]) == (True, [], [STACK])


def test_what_nobody_can_identify_is_named() -> None:
    there = state([], [cut("creating", known("a"))])
    mended = there.mend(identify_nothing)
    assert (mended.forgotten, latest(there)["resources"]) == (["a"], [STACK])


@pytest.mark.parametrize("kind", ["updating", "deleting"])
def test_what_was_being_changed_is_changed_again(kind: str) -> None:
    there = state([known("a"), known("b")], [cut(kind, known("a"))])
    assert there.mend(identify_nothing).changed
    _, a, b = latest(there)["resources"]
    assert (a["initErrors"], "initErrors" in b) == (["interrupted"], False)
    assert [each.interrupted for each in there.resources] == [True, False]


def test_a_new_one_that_was_to_replace_another_is_deleted_first() -> None:
    there = state([known("a", "old")], [cut("creating", known("a"))])
    mended = there.mend(identify("new"))
    _, old, new = latest(there)["resources"]
    assert (old["id"], "initErrors" in old, new["id"]) == ("old", False, "new")
    assert mended.leftovers == [new["urn"]] != [old["urn"]]
    assert {each.name for each in there.resources} == {"a"}


def test_an_old_one_that_was_replaced_is_deleted_first() -> None:
    there = state([known("a", "new"), known("a", "old", delete=True)], [cut("deleting", known("a", "old"))])
    mended = there.mend(identify_nothing)
    _, new, old = latest(there)["resources"]
    assert mended.leftovers == [old["urn"]]
    assert "delete" not in old
    assert new["urn"] != old["urn"]


def test_a_state_that_is_none_is_named() -> None:
    async def torn() -> None:
        store = MemoryStore()
        space = StateBucket(store, "state/", dry=True)
        assert await read_state(space, "p", "f", StateRules("ssh")) is None
        await store.put(f"state/{STACKS}p/f.json", b'{"version": 3, "checkpoint"')
        with pytest.raises(CorruptObject, match=r"state/.*p/f.json: not a state") as raised:
            await read_state(space, "p", "f", StateRules("ssh"))
        assert "older version" in (raised.value.hint or "") and "all below state/ " in (raised.value.hint or "")

    asyncio.run(torn())


def test_what_is_to_go_first_stays_so_however_often_it_is_cut_off() -> None:
    there = state([known("a", "new"), known("a", "old", delete=True), known("a", "older", delete=True)], [])
    first = there.mend(identify_nothing)
    assert len(set(first.leftovers)) == 2
    again = there.mend(identify_nothing)
    assert (again.leftovers, again.changed) == (first.leftovers, False)
    assert {each.name for each in there.resources} == {"a"}
