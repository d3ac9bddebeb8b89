"""Revisions and orders that somebody forged: each misshapen field is told by its key, and ends nothing else."""

from __future__ import annotations

import asyncio
import copy
import json
import math
from typing import Any

import pytest

from monkey.errors import CorruptObject
from monkey.protocol.entry_log import EntryLog, find_newest_checkpoint
from monkey.protocol.heartbeat import decode_beat
from monkey.protocol.journal import JournalBlock
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps import revision_shape
from monkey.protocol.sweeps.queue_markers import mark_queue, read_queue
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import read_sweep
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.expires import Expiry
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import JobResources, Recipe, SweepSettings
from monkey.spec.job.stop_when import StopRule
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.spec.project.notify_channel import NotifyChannel
from monkey.store.memory import MemoryStore
from tests.signing import ANYBODY

KEYS = Keys("p")
JOBS = ["0" * 15 + "1", "0" * 15 + "2"]
#: Everything that a revision can say.
FULL = Revision(
    sweep="digits",
    recipe=Recipe(
        ["python", "train.py", "{lr}"],
        "c" * 64,
        datasets={"digits": f"{'d' * 32}.dir"},
        environment={"python": "3.11", "requirements": "numpy\n"},
        image=f"sha256:{'e' * 64}",
        env={"A": "é"},
        outputs=["*.npz"],
    ),
    settings=SweepSettings(
        max_retries=1,
        timeout=7200,
        max_concurrent_jobs=2,
        resources=JobResources(2, 1, 2**30),
        metric="acc",
        repeats=["seed"],
        secrets=["TOKEN"],
        image="docker.io/library/debian:12",
        dataset_files={"digits": "digits.csv"},
        influx=InfluxSettings("http://host:8086", "monkey", org="lab", token="TOKEN", spool=1 << 20),
        stop_when=[
            StopRule("loss", kind="nan"),
            StopRule("acc", above=0.9, after_step=3, sweep=True),
            StopRule("x", silent=60.0),
        ],
        notify=[
            NotifyChannel("slack", "SLACK_WEBHOOK", ("failed",), after=60.0),
            NotifyChannel("forge", "FORGE_TOKEN", forge=ForgeSettings("gitea", "https://git.lab/api/v1", "a/b")),
        ],
        expires=Expiry(after=3600.0),
        log_limit=1 << 20,
    ),
    table=JobTable(JOBS, {"lr": ParameterColumn([0.1, "x{y}"], [0, 1]), "extra": ParameterColumn([True], [-1, 0])}),
    spec_text="name: digits\n",
    source="specs/digits.yaml",
    code_files={"train.py": "d" * 64},
    git={"commit": "abc", "branch": None, "dirty": False, "remote": "r", "directory": "d"}
    | {"pull": 3, "actor": "ada", "run": "https://x"},
    author="ada",
    force="why",
    restores=2,
    at="2026-01-01T00:00:00+00:00",
    applied=1.7e9,
    adopted={JOBS[0]: "f" * 16},
    checks={JOBS[1]: "e" * 16},
)

