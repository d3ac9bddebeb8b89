"""Copies of checkpoints in the store: only what changed, only what is whole, no more than are kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from monkey.store.memory import MemoryStore
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until
from tests.unit.monkey_agent.saving_jobs import COUNT, JOB, OFTEN, in_store, kept, objects, said, saved


def test_a_first_try_asks_the_store_for_nothing(body: Body, run: Run) -> None:
    asked = []

    class Counting(MemoryStore):
        async def list(self, prefix: str, after: str = "") -> list[Any]:
            asked.append(prefix)
            return await super().list(prefix, after)

    async def scenario() -> None:
        store = body.store
        assert isinstance(store, MemoryStore)
        body.runner.store = body.runner.checkpoints.store = Counting(store.state)
        running = await body.start("true")
        await running.wait()
        running.leave(recorded=True)
        await body.runner.close()
        assert not asked

    run(scenario())


@pytest.mark.slow
def test_only_what_changed_is_sent_and_the_newest_two_stay(tmp_path: Path, run: Run) -> None:
    sent: list[str] = []

    class Counting(MemoryStore):
        async def put_file(self, key: str, path: Path) -> None:
            sent.append(key)
            await super().put_file(key, path)

    async def scenario() -> None:
        body = Body(tmp_path, Counting())
        running = await body.start(["sleep", "1000"], job=JOB, settings={**OFTEN, "checkpoint_keep": 2})
        place = Path(running._space.checkpoint)
        (place / "base").write_bytes(b"b" * 100_000)
        for step in ("one", "two", "three"):
            (place / "step.tmp").write_text(step)
            (place / "step.tmp").rename(place / "step")
            await saved(body, running, step)
        await until(lambda: objects(body).keys() >= {body.keys.checkpoint(JOB, 1, 3)})
        assert len([key for key in sent if "/checkpoints/" in key]) == 4, "the base once, each step once"
        await running.stop("enough")
        await running.wait()
        stored = await in_store(body)
        assert [key for key in stored if "/files/" not in key] == ["00000001/00000002", "00000001/00000003"]
        assert sorted(stored.values(), key=len)[:2] == [b"two", b"three"], "the first step's file is gone"
        await body.runner.close()

    run(scenario())


def test_a_corrupt_copy_is_left_out_for_the_one_before(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        for k in (1, 2):
            body = Body(tmp_path / str(k), store)
            await (await body.start(COUNT, job=JOB, k=k)).wait()
            await body.runner.close()
        newest = [key for key in store.state.objects if "/checkpoints/00000002/files/" in key]
        assert newest
        for key in newest:
            await store.put(key, b"?")
        body = Body(tmp_path / "3", store)
        running = await body.start(COUNT, job=JOB, k=3)
        await running.wait()
        text = (await body.stored(running, "log/"))["log/000000"].decode()
        assert "monkey: checkpoint 2.1 is left out" in text and "goes on from checkpoint 1.1" in text
        assert await said(body, running) == "1\n"
        await body.runner.close()

    run(scenario())


def test_what_no_other_directory_could_hold_is_told(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        make = "cd $MONKEY_CHECKPOINT_DIR; mkdir -p a/b; echo x > a/f; ln -s f a/last; ln -s /etc out; mkfifo p; exit 3"
        first = Body(tmp_path / "1", store)
        running = await first.start(["sh", "-c", make], job=JOB)
        await running.wait()
        log = (await first.stored(running, "log/"))["log/000000"].decode()
        assert "'out' is no part of its checkpoint" in log and "'p' is no part" in log
        await first.runner.close()
        second = Body(tmp_path / "2", store)
        running = await second.start(["sh", "-c", "cd $MONKEY_CHECKPOINT_DIR; find | sort; cat a/last"], job=JOB, k=2)
        await running.wait()
        assert await said(second, running) == ".\n./a\n./a/b\n./a/f\n./a/last\nx\n"
        await second.runner.close()

    run(scenario())


def test_leftovers_of_jobs_that_succeeded_elsewhere_are_removed(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        from monkey.protocol.entries import Claim, ClaimEnd, EndEntry

        body = Body(tmp_path)
        await (await body.start(COUNT, job=JOB, k=1)).wait()
        assert kept(body)
        log = body.keys.job_log(JOB)
        await body.store.put(f"{log}00000001", Claim("other", 1, 1, "s").encode())
        await body.store.put(f"{log}00000002", EndEntry(ClaimEnd.SUCCEEDED, "other", 1).encode())
        await body.runner.close()
        next_life = Body(tmp_path, body.store)
        await until(lambda: not kept(next_life))
        await next_life.runner.close()
        assert not await in_store(next_life)

    run(scenario())


@pytest.mark.slow
def test_a_file_that_is_rewritten_in_place_is_never_half_in_the_store(tmp_path: Path, run: Run) -> None:
    """It writes 2 MB of one letter, in place, and rests but a moment: what is saved is of one letter."""
    writer = """
import os, time
file = os.environ["MONKEY_CHECKPOINT_DIR"] + "/state"
step = 0
while True:
    step += 1
    with open(file, "wb", buffering=0) as out:
        for _ in range(20):
            out.write(bytes([65 + step % 26]) * 100_000)
            time.sleep(0.002)
    time.sleep(0.06)
"""

    async def scenario() -> None:
        body = Body(tmp_path, MemoryStore())
        command = [sys.executable, "-c", writer.replace("{", "{{").replace("}", "}}")]
        running = await body.start(command, job=JOB, settings=OFTEN)
        await until(lambda: body.keys.checkpoint(JOB, 1, 3) in objects(body), 60)
        await running.stop("enough")
        await running.wait()
        saved = [data for key, data in (await in_store(body)).items() if "/files/" in key]
        assert saved and all(len(data) == 2_000_000 and len(set(data)) == 1 for data in saved)
        await body.runner.close()

    run(scenario())
