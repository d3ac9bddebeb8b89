"""Facts of results: in the store before any end names them, once for all jobs that share them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import StoreUnavailable
from monkey.protocol.layout import Keys
from monkey.protocol.record.facts import decode_facts
from monkey.store.memory import MemoryStore
from monkey_agent.facts.recipe_facts import FactsRecorder
from tests.loops import Run
from tests.unit.monkey_agent.body import Body

KEYS = Keys("project")


class CountingStore(MemoryStore):
    """Counts creates, and fails as many of the first as it is asked to."""

    creates = failures = 0

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        self.creates += 1
        if self.creates <= self.failures:
            raise StoreUnavailable("away")
        return await super().create(key, data, durable=durable)


async def load(store: MemoryStore, name: str) -> dict[str, Any]:
    return decode_facts(name, await store.get(KEYS.facts(name)))


def test_the_end_of_a_job_names_facts_that_are_in_the_store(body: Body, run: Run) -> None:
    async def scenario() -> None:
        outcome = await body.run([sys.executable, "-c", "pass"], env={"OMP_NUM_THREADS": "3", "SECRET": "s3cret"})
        store = body.store
        found = decode_facts("k", await store.get(body.keys.facts(outcome.facts)))
        assert found["variables"]["OMP_NUM_THREADS"] == "3"
        assert found["python"] == "{}.{}.{}".format(*sys.version_info) and found["cpus"] >= 1
        assert "s3cret" not in str(found) and "lock" not in found
        again = await body.run(["false"], env={"OMP_NUM_THREADS": "3", "SECRET": "other"})
        assert again.exit_code == 1 and (await load_kernel(body, again.facts)) == found["kernel"]

    run(scenario())


async def load_kernel(body: Body, name: str) -> object:
    return decode_facts("k", await body.store.get(body.keys.facts(name)))["kernel"]


def test_many_jobs_store_their_facts_once(run: Run) -> None:
    async def scenario() -> None:
        store = CountingStore()
        recorder = FactsRecorder(store, KEYS)
        recipes = [recorder.collect([sys.executable, "x.py"], dict(os.environ), None) for _ in range(20)]
        names = await asyncio.gather(*(recipe.record(()) for recipe in recipes for _ in range(10)))
        assert len(set(names)) == 1 and store.creates == 1
        assert await load(store, names[0])

    run(scenario())


def test_a_store_that_is_away_is_asked_again(run: Run) -> None:
    async def scenario() -> None:
        store = CountingStore()
        store.failures = 3  # one whole resolved create
        facts = FactsRecorder(store, KEYS).collect("true", dict(os.environ), None)
        with pytest.raises(StoreUnavailable):
            await facts.record(())
        assert await load(store, await facts.record(()))

    run(scenario())


def test_a_python_that_cannot_be_asked_leaves_the_machine(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        facts = FactsRecorder(store, KEYS).collect("python3 x.py", {"PATH": str(tmp_path)}, tmp_path / "gone")
        found = await load(store, await facts.record(("0",)))
        assert "python" not in found and "lock" not in found and found["kernel"]

    run(scenario())


def test_an_attempt_that_is_cancelled_takes_nothing_from_others(run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        facts = FactsRecorder(store, KEYS).collect([sys.executable], dict(os.environ), None)
        waiting = asyncio.ensure_future(facts.record(()))
        await asyncio.sleep(0)
        waiting.cancel()
        assert await load(store, await facts.record(()))

    run(scenario())