NAN, INF = math.nan, math.inf
COUNTS = [{"counted": value} for value in ([], {"tpu": -1}, {"tpu": 0}, {"cpus": 1}, {"tpu": 1.5}, {"a b": 1})]
#: Path of a field to values that it must not have.
WRONG: dict[str, list[Any]] = {
    "sweep": [5, "../x", ""],
    "spec": [None],
    "source": [[]],
    "author": [1],
    "at": [1.7e9, "yesterday", "0001-01-01", "9999-12-31T23:59:59", "a\nb"],
    "applied": ["x", NAN, INF, -1, 1e15, 10**400, True],
    "force": [0, None],
    "plan": [0, None],
    "strict": [0, None, "yes"],
    "checks": [[], {JOBS[0]: 1}, {JOBS[0]: "../../x"}, {"../x": JOBS[0]}],
    "restores": [-1, "1", True],
    "rollback": [0],
    "code_files": [[], {"train.py": 1}],
    "git": ["x", {"commit": 1}, {"commit": "abc", "branch": 5}, {"commit": "abc", "dirty": 1}, {"commmit": "abc"}]
    + [{"commit": "abc", name: []} for name in ("remote", "pull", "actor", "run")]
    + [{"pull": -1}],
    "adopted": [[], {JOBS[0]: 1}],
    "recipe": [None, [], "x"],
    "recipe.command": [None, 5, [1], "\ud800", "a\0b"],
    "recipe.code": ["../x", "c" * 63, "C" * 64, None],
    "recipe.datasets": [[], {"digits": 5}, {"\ud800": "d" * 32}],
    "recipe.environment": ["x", {"python": 3.11}],
    "recipe.image": [5, "debian", "sha256:12"],
    "recipe.env": [{"A": 1}, {"A": "\ud800"}, {"A\0": "x"}, [["A", "x"]]],
    "recipe.outputs": ["*.npz", [5], None],
    "recipe.later": [1],
    "settings": [None, [], 5],
    "settings.max_retries": [-1, 1.5, True, "1", 1 << 63],
    "settings.timeout": ["7200", -1, INF, NAN, 1e11],
    "settings.build_timeout": [None, INF],
    "settings.grace": ["x", -1, NAN],
    "settings.log_limit": ["100 MiB", -1, 1.5, True, None],
    "settings.max_concurrent_jobs": [-1, 0, 1.5, "2"],
    "settings.fail_fast": [1, None],
    "settings.priority": ["high", NAN, 10**400, True],
    "settings.providers": ["local", [5], ["../x"], [None], None],
    "settings.resources": [None, [], {"cpus": "2"}, {"cpus": -1}, {"gpus": 1.5}, {"memory": -1}, *COUNTS],
    "settings.metric": [5],
    "settings.maximize": ["yes"],
    "settings.take": ["first", None, 5],
    "settings.repeats": [None, "seed", [5]],
    "settings.last": ["loss", [5], {"loss": 1}],
    "settings.checkpoint_every": [NAN, "x", -1],
    "settings.checkpoint_keep": [-1, None],
    "settings.secrets": [NAN, "TOKEN", [5], ["A=B"], [None]],
    "settings.dataset_files": [[], {"digits": 5}],
    "settings.influx": [5, {"url": 5, "bucket": "b"}, {"bucket": "b"}, {"url": "u", "bucket": "b", "spool": -1}],
    "settings.stop_when": [{}, [5], [{}], [{"metric": "a"}], [{"metric": 5, "is": "nan"}], [{"is": "nan"}]],
    "settings.sources": [[{"stdin": "x"}], [{"csv": 1}], [{"csv": "x", "stdout": "y"}], [{}], ["csv"], {"csv": "x"}],
    "settings.notify": [
        {},
        [5],
        [{}],
        [{"slack": 5}],
        [{"slack": "A", "webhook": "B"}],
        [{"slack": "A", "after": INF}],
        [{"forge": "A"}],
        [{"slack": "A", "at": {"type": "gitea", "api": "https://x", "repository": "a/b"}}],
        [{"forge": "A", "at": {"type": "gitea", "api": "https://x"}}],
        [{"forge": "A", "at": {"type": "other", "api": "https://x", "repository": "a/b"}}],
        [{"forge": "A", "at": {"type": "gitea", "api": 5, "repository": "a/b"}}],
    ],
    "settings.image": [5, "", "debian", "--privileged", "docker.io/library/debian"],
    "settings.expires": [[], NAN, -1, "tomorrow", "2026-01-01T00:00:00", 1e300],
    "settings.later": [1],
    "table": [None, [], {}],
    "table.ids": [5, "x" * 32, "0" * 31, "A" * 32, "0" * 48, " " + "0" * 31, "\ud800" * 32],
    "table.columns": [[], {"lr": 5}, {"lr": {}}, {"lr": {"values": [1], "index": [0]}}],
    "table.columns.lr.values": [
        [json.loads("[" * 70 + "]" * 70)],
        [json.loads('{"a":' * 70 + "1" + "}" * 70)],
        5,
        {"0": 1, "1": 2},
        "ab",
        [],
    ],
    "table.columns.lr.index": [[0, 2], [0, -2], [0, 0.5], [0, "1"], [0, None], [0, 10**400], "01", [0]],
}
CASES = [(path, value) for path, values in WRONG.items() for value in values]


def read(body: dict[str, Any]) -> SweepState:
    """Return the sweep whose log has this entry between a whole revision and a pause."""

    async def reading() -> SweepState:
        store = MemoryStore()
        entries = [{"kind": "revision", **FULL.to_json()}, body, {"kind": "pause"}]
        for n, entry in enumerate(entries, 1):
            await store.put(f"{KEYS.sweep_log('digits')}{n:08d}", json.dumps(entry).encode())
        return await read_sweep(store, KEYS, ANYBODY, "digits")

    return asyncio.run(reading())


def forged(path: str, value: Any) -> dict[str, Any]:
    """Return a revision one of whose fields has another value."""
    body: dict[str, Any] = {"kind": "revision", "nonce": "x", **copy.deepcopy(FULL.to_json())}
    *groups, name = path.split(".")
    inner = body
    for group in groups:
        inner = inner[group]
    inner[name] = value
    return body


