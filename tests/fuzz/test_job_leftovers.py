"""Jobs that leave links, pipes, deep trees and odd files: each ends, no agent does, and nothing outside is touched."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.store.memory import MemoryState, MemoryStore
from monkey_agent.ports import AttemptEnd
from tests.fuzz.test_store_contents import SECONDS, seeds
from tests.loops import Run
from tests.precious import MARK, Precious
from tests.unit.monkey_agent.body import Body

pytestmark = pytest.mark.slow

#: Things that one job leaves, and seconds that it may take to be over.
COUNT, PATIENCE = 30, 120.0
LEAVER = Path(__file__).with_name("leaver.py")


def test_what_a_job_leaves_harms_nothing(
    tmp_path: Path, run: Run, first_seed: int, runs: int, show: Callable[[str], None]
) -> None:
    until, bugs, seen = time.monotonic() + SECONDS, list[str](), Counter[str]()
    precious, state, said = Precious(tmp_path / "precious"), MemoryState(), list[str]()
    script = shutil.copy(LEAVER, tmp_path)

    async def make() -> Body:
        return Body(tmp_path, MemoryStore(state))

    body = run(make())
    body.runner.errors.say = said.append
    code, kept = run(body.code({})), dict(state.objects)

    async def attempt(job: str, k: int, seed: int) -> AttemptEnd:
        command = [sys.executable, script, str(seed), str(COUNT), str(precious.root)]
        done = await asyncio.wait_for(body.run(command, job=job, k=k, code=code, outputs=["**"]), PATIENCE)
        seen[done.reason[:60] or "succeeded"] += 1
        assert "bug" not in done.reason, done.reason
        return done.ending

    try:
        for seed in seeds(first_seed, runs):
            if not runs and time.monotonic() > until:
                break
            try:
                for k in (1, 3, 5):  # the next attempt finds the checkpoint of the one before
                    seen["left"] += COUNT
                    if run(attempt(f"{seed:016x}", k, 10 * seed + k)) is AttemptEnd.SUCCEEDED:
                        break
                assert not any(MARK in data for data, _ in state.objects.values()), "a file outside was read"
                assert not said
                run(asyncio.to_thread(body.runner.spaces.empty_trash))  # else it piles up, and takes minutes to go
            except Exception as exc:
                bugs.append(f"--seed {seed}: {exc!r:.500} {said[-1:]}")
                said.clear()
            state.objects = dict(kept)
            state.keys = sorted(kept)
    finally:
        run(body.runner.close())
        run(body.runner.telemetry.close())
    show(str(dict(seen)))
    precious.check(tmp_path / "cache")
    assert bugs == [], f"{len(bugs)} bugs:\n" + "\n".join(bugs[:20])
    assert body.runner.spaces.stuck == [] and body.runner.checkpoints.kept.stuck == []
