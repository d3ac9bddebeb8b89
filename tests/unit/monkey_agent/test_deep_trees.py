"""Directories that a job nests deeper than any path may be long: left out with a word, and a hindrance to nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.errors import PlanError
from monkey.removal import remove_tree
from monkey.transfer.code.code_snapshot import read_code
from monkey_agent.cache.eviction import measure_disk_usage
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.nested import NEST, nest
from tests.unit.monkey_agent.body import Body


@pytest.fixture
def nester(tmp_path: Path) -> str:
    """Return the command that nests directories: NESTER DIRECTORY DEPTH."""
    (tmp_path / "nest.py").write_text(NEST)
    return f"{sys.executable} {tmp_path}/nest.py"


@pytest.mark.parametrize("depth", [1_500, 3_000])
@pytest.mark.parametrize("where", ["$MONKEY_OUTPUT_DIR", "."])
def test_outputs_that_lie_too_deep_are_left_out_with_a_word(
    body: Body, run: Run, nester: str, where: str, depth: int
) -> None:
    async def scenario() -> None:
        command = f"echo good > {where}/good; {nester} {where} {depth}"
        running = await body.start(["sh", "-c", command], outputs=["**"])
        outcome = await running.wait()
        assert (outcome.ending, list(outcome.outputs)) == (AttemptEnd.SUCCEEDED, ["good"])
        left = await body.stored(running)
        running.leave(recorded=True)
        said = left["log/000000"].decode()
        assert left["outputs/good"] == b"good\n" and said.count("kept") == 1, said
        assert "more than 800 bytes" in said

    run(scenario())


@pytest.mark.parametrize("depth", [1_500, 3_000])
def test_a_checkpoint_that_is_too_deep_is_removed_with_its_job(
    body: Body, run: Run, nester: str, depth: int, tmp_path: Path
) -> None:
    async def scenario() -> None:
        command = f"{nester} $MONKEY_CHECKPOINT_DIR {depth}; exit 3"
        assert (await body.run(["sh", "-c", command], job="a" * 16)).reason == "exit code 3"
        again = await body.run(["sh", "-c", "echo $MONKEY_ATTEMPT"], job="a" * 16, k=3)
        assert again.ending is AttemptEnd.SUCCEEDED
        assert b"'d/d/d" in (said := (await body.stored("a" * 16))["log/000000"]) and b"it lies too deep" in said

    run(scenario())
    run(body.runner.close())
    assert LocalCheckpoints(tmp_path / "state").jobs == []


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """Return a directory, and remove it at the end: pytest cannot, where directories are nested so deep."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    yield place
    assert remove_tree(str(place))


@pytest.mark.parametrize("where", ["$MONKEY_METRICS_DIR", "$MONKEY_METRICS_DIR/..", "$TMPDIR", "$HOME"])
def test_deep_directories_elsewhere_cost_their_job_nothing(
    body: Body, run: Run, nester: str, elsewhere: Path, where: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        env = {"TMPDIR": str(elsewhere), "HOME": str(elsewhere)}
        done = await body.run(["sh", "-c", f"{nester} {where} 1500"], job="a" * 16, env=env)
        assert done.ending is AttemptEnd.SUCCEEDED, done.reason
        assert (await body.run("true")).ending is AttemptEnd.SUCCEEDED

    run(scenario())
    run(body.runner.close())
    assert not list((tmp_path / "state").rglob("d/d")), "nothing of it is left"


@pytest.mark.parametrize("depth", [1_500, 3_000])
def test_deep_directories_in_the_cache_are_measured(elsewhere: Path, depth: int) -> None:
    """What sets an environment up can nest directories there."""
    nest(elsewhere / "entry", depth)
    assert measure_disk_usage(str(elsewhere / "entry")) >= 0


def test_deep_directories_of_a_project_are_refused_in_words(elsewhere: Path) -> None:
    nest(elsewhere / "entry", 1_010)
    with pytest.raises(PlanError, match="deeper than 256 directories"):
        read_code(elsewhere)
