"""Checkpoints: what the next attempt finds, here and elsewhere, whatever ended the one before."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from monkey.store.memory import MemoryStore
from monkey_agent.ports import Ending
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until

JOB = "c" * 16
OFTEN = {"checkpoint_every": 0.01}

#: Counts its attempts; ends well with the third.
COUNT = [
    sys.executable,
    "-c",
    """
import os, sys
file = os.environ["MONKEY_CHECKPOINT_DIR"] + "/count"
count = int(open(file).read()) if os.path.exists(file) else 0
open(file, "w").write(str(count + 1))
print(count)
sys.exit(count < 2)
""",
]

#: Says what it finds, saves STATE, then stays until it is killed.
STAY = ["sh", "-c", 'cd "$MONKEY_CHECKPOINT_DIR"; cat state; printf "$1" > state; exec sleep 1000', "sh", "{state}"]


async def said(body: Body, running: Any) -> str:
    """What a job wrote, without our notes."""
    text = (await body.stored(running, "log/")).get("log/000000", b"").decode()
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("monkey: "))


async def in_store(body: Body) -> dict[str, bytes]:
    """What the job's checkpoints are in the store."""
    prefix = body.keys.checkpoints(JOB)
    return {item.key.removeprefix(prefix): await body.store.get(item.key) for item in await body.store.list(prefix)}


def objects(body: Body) -> dict[str, tuple[bytes, int]]:
    """What is in the store: looked into, not asked."""
    assert isinstance(body.store, MemoryStore)
    return body.store.state.objects


def kept(body: Body) -> list[str]:
    return sorted(path.name for path in (body.state / "checkpoints").iterdir())


async def saved(body: Body, running: Any, text: str) -> None:
    """Wait until a checkpoint that holds `text` is in the store."""

    def there() -> bool:
        lists = [key for key in objects(body) if key.startswith(body.keys.checkpoints(JOB)) and "/files/" not in key]
        return any(data == text.encode() for data, _ in objects(body).values()) and bool(lists)

    await until(there)


def test_each_try_goes_on_from_the_one_before_and_a_success_needs_none(body: Body, run: Run) -> None:
    async def scenario() -> None:
        for k, found in ((1, "0"), (2, "1"), (3, "2")):
            running = await body.start(COUNT, job=JOB, k=k)
            outcome = await running.wait()
            assert await said(body, running) == f"{found}\n"
        assert outcome.ending is Ending.SUCCEEDED
        assert kept(body) and await in_store(body), "until its end is recorded it may be needed again"
        running.recorded()
        await body.runner.close()
        assert not kept(body)
        assert not await in_store(body)

    run(scenario())


