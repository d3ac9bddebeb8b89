"""Environments that an image's Python makes: what of the agent the runtime gets to hand on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.processes import process_tree
from monkey_agent.cache.cache import Cache
from monkey_agent.containers.container_environment import VENV, ContainerEnvironmentPool
from monkey_agent.containers.container_sweep import ContainerSweeper
from tests.loops import Run

#: A runtime that says what files it has open: any of them may reach the image.
_RUNTIME = '#!/bin/sh\nls -l "/proc/$$/fd" >"{venv}/open"\n'


@pytest.mark.skipif(not process_tree.HAS_PROC, reason="needs /proc")
def test_an_image_gets_no_descriptor_of_its_entrys_lock(tmp_path: Path, run: Run) -> None:
    wanted = {"runtime": "apptainer", "image": "x.sif", "name": "x", "digest": "sha256:0", "labels": ""}
    wanted["program"] = str(tmp_path / "apptainer")
    entry = tmp_path / "environments" / ContainerEnvironmentPool.name_entry(wanted)
    (tmp_path / "apptainer").write_text(_RUNTIME.format(venv=entry / VENV))
    (tmp_path / "apptainer").chmod(0o755)

    sweeper = ContainerSweeper(tmp_path, os.environ)

    async def scenario() -> None:
        _, use = await ContainerEnvironmentPool(Cache(tmp_path), os.environ, sweeper).use(wanted)
        use.close()

    run(scenario())
    found = (entry / VENV / "open").read_text()
    assert f"{entry}.log" in found, "the log of the build is open"
    assert f"{entry}.lock" not in found and f"{entry}.use" not in found


def test_an_image_cannot_have_the_agent_write_the_setup_elsewhere(tmp_path: Path, run: Run) -> None:
    """By charliecloud an image can write to directories that it should only read."""
    wanted = {"runtime": "charliecloud", "image": str(tmp_path / "x"), "name": "x", "digest": "sha256:0", "labels": ""}
    wanted |= {"program": str(tmp_path / "ch-run"), "setup": "echo from the spec\n"}
    entry = tmp_path / "environments" / ContainerEnvironmentPool.name_entry(wanted)
    victim = tmp_path / "victim"
    victim.write_text("the user's own")
    (tmp_path / "x").mkdir()
    (tmp_path / "ch-run").write_text(f'#!/bin/sh\nln -sf "{victim}" "{entry}/asked/setup.sh"\n')
    (tmp_path / "ch-run").chmod(0o755)
    sweeper = ContainerSweeper(tmp_path, os.environ)

    async def scenario() -> None:
        _, use = await ContainerEnvironmentPool(Cache(tmp_path), os.environ, sweeper).use(wanted)
        use.close()

    run(scenario())
    assert (entry / "asked/setup.sh").is_symlink() and victim.read_text() == "the user's own"


def test_the_setup_is_part_of_an_entrys_name_and_an_entry_without_one_keeps_its_own() -> None:
    wanted = {"digest": "sha256:0", "requirements": "numpy==2.0.0\n"}
    names = [ContainerEnvironmentPool.name_entry({**wanted, "setup": setup}) for setup in ("", "make", "make all")]
    assert ContainerEnvironmentPool.name_entry(wanted) == names[0]
    assert len(set(names)) == 3
