"""A machine with a container runtime, for tests of attempts in containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loops import Run
from tests.unit.monkey_agent.containers.image_body import ImageBody
from tests.unit.monkey_agent.containers.runtime_doubles import Podman


@pytest.fixture
def machine(tmp_path: Path, run: Run) -> Iterator[ImageBody]:
    """Return a machine on which a podman works until it is told otherwise."""

    async def make() -> ImageBody:
        body = ImageBody(tmp_path, Podman(tmp_path))
        await body.begin()
        return body

    body = run(make())
    yield body
    run(body.runner.close())
    run(body.runner.telemetry.close())