def refuses(body: dict[str, Any]) -> None:
    """Check that an entry counts for nothing, and is told by its key."""
    state = read(body)
    assert state.revision is not None and state.revision.to_json() == FULL.to_json()
    assert (state.head, state.revision_at, state.paused) == (3, 1, True), "what follows is folded"
    assert [line.partition(": skipped, ")[0] for line in state.skipped.lines] == ["projects/p/sweeps/digits/00000002"]


def test_all_that_a_revision_can_say_is_read() -> None:
    state = read(forged("nonce", "y"))
    assert state.revision is not None and state.revision.to_json() == FULL.to_json()


@pytest.mark.parametrize("path, value", CASES, ids=[f"{path}-{n}" for n, (path, _) in enumerate(CASES)])
def test_a_misshapen_field_is_told_by_the_key_of_its_entry(path: str, value: Any) -> None:
    refuses(forged(path, value))


def test_no_field_is_left_out_above() -> None:
    fields = {*revision_shape.REVISION}
    fields |= {f"recipe.{name}" for name in revision_shape.RECIPE}
    fields |= {f"settings.{name}" for name in revision_shape.SETTINGS}
    assert fields <= WRONG.keys()


@pytest.mark.parametrize(
    "order",
    [
        {"kind": "seen"},
        {"kind": "seen", "git": None},
        {"kind": "seen", "git": {"branch": "main"}},
        {"kind": "seen", "git": {"commit": 5}},
        {"kind": "seen", "git": {"commit": "abc"}, "author": []},
        {"kind": "extend"},
        {"kind": "extend", "until": INF},
        {"kind": "extend", "until": "later"},
        {"kind": "extend", "until": 1e300},
        {"kind": "retry", "jobs": {JOBS[0]: 10**400}},
        {"kind": "retry", "jobs": {JOBS[0]: True}},
        {"kind": "cancel", "cause": [[], 1]},
        {"kind": "cancel", "cause": [JOBS[0], INF]},
        {"kind": "cancel", "goal": "yes"},
        {"kind": ["cancel"]},
    ],
    ids=str,
)
def test_a_misshapen_order_is_told_by_its_key(order: dict[str, Any]) -> None:
    refuses(order)


STRAY = ("²", "x", "0000000x", "1/2", "00000001.end.end", "\x1b[2J")


@pytest.mark.parametrize("name", STRAY)
def test_keys_that_nobody_of_ours_writes_are_passed_over(name: str) -> None:
    async def reading() -> None:
        store = MemoryStore()
        log = EntryLog(KEYS.permit_log("digits", 0))
        for base in (f"{KEYS.queue('local')}digits/", KEYS.checkpoints(JOBS[0]), log.base):
            await store.put(base + name, b"{}")
        await mark_queue(store, KEYS, ["local"], "digits", 1)
        assert (await read_queue(store, KEYS, "local")).markers == {"digits": frozenset({1})}
        await log.jump(store)
        assert log.head == 0
        assert await find_newest_checkpoint(store, KEYS.checkpoints(JOBS[0])) in (0, 1)

    asyncio.run(reading())


BEAT = {
    "seq": 1,
    "held": [],
    "sealed": 0,
    "journal": JournalBlock().to_json(),
    "at": 1.7e9,
    "left": False,
    "vitals": {},
}
ROWS = {
    "jobs": JOBS[0],
    "ks": [2],
    "outcomes": "s",
    "names": ["digits"],
    "sweeps": [0],
    "seconds": [1.0],
    "at": [1.7e9],
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": INF},
        {"at": 1e300},
        {"seq": 10**400},
        {"held": [["x", 1, 2]]},
        {"vitals": {"running": [5]}},
        {"vitals": {"running": 5}},
        {"vitals": {"running": [{"job": JOBS[0], "began": NAN}]}},
        {"vitals": {"running": [{"job": JOBS[0], "usage": {"cpu": INF}}]}},
        {"vitals": {"running": [{}]}},
        *({"journal": {**ROWS, "extra": {}, "seconds": [value]}} for value in (NAN, INF, 10**400, -1)),
        {"journal": {**ROWS, "extra": {}, "at": [1e300]}},
        {"journal": {**ROWS, "extra": {}, "ks": [10**400]}},
        {"journal": {**ROWS, "extra": {"0": {"usage": {"cpu": INF}}}}},
    ],
    ids=str,
)  # fmt: skip
def test_a_misshapen_heartbeat_is_told_by_its_key(wrong: dict[str, Any]) -> None:
    whole = {**BEAT, "journal": {**ROWS, "extra": {}}, "vitals": {"running": [{"job": JOBS[0], "began": 1.7e9}]}}
    assert decode_beat("a/b/c", "beat", json.dumps(whole).encode()).block.jobs == [JOBS[0]]
    with pytest.raises(CorruptObject, match="beat: "):
        decode_beat("a/b/c", "beat", json.dumps({**whole, **wrong}).encode())
