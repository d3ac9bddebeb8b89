"""A new order of a sweep, such as a retry, has what failed before tried again, once for all jobs that it opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import JobFailed
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body
from tests.unit.monkey_agent.containers.image_body import ImageBody
from tests.unit.monkey_agent.containers.runtime_doubles import fail
from tests.unit.monkey_agent.trees import FILES, send


def test_an_image_that_could_not_be_pulled_is_pulled_at_once(machine: ImageBody, tmp_path: Path, run: Run) -> None:
    pulls = tmp_path / "pulls"
    refused = f"echo once >> {pulls}\n" + fail(125, "Error: manifest unknown")

    async def scenario() -> None:
        machine.podman.pulls(refused)
        for _ in range(2):
            with pytest.raises(JobFailed, match="manifest unknown"):
                await machine.run(["/bin/true"], ordered=1)
        assert pulls.read_text().count("once") == 1
        for _ in range(2):
            with pytest.raises(JobFailed, match="manifest unknown"):
                await machine.run(["/bin/true"], ordered=2)
        assert pulls.read_text().count("once") == 2
        machine.podman.pulls("")
        with pytest.raises(JobFailed, match="manifest unknown"):
            await machine.run(["/bin/true"], ordered=1)
        assert (await machine.run(["/bin/true"], ordered=3)).ending is AttemptEnd.SUCCEEDED

    run(scenario())


@pytest.mark.slow
def test_a_setup_that_failed_in_an_image_is_run_at_once(machine: ImageBody, tmp_path: Path, run: Run) -> None:
    asked = {"setup": f"echo once >> {tmp_path}/builds; test -e {tmp_path}/cause-removed"}

    async def scenario() -> None:
        for _ in range(2):
            with pytest.raises(JobFailed, match="set the environment up"):
                await machine.run(["/bin/true"], environment=asked, ordered=1)
        (tmp_path / "cause-removed").touch()
        assert (await machine.run(["/bin/true"], environment=asked, ordered=2)).ending is AttemptEnd.SUCCEEDED
        assert (tmp_path / "builds").read_text().count("once") == 2

    run(scenario())


def test_a_dataset_that_could_not_be_kept_is_fetched_at_once(body: Body, run: Run) -> None:
    async def scenario() -> None:
        oid = await send(body.store, FILES)
        datasets = {"d": oid}
        in_the_way = body.cache / f"datasets/trees/{oid}.lock"
        in_the_way.mkdir(parents=True)
        with pytest.raises(JobFailed, match="cannot be kept here"):
            await body.run("true", datasets=datasets, ordered=1)
        in_the_way.rmdir()
        assert (await body.run("true", datasets=datasets, ordered=2)).ending is AttemptEnd.SUCCEEDED

    run(scenario())
