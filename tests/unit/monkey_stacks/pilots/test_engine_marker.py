"""The marker by which a fleet is found that monkey.yaml does not name; and an engine that is asked seldom."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from monkey.errors import CorruptObject, FleetError
from monkey.store.memory import MemoryStore
from monkey_stacks.pilots.engine_marker import forget_marker, read_marker, spell_marker_key, write_marker
from monkey_stacks.pilots.seldom_question import BETWEEN_SECONDS, SeldomQuestion
from monkey_stacks.slurm.fleet import make_marked_engine

MARKER = {"type": "slurm", "login": "hpc", "workdir": "~/.monkey", "label": "monkey-p-lab-0123abcd"}


def test_a_marker_is_written_read_and_forgotten() -> None:
    asyncio.run(keep_a_marker())


async def keep_a_marker() -> None:
    store = MemoryStore()
    assert await read_marker(store, "p", "lab") is None
    await write_marker(store, "p", "lab", MARKER)
    assert await read_marker(store, "p", "lab") == MARKER
    await forget_marker(store, "p", "lab")
    assert await read_marker(store, "p", "lab") is None


@pytest.mark.parametrize("data", [b"", b"[]", b'{"login": 5}', b"\xff", b'"' + b"x" * 20_000 + b'"'])
def test_what_is_no_marker_is_refused(data: bytes) -> None:
    store = MemoryStore()
    asyncio.run(store.put(spell_marker_key("p", "lab"), data))
    with pytest.raises(CorruptObject, match="no marker of a fleet"):
        asyncio.run(read_marker(store, "p", "lab"))


def opened(**changed: str) -> str:
    return make_marked_engine("lab", {**MARKER, **changed}, "p", "/s").where


@pytest.mark.parametrize(
    "changed",
    [
        {"login": "-oProxyCommand=touch x"},
        {"workdir": "/etc/../root"},
        {"workdir": "somewhere"},
        {"label": "monkey-p-other-0123abcd"},
        {"label": "monkey-p-lab-0123abcd/../../.."},
        {"label": ""},
    ],
)
def test_a_hostile_marker_opens_nothing(changed: dict[str, str]) -> None:
    assert opened() == "hpc:~/.monkey/pilots/monkey-p-lab-0123abcd"
    with pytest.raises(CorruptObject) as caught:
        opened(**changed)
    assert "projects/p/machines/lab/engine.json" in caught.value.message, json.dumps(changed)


def test_waiting_loops_ask_an_engine_once_in_half_a_minute() -> None:
    asyncio.run(ask_often())


async def ask_often() -> None:
    clock, answers = [0.0], itertools.count(1)
    question = SeldomQuestion(lambda: next(answers), lambda: clock[0])
    for _ in range(100):
        assert await question.ask() == 1
    clock[0] = BETWEEN_SECONDS
    assert [await question.ask(), await question.ask()] == [2, 2]
    question.forget()
    assert await question.ask() == 3
    question.note(7, age=BETWEEN_SECONDS - 8)
    assert await question.ask() == 7
    clock[0] += 8
    assert await question.ask() == 4


def test_an_engine_that_does_not_answer_is_not_asked_more_often() -> None:
    asyncio.run(ask_in_vain())


async def ask_in_vain() -> None:
    clock, asked = [0.0], itertools.count()

    def answer() -> int:
        if next(asked) < 1:
            raise FleetError("the controller is away")
        return 5

    question = SeldomQuestion(answer, lambda: clock[0])
    for _ in range(100):
        with pytest.raises(FleetError, match="away"):
            await question.ask()
    assert next(asked) == 1
    clock[0] = BETWEEN_SECONDS
    assert await question.ask() == 5
