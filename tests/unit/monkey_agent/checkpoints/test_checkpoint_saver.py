"""Checkpoints: what the next attempt finds, here and elsewhere, whatever ended the one before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from monkey.processes.process_tree import LISTS_CHILDREN
from monkey.store.memory import MemoryStore
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until
from tests.unit.monkey_agent.saving_jobs import COUNT, JOB, OFTEN, STAY, in_store, kept, said, saved


def test_each_try_goes_on_from_the_one_before_and_a_success_needs_none(body: Body, run: Run) -> None:
    async def scenario() -> None:
        for k, found in ((1, "0"), (2, "1"), (3, "2")):
            running = await body.start(COUNT, job=JOB, k=k)
            outcome = await running.wait()
            assert await said(body, running) == f"{found}\n"
        assert outcome.ending is AttemptEnd.SUCCEEDED
        assert kept(body) and await in_store(body), "until its end is recorded it may be needed again"
        running.leave(recorded=True)
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
        assert (await running.wait()).ending is AttemptEnd.STOPPED
        await first.runner.close()
        second = Body(tmp_path / "2", store)
        running = await second.start(STAY, job=JOB, k=2, parameters={"state": "two"})
        await until(lambda: (Path(running._space.checkpoint) / "state").read_text() == "two")
        await running.stop("enough")
        await running.wait()
        assert await said(second, running) == "one"
        await second.runner.close()

    run(scenario())


#: Is in the middle of writing when it is halted for the first time, and finishes that as soon as it continues.
WRITES_ON = """
import os, pathlib, signal, time
room = pathlib.Path(os.environ["MONKEY_CHECKPOINT_DIR"])
new = (room / "new").open("w")
def finish(*_):
    new.write("one")
    new.close()
    (room / "new").replace(room / "state")
signal.signal(signal.SIGCONT, finish)
while True:
    time.sleep(0.01)
"""


def test_a_job_that_is_stopped_in_the_middle_of_writing_may_finish_that_and_is_captured(body: Body, run: Run) -> None:
    async def scenario() -> None:
        running = await body.start([sys.executable, "-c", WRITES_ON], job=JOB, settings={"grace": 20})
        await until(lambda: (Path(running._space.checkpoint) / "new").exists())
        await running.stop("the agent leaves")
        assert (await running.wait()).checkpoint == 1
        assert b"one" in (await in_store(body)).values()
        await body.runner.close()

    run(scenario())


#: Saves when it is asked to stop, and then ends by itself or not; Python's own tracker of shared memory always does.
SAVES_LATE = """
import os, pathlib, signal, sys, time
from multiprocessing.shared_memory import SharedMemory
memory, room = SharedMemory(create=True, size=99), pathlib.Path(os.environ["MONKEY_CHECKPOINT_DIR"])
def save(*_):
    memory.unlink()
    time.sleep(0.3)
    (room / "state").write_text("late")
    {end}
signal.signal(signal.SIGTERM, save)
(room / "early").touch()
while True:
    time.sleep(0.01)
"""


@pytest.mark.skipif(not LISTS_CHILDREN, reason="needs a kernel that lists children")
@pytest.mark.parametrize(
    "script, end, whole",
    [
        ("true\n{python}\ntrue", "sys.exit(0)", True),
        ("trap : TERM; {python} & wait", "sys.exit(0)", True),
        ("true\n{python} | (trap '' TERM; exec cat)\ntrue", "sys.exit(0)", True),
        ("true\n{python}\ntrue", "os.kill(os.getpid(), signal.SIGKILL)", False),
        ("exec {python}", "os.kill(os.getpid(), signal.SIGKILL)", False),
    ],
)
def test_what_a_shell_ran_is_captured_if_it_ends_by_itself(
    body: Body, tmp_path: Path, run: Run, script: str, end: str, whole: bool
) -> None:
    (tmp_path / "train.py").write_text(SAVES_LATE.format(end=end))

    async def scenario() -> None:
        command = script.format(python=f"{sys.executable} {tmp_path}/train.py")
        running = await body.start(["sh", "-c", command], job=JOB, settings={"grace": 20})
        await until((Path(running._space.checkpoint) / "early").exists)
        await running.stop("the agent leaves")
        assert (await running.wait()).ending is AttemptEnd.STOPPED
        assert (b"late" in (await in_store(body)).values()) is whole
        await body.runner.close()

    run(scenario())


def test_what_is_half_written_beside_it_keeps_no_last_copy_from_being_made(body: Body, run: Run) -> None:
    """As most jobs are when they are asked to end: in the middle of the next checkpoint."""
    script = 'cd "$MONKEY_CHECKPOINT_DIR"; echo whole > state; exec 3> state.tmp; echo half- >&3; exec sleep 1000'

    async def scenario() -> None:
        running = await body.start(["sh", "-c", script], job=JOB)
        await until((Path(running._space.checkpoint) / "state.tmp").exists)
        await running.stop("the agent leaves")
        assert (await running.wait()).ending is AttemptEnd.STOPPED
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


def test_a_killed_agent_s_successor_has_what_a_job_wrote_into_its_file_lately(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        first = Body(tmp_path)
        running = await first.start(STAY, job=JOB, parameters={"state": "one"})
        await until(lambda: kept(first) == [f"{JOB}.1.1"])
        file = Path(running._space.checkpoint) / "state"
        for number, text in enumerate(("two", "three"), 2):
            file.write_text(text)
            copy = first.state / "checkpoints" / f"{JOB}.1.{number}" / "tree/state"
            await until(lambda copy=copy, text=text: copy.exists() and copy.read_text() == text)
        assert not await in_store(first), "a copy for the store is due in ten minutes"
        await running.stop("enough")
        await running.wait()
        await first.runner.close()

    run(scenario())


#: Saves a checkpoint at its first attempt. At others it leaves that as it was, and may spoil what lies around it.
SAVES_ONCE = 'if [ $MONKEY_ATTEMPT = 1 ]; then echo > "$MONKEY_CHECKPOINT_DIR/state"; else {}; fi; exit 1'


@pytest.mark.parametrize("spoil", ["true", "echo other > ../restored", "rm ../restored; mkdir ../restored"])
def test_a_successor_knows_what_its_predecessor_s_job_left_as_it_was(tmp_path: Path, run: Run, spoil: str) -> None:
    """The history of a checkpoint has no part of an attempt that did not touch it, also if its agent was killed."""

    async def scenario() -> None:
        store, parts = MemoryStore(), []
        job = ["sh", "-c", SAVES_ONCE.format(spoil)]
        for k, since in ((1, 1), (2, 2), (3, 2), (4, 4)):  # the third finds what the second left, and runs nothing
            body = Body(tmp_path, store)
            running = await body.start(job, job=JOB, k=k, ours_since=since)
            parts.append([part.k for part in running._checkpoint.history])
            if k == 2:
                await running.process.ended  # its agent is killed now, before it could record that
                await body.runner._launcher.close()
                continue
            assert (await running.wait()).reason.startswith("exit code 1")
            running.leave(recorded=True)
            await body.runner.close()
        assert parts == [[], [1], [1], [1] if spoil == "true" else [1, 3]]

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


@pytest.mark.slow
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
