"""A state in the store that another program wrote: the real Pulumi runs nothing of it."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pickle
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey_stacks.engine.engine_outcome import EngineOutcome
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from tests.stacks.desk import FLEET, PROJECT, Desk, Sheet, ops

pytestmark = pytest.mark.slow

STATE = f"projects/{PROJECT}/machines/{FLEET}/state/.pulumi/stacks/"


class Payload:
    """Runs a command when it is read as a pickle."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self._command,)


def forge_pickles(data: bytes, proof: Path) -> bytes:
    """Put a pickle that leaves the file `proof` in place of every pickled provider of a state."""
    body = json.loads(data)
    forged = base64.b64encode(pickle.dumps(Payload(f"touch {proof}"))).decode()
    for each in body["checkpoint"]["latest"]["resources"]:
        for part in ("inputs", "outputs"):
            if "__provider" in each.get(part, {}):
                each[part]["__provider"] = forged
    assert forged in json.dumps(body)
    return json.dumps(body).encode()


@pytest.fixture
def ask(desk: Desk) -> dict[str, Callable[[PulumiEngine], Awaitable[EngineOutcome]]]:
    """Return all that is asked of an engine, by its name."""
    wanted = desk.program(Sheet("a", "second"))
    return {
        "preview": lambda engine: engine.preview(wanted),
        "plan": lambda engine: engine.preview(wanted, refresh=True),
        "refresh": PulumiEngine.refresh,
        "up": lambda engine: engine.up(wanted, refresh=True),
        "destroy": PulumiEngine.destroy,
    }


def test_no_pickle_of_a_state_is_loaded_and_ours_does_the_work(
    desk: Desk, tmp_path: Path, ask: dict[str, Callable[[PulumiEngine], Awaitable[EngineOutcome]]]
) -> None:
    proof, state = tmp_path / "proof", Path(desk.url, f"{STATE}{PROJECT}/{FLEET}.json")
    desk.up(Sheet("a", "first"))
    came = {}
    for name, question in ask.items():
        state.write_bytes(forge_pickles(state.read_bytes(), proof))
        came[name] = ops(desk.run(question))
        assert not proof.exists(), name
    changed = {"a": "update text"}
    assert came == {
        "preview": changed,
        "plan": changed,
        "refresh": {"a": "same"},
        "up": changed,
        "destroy": {"a": "delete"},
    }
    assert desk.written == {} and desk.done["update a"] == desk.done["delete a"] == 1


def test_a_state_where_pulumi_would_look_and_we_would_not_is_seen_by_neither(desk: Desk, tmp_path: Path) -> None:
    """Pulumi prefers a newer compressed state, and an older layout has the state in another place."""
    proof, state = tmp_path / "proof", Path(desk.url, f"{STATE}{PROJECT}/{FLEET}.json")
    desk.up(Sheet("a", "first"))
    forged = forge_pickles(state.read_bytes(), proof)
    state.with_suffix(".json.gz").write_bytes(gzip.compress(forged))
    state.parent.with_name(f"{FLEET}.json").write_bytes(forged)
    (state.parents[2] / "meta.yaml").write_text("version: 0\n")
    assert ops(desk.preview(Sheet("a", "first"))) == {"a": "same"}
    state.unlink()
    assert ops(desk.preview(Sheet("a", "first"))) == {"a": "create"}
    assert not proof.exists()


def test_secrets_that_a_service_is_to_keep_are_refused_before_it_is_asked(desk: Desk) -> None:
    state = Path(desk.url, f"{STATE}{PROJECT}/{FLEET}.json")
    desk.up(Sheet("a", "first"))
    body = json.loads(state.read_text())
    body["checkpoint"]["latest"]["secrets_providers"] = {"type": "service", "state": {"url": "http://127.0.0.1:9"}}
    state.write_text(json.dumps(body))
    with pytest.raises(CorruptObject, match=f"{FLEET}.json: has its secrets kept by 'service'"):
        desk.preview(Sheet("a", "first"))
    assert desk.written == {"a": "first"}
