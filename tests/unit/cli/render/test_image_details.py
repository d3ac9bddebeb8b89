"""`monkey info` shows the image of a job: its name, and the digest that its jobs are pinned to."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.cli.render.job_details import format_job_details, format_sweep_details, serialize_job_details
from monkey.cli.terminal.text import Terminal
from tests.unit.apply.small_project import SPEC, apply, opened, write_project

DIGEST = f"sha256:{'0a' * 32}"
PINNED = f"docker.io/library/python@{DIGEST}"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (None, PINNED),
        ("docker.io/library/python:3.12", f"docker.io/library/python:3.12 ({DIGEST})"),
    ],
    ids=["digest in the spec", "tag in the spec"],
)
def test_image_has_its_digest(tmp_path: Path, name: str | None, shown: str) -> None:
    write_project(tmp_path, f"{SPEC}environment: {{image: 'python@{DIGEST}'}}\n")

    async def main() -> None:
        async with opened(tmp_path) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            snapshot = await world.reader().read()
            view = snapshot.sweeps["small"]
            revision = view.state.revision
            assert revision is not None
            if name:  # as an apply records a tag, without a registry to ask
                settings = replace(revision.settings, image=name)
                view.state = replace(view.state, revision=replace(revision, settings=settings))
            about = format_job_details(view, job, [], world.keys, "/store", Terminal())
            sweep = format_sweep_details(view, snapshot, Terminal())
            for lines in (about, sweep):
                assert [line for line in lines if "sha256" in line] == [f"image       {shown}"]
            told = {"name": name or PINNED, "digest": DIGEST}
            assert serialize_job_details(view, job, [])["image"] == told

    asyncio.run(main())


def test_settings_are_shown_as_a_spec_has_them(tmp_path: Path) -> None:
    settings = "expires: 36h\ntimeout: 90m\nresources: {memory: 2GiB, cpus: 2}\nstop_when: [{metric: loss, is: nan}]\n"
    write_project(tmp_path, SPEC + settings)

    async def main() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            snapshot = await world.reader().read()
            told = ["timeout 1h 30m", "resources.cpus 2", "resources.memory 2 GiB"]
            told += ["stop_when loss is nan", "expires 1d12h"]
            lines = format_sweep_details(snapshot.sweeps["small"], snapshot, Terminal())
            [shown] = [line for line in lines if line.startswith("settings")]
            assert shown == f"settings    {', '.join(told)}"

    asyncio.run(main())


def test_without_an_image_nothing_is_shown(tmp_path: Path) -> None:
    write_project(tmp_path)

    async def main() -> None:
        async with opened(tmp_path) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            view = (await world.reader().read()).sweeps["small"]
            assert "image" not in str(format_job_details(view, job, [], world.keys, "/store", Terminal()))
            assert serialize_job_details(view, job, [])["image"] is None

    asyncio.run(main())
