"""Jobs that put a link in place of a directory of theirs: what is behind it is nobody's business."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.checkpoints.restore import restore_checkpoint
from monkey_agent.ports import AttemptEnd
from monkey_agent.supervisor.process import ProcessExit
from tests.loops import Run
from tests.precious import MARK, Precious
from tests.unit.monkey_agent.body import NEVER, Body, until
from tests.unit.monkey_agent.saving_jobs import COUNT, JOB, OFTEN, in_store
from tests.unit.monkey_agent.telemetry.test_spooling import NOWHERE, waiting

#: Each directory that a job can replace, by the name that it has in the reason: how a shell says it.
PLACES = {
    "MONKEY_OUTPUT_DIR": "$MONKEY_OUTPUT_DIR",
    "MONKEY_CHECKPOINT_DIR": "$MONKEY_CHECKPOINT_DIR",
    "MONKEY_METRICS_DIR": "$MONKEY_METRICS_DIR",
    "its working directory": "$PWD",
    "the directory above MONKEY_OUTPUT_DIR": "$(dirname $MONKEY_OUTPUT_DIR)",
}
EACH = pytest.mark.parametrize("name", PLACES)


@pytest.fixture
def precious(tmp_path: Path) -> Precious:
    return Precious(tmp_path / "precious")


def replacing(name: str, target: Path, then: str = "exit 0") -> list[str]:
    """Return a job that puts a link to `target` in place of a directory, and then does something."""
    return ["sh", "-c", f'D="{PLACES[name]}"; mv "$D" "$D.moved" && ln -s {target} "$D"; {then}']


def reason(name: str, precious: Precious) -> str:
    return f"{name} was replaced by a link to {precious.root}, so nothing in it is kept"


async def left_alone(body: Body, precious: Precious) -> None:
    """See that nothing of what is precious was changed, is kept here or in the store, or is to be sent."""
    await body.runner.close()
    precious.check(body.state)
    assert not list((body.state / "trash").iterdir())
    assert MARK not in b"".join([await body.store.get(item.key) for item in await body.store.list("")])
    assert b"mine" not in waiting(body)


@EACH
def test_what_is_behind_a_link_is_left_alone_and_the_job_fails(
    body: Body, run: Run, precious: Precious, name: str
) -> None:
    async def scenario() -> None:
        running = await body.start(replacing(name, precious.root), outputs=["*"], settings=NOWHERE)
        outcome = await running.wait()
        running.leave(recorded=True)
        after = await body.run('echo > "$MONKEY_OUTPUT_DIR/new"; echo > made', outputs=["*"], settings=NOWHERE)
        await left_alone(body, precious)
        assert (after.ending, list(after.outputs)) == (AttemptEnd.SUCCEEDED, ["made", "new"])
        assert (outcome.ending, outcome.exit_code) == (AttemptEnd.FAILED, 0)
        assert outcome.reason.startswith(reason(name, precious)) and "(hint: " in outcome.reason
        assert (outcome.outputs, outcome.summary) == ({}, {})

    run(scenario())


@EACH
def test_a_job_that_stays_without_its_directory_is_ended(body: Body, run: Run, precious: Precious, name: str) -> None:
    async def scenario() -> None:
        settings = {**OFTEN, **NOWHERE, "timeout": NEVER, "grace": 0.5}
        running = await body.start(replacing(name, precious.root, "exec sleep 1000"), settings=settings, job=JOB)
        outcome = await running.wait()
        running.leave(recorded=True)
        await left_alone(body, precious)
        assert (outcome.ending, outcome.exit_code) == (AttemptEnd.FAILED, 143)
        assert outcome.reason.startswith(reason(name, precious))

    run(scenario())


@EACH
def test_a_successor_leaves_it_alone(tmp_path: Path, run: Run, precious: Precious, name: str) -> None:
    """An agent that is killed before it could record how the job exited."""

    async def scenario() -> None:
        first = Body(tmp_path / "agent")
        running = await first.start(replacing(name, precious.root), outputs=["*"], settings=NOWHERE, job=JOB)
        await running.process.ended
        await first.runner.close()
        await first.runner.telemetry.close()
        second = Body(tmp_path / "agent", first.store)
        precious.check()
        again = {"job": JOB, "k": 2, "ours_since": 1, "outputs": ["*"], "settings": NOWHERE}
        outcome = await second.run(replacing(name, precious.root), **again)
        await left_alone(second, precious)
        assert (outcome.ending, outcome.outputs) == (AttemptEnd.FAILED, {})
        assert outcome.reason.startswith(reason(name, precious))
        await second.runner.telemetry.close()

    run(scenario())


def test_the_reason_that_a_job_gave_itself_comes_first(body: Body, run: Run, precious: Precious) -> None:
    outcome = run(body.run(replacing("MONKEY_OUTPUT_DIR", precious.root, "exit 3")))
    assert (outcome.ending, outcome.exit_code) == (AttemptEnd.FAILED, 3)
    assert outcome.reason.startswith(f"exit code 3; {reason('MONKEY_OUTPUT_DIR', precious)}")


def test_all_else_is_kept_and_the_next_attempt_has_its_checkpoint(body: Body, run: Run, precious: Precious) -> None:
    saves = 'cat "$MONKEY_CHECKPOINT_DIR/state"; echo half > "$MONKEY_CHECKPOINT_DIR/state"; echo > made; '
    job = replacing("MONKEY_OUTPUT_DIR", precious.root, saves + "exec sleep 1000")

    async def scenario() -> None:
        settings = {**OFTEN, "timeout": NEVER, "grace": 0.5}
        for k, found in ((1, "No such file"), (2, "half")):
            running = await body.start(job, job=JOB, k=k, outputs=["made"], settings=settings)
            outcome = await running.wait()
            assert outcome.reason.startswith("MONKEY_OUTPUT_DIR was replaced")
            assert list(outcome.outputs) == ["made"] and found in "\n".join(outcome.log_tail)
            running.leave(recorded=True)
        assert b"half\n" in (await in_store(body)).values()
        await left_alone(body, precious)

    run(scenario())


def test_no_checkpoint_is_put_behind_a_link(body: Body, run: Run, tmp_path: Path, precious: Precious) -> None:
    link = tmp_path / "attempts" / "link"
    link.parent.mkdir()
    link.symlink_to(precious.root)
    assert run(body.run(COUNT, job=JOB)).ending is AttemptEnd.FAILED
    for kept in (body.runner.checkpoints.kept, LocalCheckpoints(tmp_path / "elsewhere")):
        with pytest.raises(NotADirectoryError):
            run(restore_checkpoint(body.store, body.keys, kept, JOB, str(link)))
        precious.check()


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("ln -s $(printf '/nowhere/\\377\\033[2J') $D", "a link to /nowhere/\\xff\x1b[2J,"),
        ("echo >$D", "what is no directory,"),
        ("mkfifo $D", "what is no directory,"),
    ],
)
def test_whatever_is_there_is_told(body: Body, run: Run, made: str, found: str) -> None:
    for each in ("MONKEY_OUTPUT_DIR", "MONKEY_CHECKPOINT_DIR", "MONKEY_METRICS_DIR"):
        outcome = run(body.run(f"D=${each}; rmdir $D; {made}", settings=NOWHERE))
        assert (outcome.ending, outcome.exit_code) == (AttemptEnd.FAILED, 0)
        assert outcome.reason.startswith(f"{each} was replaced by {found} so nothing") and outcome.reason.encode()


def test_a_directory_that_was_removed_is_none_that_was_replaced(body: Body, run: Run) -> None:
    for each in PLACES.values():
        outcome = run(body.run(f'rm -r "{each}"', outputs=["*"], settings=NOWHERE))
        assert (outcome.ending, outcome.reason, outcome.outputs) == (AttemptEnd.SUCCEEDED, "", {})


def test_who_could_not_be_killed_is_not_beside_the_next(
    body: Body, run: Run, tmp_path: Path, precious: Precious
) -> None:
    """It lives on in its workspace, and puts a link there; the next job would write through that."""
    go, done = tmp_path / "go", tmp_path / "done"
    survivor = (
        f"set +e; touch {done}.begun; until test -e {go}; do sleep 0.01; done;"
        f" rmdir ../outputs; ln -s {precious.root} ../outputs; touch {done}; exec sleep 1000"
    )

    async def scenario() -> None:
        running = await body.start(survivor)
        await until(Path(f"{done}.begun").exists)
        running.process.end(
            ProcessExit("ended", left=1)
        )  # as the supervisor says it of a process that waits for a dead disk
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        running.leave(recorded=True)
        writes = f'touch {go}; until test -e {done}; do sleep 0.01; done; echo mine > "$MONKEY_OUTPUT_DIR/thesis.tex"'
        outcome = await body.run(writes)
        await left_alone(body, precious)
        assert (outcome.ending, list(outcome.outputs)) == (AttemptEnd.SUCCEEDED, ["thesis.tex"])

    run(scenario())
