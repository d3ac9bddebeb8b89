"""Stores that somebody spoiled: people are told in words, agents do what can be done, and no terminal is taken over."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import monkey.apply.world.world
from monkey.cli.main import run_guarded
from monkey.protocol.entry_log import tally_log
from monkey.spec.job.recipe import SweepSettings
from monkey.store.memory import MemoryState, MemoryStore
from monkey.store.open import open_store
from tests.fuzz.corpus import KEYS, live, spoil
from tests.signing import ANYBODY
from tests.simulation.body import job_id
from tests.simulation.life import Life
from tests.simulation.mutant import Mutant
from tests.simulation.net import Host
from tests.simulation.story import Story, revision
from tests.simulation.test_protocol import QUIET
from tests.simulation.world import Weather, World

pytestmark = pytest.mark.slow

#: Seconds that each of these takes in CI, and spoiled objects of one store at most.
SECONDS, MOST = 40.0, 40
#: What no terminal may be sent.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
VERBS = """
status; status --json; status a; list jobs a; list jobs; list sweeps; list sweeps --json; list instances; info a
info JOB; logs JOB; logs a; results a; results a --csv; results a --json; results a --all; results b --group-by n
verify a; verify JOB; fetch JOB -o out; fetch a -o out; plan; plan --json; doctor; pause a; cancel b; extend a 6h
diff a b; diff a@1 b --json; diff JOB a/0; diff a/JOB JOB --all
"""
SPEC = """
name: a
command: "true {n}"
parameters: {n: {range: [0, 6]}}
provider: f
"""


def seeds(first: int, runs: int) -> range:
    """Return the seeds to try: those asked for, or as many as there is time for."""
    return range(first, first + (runs or 1_000_000))


def fill(state: MemoryState, objects: dict[str, bytes]) -> None:
    """Let a store have these objects and no others."""
    state.objects.clear()
    state.keys.clear()
    for key in sorted(objects):
        state.write(key, objects[key])


def test_what_people_look_at_is_told_in_words(
    tmp_path: Path,
    first_seed: int,
    runs: int,
    show: Callable[[str], None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root, until = tmp_path / "a" / "b" / "project", time.monotonic() + SECONDS
    (root / "specs").mkdir(parents=True)
    monkeypatch.chdir(root)
    (root / "specs" / "a.yaml").write_text(SPEC)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    # The corpus is signed for another store, and what is spoiled is to be read: what follows the check is tried here.
    monkeypatch.setattr(monkey.apply.world.world, "load_user_signers", lambda: ANYBODY)
    (root / "monkey.yaml").write_text("project: p\nstore: memory://fuzz\nproviders: {f: {type: local}}\n")
    store = asyncio.run(open_store("memory://fuzz", begin=True))
    assert isinstance(store, MemoryStore)
    state, form = store.state, asyncio.run(store.get("format"))
    verbs, corpora, bugs, seen = VERBS.strip().replace("\n", "; ").split("; "), live(), [], Counter[str]()
    for seed in seeds(first_seed, runs):
        if not runs and time.monotonic() > until:
            break
        rng = random.Random(f"people {seed}")
        objects = dict(rng.choice(corpora))
        what = spoil(objects, rng, rng.choice([1, 3, MOST]))
        job = job_id(rng.randrange(9))
        for verb in rng.sample(verbs, 4):
            fill(state, {**objects, "format": form})
            code = run_guarded(verb.replace("JOB", job).split())
            out, err = capfd.readouterr()
            told = err if "--csv" in verb else out + err
            if "this is a bug" in err or code not in (0, 1, 2) or CONTROL.search(told):
                bugs.append(
                    f"--seed {seed}: {verb}: exit code {code}, {CONTROL.findall(told)[:3]}, {err[:300]}; {what[:9]}"
                )
        seen.update(spoiled=len(what), stores=1)
        assert {path.name for path in tmp_path.rglob("*")} & {"esc", "passwd"} == set()
    show(str(dict(seen)))
    assert bugs == [], f"{len(bugs)} bugs:\n" + "\n".join(bugs[:20])


def test_agents_do_what_can_be_done(first_seed: int, runs: int, show: Callable[[str], None]) -> None:
    until, corpora, bugs, seen = time.monotonic() + SECONDS, live(), [], Counter[str]()
    for seed in seeds(first_seed, runs):
        if not runs and time.monotonic() > until:
            break
        rng = random.Random(f"agents {seed}")
        objects = dict(rng.choice(corpora))
        what = spoil(objects, rng, rng.choice([1, 3, MOST]))
        if wrong := _live_with(seed, objects):
            bugs.append(f"--seed {seed}: {wrong}; {what[:9]}")
        seen.update(spoiled=len(what), stores=1)
    show(str(dict(seen)))
    assert bugs == [], f"{len(bugs)} bugs:\n" + "\n".join(bugs[:20])


def _live_with(seed: int, objects: dict[str, bytes]) -> str:
    """Let an agent live with a spoiled store, beside an honest sweep; returns what is wrong with that, or ""."""
    world = World(seed, Weather(**{**QUIET, "jobs": (1, 20)}, agents=1, outage=(0, 0), calm_from=0.001))
    world.signers = ANYBODY
    asyncio.set_event_loop(world.loop)
    fill(world.state, objects)
    said, jobs, lives = list[str](), range(20, 24), list[Life]()

    async def live_on() -> None:
        await Story(world).apply(revision("honest", jobs, SweepSettings(providers=["f"], priority=1)))
        world.hosts.append(Host(world, "h9"))
        lives.append(Life(world, world.hosts[0], Mutant()))
        world.current["h9"] = lives[0]
        lives[0].agent.errors.say = said.append
        await asyncio.sleep(300)
        lives[0].agent.stop()
        await asyncio.wait([lives[0].main], timeout=300)

    world.run(live_on())
    left = [n for n in jobs if not tally_log(world.log(KEYS.job_log(job_id(n)))).succeeded]
    traces = [line for line in said if "Traceback" in line or CONTROL.search(line)]
    if lives[0].agent._failure or not lives[0].main.done() or left:
        return f"the agent: {lives[0].agent._failure!r}, {lives[0].main}; left of the honest jobs: {left}"
    return "; ".join(traces)[-600:]
