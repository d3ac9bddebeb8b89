"""An agent in a pod runs jobs of the pod's own image, in place, and leaves all others to other pods."""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from monkey.errors import JobFailed
from monkey.protocol.clock import MachineClock
from monkey.protocol.layout import Keys
from monkey.protocol.sweeps.queue_markers import mark_queue
from monkey.protocol.sweeps.sweep_log import append_revision
from monkey.spec.job.recipe import SweepSettings
from monkey.store.memory import MemoryStore
from monkey_agent.arguments import parse_arguments
from monkey_agent.containers.image_choice import ImageChoice
from monkey_agent.execution.runner import LocalRunner
from monkey_agent.ports import AttemptEnd
from monkey_agent.scheduling.agent_daemon import AgentDaemon
from monkey_agent.scheduling.agent_identity import AgentIdentity
from tests.loops import Run
from tests.signing import SIGNERS
from tests.unit.monkey_agent.body import Body
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

KEYS = Keys("p")
OURS, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


@pytest.mark.parametrize(
    ("own", "taken"), [(None, {"plain", "ours", "other"}), ("", {"plain"}), (OURS, {"ours"}), (OTHER, {"other"})]
)
def test_sweeps_of_other_images_are_left_alone_and_nothing_is_said_of_them(
    own: str | None, taken: set[str], run: Run
) -> None:
    async def main() -> None:
        store = MemoryStore()
        for name, image in (("plain", None), ("ours", OURS), ("other", OTHER)):
            settings = SweepSettings(providers=["f"], image="docker.io/lab/train:1" if image else None)
            recipe = replace(REVISION.recipe, image=image)
            revision = replace(REVISION, sweep=name, recipe=recipe, settings=settings, adopted={})
            await append_revision(store, KEYS, SIGNERS, revision, 0)
            await mark_queue(store, KEYS, ["f"], name, 1)
        identity = AgentIdentity("p", "f", "m", "0", frozenset(), 1.0, images=ImageChoice(own=own))
        body, slots = cast(Any, SimpleNamespace()), cast(Any, SimpleNamespace(lacking="", held_up=""))
        agent = AgentDaemon(store, identity, SIGNERS, MachineClock(), body, slots, random.Random(1))
        assert agent.heart.vitals().get("own_image") == own, "people wait for an agent of each image"
        await agent.queue.look(set())
        assert agent.queue.by_sweep.keys() == taken and not agent.queue.unfit and not agent.queue.alerts
        agent.queue.by_sweep.clear()
        await agent.queue.tidy(set())
        assert not await store.list("projects/p/idle/"), "others have yet to do them"

    run(main())


def test_jobs_of_its_own_image_run_here_without_a_runtime(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path)
        await body.runner.close()
        images = ImageChoice(own=OURS)
        body.runner = LocalRunner(body.store, body.keys, body.state, body.cache, {"PATH": ""}, images=images)
        body.runner.renew(body.runner.clock.now() + 3600)
        settings = {"image": "docker.io/lab/train:1"}
        assert (await body.run(["/bin/true"], image=OURS, settings=settings)).ending is AttemptEnd.SUCCEEDED
        with pytest.raises(JobFailed, match="this machine has none of"):
            await body.run(["/bin/true"], image=OTHER, settings=settings)
        with pytest.raises(JobFailed, match="Dockerfile"):
            await body.run(["/bin/true"], image=OURS, settings=settings, environment={"requirements": "six==1.16"})
        await body.runner.close()

    run(scenario())


def parse(*words: str) -> argparse.Namespace:
    return parse_arguments(["--store", "/s", "--project", "p", *words])


def test_the_argument_is_a_digest_or_none() -> None:
    assert parse().own_image is None and parse("--own-image", "none").own_image == ""
    assert parse("--own-image", OURS).own_image == OURS
    with pytest.raises(SystemExit):
        parse("--own-image", "python:3.12")