def test_another_machine_goes_on_from_the_store(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        for k, found in ((1, "0"), (2, "1"), (3, "2")):
            body = Body(tmp_path / str(k), store)
            running = await body.start(COUNT, job=JOB, k=k)
            await running.wait()
            assert await said(body, running) == f"{found}\n"
            await body.runner.close()

    run(scenario())


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
        running.recorded()
        await body.runner.close()
        assert not asked

    run(scenario())


def test_a_job_that_is_stopped_goes_on_elsewhere_from_what_it_saved_last(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        first = Body(tmp_path / "1", store)
        running = await first.start(STAY, job=JOB, parameters={"state": "one"}, settings={"grace": 20})
        file = Path(running._space.checkpoint) / "state"
        await until(lambda: file.exists() and file.read_text() == "one")
        await until(lambda: running._checkpoint._task is not None)
        assert not await in_store(first), "its period has not come"
        await running.stop("the agent leaves")
        assert (await running.wait()).ending is Ending.STOPPED
        await first.runner.close()
        second = Body(tmp_path / "2", store)
        running = await second.start(STAY, job=JOB, k=2, parameters={"state": "two"})
        await until(lambda: (Path(running._space.checkpoint) / "state").read_text() == "two")
        await running.stop("enough")
        await running.wait()
        assert await said(second, running) == "one"
        await second.runner.close()

    run(scenario())


def test_what_is_half_written_beside_it_keeps_no_last_copy_from_being_made(body: Body, run: Run) -> None:
    """As most jobs are when they are asked to end: in the middle of the next checkpoint."""
    script = 'cd "$MONKEY_CHECKPOINT_DIR"; echo whole > state; exec 3> state.tmp; echo half- >&3; exec sleep 1000'

    async def scenario() -> None:
        running = await body.start(["sh", "-c", script], job=JOB)
        await until((Path(running._space.checkpoint) / "state.tmp").exists)
        await running.stop("the agent leaves")
        assert (await running.wait()).ending is Ending.STOPPED
        files = {key: data for key, data in (await in_store(body)).items() if "/files/" in key}
        assert list(files.values()) == [b"whole\n"]

    run(scenario())


def test_a_killed_agent_s_successor_relies_on_what_was_whole(tmp_path: Path, run: Run) -> None:
    """What was captured is there; what the job was just writing when it was killed is not."""

    async def scenario() -> None:
        first = Body(tmp_path)
        running = await first.start(STAY, job=JOB, parameters={"state": "whole"})
        await until(lambda: kept(first) == [f"{JOB}.1.1"])
        (Path(running._space.checkpoint) / "state.new").write_text("half-")
        (Path(running._space.checkpoint) / "state.new").rename(Path(running._space.checkpoint) / "state")
        # What SIGKILL leaves: everything as it was, and no wait().
        assert running._checkpoint._task is not None
        running._checkpoint._task.cancel()
        await first.runner._launcher.close()
        second = Body(tmp_path)
        assert not await in_store(second)
        running = await second.start(STAY, job=JOB, k=2, parameters={"state": "next"})
        await until(lambda: (Path(running._space.checkpoint) / "state").read_text() == "next")
        await running.stop("enough")
        await running.wait()
        assert await said(second, running) == "whole"
        await second.runner.close()

    run(scenario())


def test_this_machine_s_copy_does_not_hide_a_newer_one(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        here, there = Body(tmp_path / "here", store), Body(tmp_path / "there", store)
        for k, body, found in ((1, here, "0"), (2, there, "1"), (3, here, "2")):
            running = await body.start(COUNT, job=JOB, k=k)
            await running.wait()
            assert await said(body, running) == f"{found}\n"
        await here.runner.close()
        await there.runner.close()

    run(scenario())


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


def test_an_attempt_that_is_late_takes_nothing_from_its_successor(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        late, new = Body(tmp_path / "late", store), Body(tmp_path / "new", store)
        settings = {**OFTEN, "checkpoint_keep": 1}
        first = await late.start(STAY, job=JOB, k=1, parameters={"state": "first"}, settings=settings)
        await saved(late, first, "first")
        second = await new.start(STAY, job=JOB, k=2, parameters={"state": "second"}, settings=settings)
        await saved(new, second, "second")
        await until(lambda: not any("/checkpoints/00000001/" in key for key in store.state.objects))
        (Path(first._space.checkpoint) / "state").write_text("too late")
        await saved(late, first, "too late")
        await first.stop("another agent took it over")
        await first.wait()
        stored = await in_store(new)
        assert b"second" in stored.values(), "the late one took it away"
        await second.stop("enough")
        await second.wait()
        third = await (body := Body(tmp_path / "third", store)).start(STAY, job=JOB, k=3, parameters={"state": "x"})
        await until(lambda: (Path(third._space.checkpoint) / "state").read_text() == "x")
        await third.stop("enough")
        await third.wait()
        assert await said(body, third) == "second"
        for each in (late, new, body):
            await each.runner.close()

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
        from monkey.protocol.entries import Claim, End, Ended

        body = Body(tmp_path)
        await (await body.start(COUNT, job=JOB, k=1)).wait()
        assert kept(body)
        log = body.keys.job_log(JOB)
        await body.store.put(f"{log}00000001", Claim("other", 1, 1, "s").encode())
        await body.store.put(f"{log}00000002", End(Ended.SUCCEEDED, "other", 1).encode())
        await body.runner.close()
        next_life = Body(tmp_path, body.store)
        await until(lambda: not kept(next_life))
        await next_life.runner.close()
        assert not await in_store(next_life)

    run(scenario())


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
