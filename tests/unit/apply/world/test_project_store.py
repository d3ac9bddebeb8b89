"""Where the store is: a place that cannot be one is told by `plan` already, with the line that names it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.apply.planning import make_plan
from monkey.apply.world.world import open_world
from monkey.errors import SpecError, StoreRefused
from monkey.spec.project.project import load_project
from tests import services
from tests.bucket import FakeBucket
from tests.unit.apply.small_project import write_project


async def plan(root: Path) -> None:
    """Open the project, and plan."""
    async with open_world(load_project(root)) as world:
        await make_plan(world, [])


def store_at(root: Path, place: str) -> None:
    write_project(root)
    (root / "monkey.yaml").write_text(f"project: test\nstore: {place}\n")


@pytest.mark.parametrize(
    ("place", "where", "said"),
    [
        ("s4://bucket/prefix", (2, 8), "expected a directory or a URL with file://, s3://"),
        ("s3://bucket?regoin=eu-west-1", (2, 8), "no option 'regoin'"),
        ("ssh://host", (2, 8), "expected a directory after the host"),
        ("{url: 's3://me:secret@bucket/x'}", (2, 14), "it has credentials in it"),
    ],
)
def test_a_wrong_url_is_told_with_its_line(tmp_path: Path, place: str, where: tuple[int, int], said: str) -> None:
    store_at(tmp_path, place)
    with pytest.raises(SpecError) as caught:
        asyncio.run(plan(tmp_path))
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == ("monkey.yaml", *where)
    assert said in problem.message and problem.hint and "secret" not in problem.message


def full_directory(root: Path, request: pytest.FixtureRequest) -> str:
    """Return a directory with something in it."""
    (root / "papers").mkdir()
    (root / "papers" / "thesis.tex").touch()
    return str(root / "papers")


def full_host(root: Path, request: pytest.FixtureRequest) -> str:
    """Return such a directory on a host."""
    request.getfixturevalue("ssh_host")
    return f"ssh://there{full_directory(root, request)}"


def full_bucket(root: Path, request: pytest.FixtureRequest) -> str:
    """Return a bucket with something in it."""
    bucket: FakeBucket = request.getfixturevalue("bucket")
    bucket.objects.put("papers/thesis.tex", b"", if_absent=False)
    return bucket.url(prefix="papers")


@pytest.mark.parametrize("full", [full_directory, full_host, full_bucket])
def test_a_place_of_something_else_is_refused_by_plan(
    tmp_path: Path, full: Callable[[Path, pytest.FixtureRequest], str], request: pytest.FixtureRequest
) -> None:
    store_at(tmp_path, full(tmp_path, request))
    with pytest.raises(StoreRefused, match=r"found .*'thesis\.tex'") as caught:
        asyncio.run(plan(tmp_path))
    assert caught.value.hint


def test_an_endless_name_is_told_in_a_line(tmp_path: Path) -> None:
    store_at(tmp_path, "x" * 5000)
    with pytest.raises(StoreRefused, match="too long") as caught:
        asyncio.run(plan(tmp_path))
    assert len(caught.value.message) < 400


def test_a_bucket_of_a_real_server_that_is_not_there_is_no_missing_store(tmp_path: Path, moto: str) -> None:
    store_at(tmp_path, f"s3://nowhere/x?endpoint={moto}")
    with pytest.raises(StoreRefused, match="there is no bucket 'nowhere'"):
        asyncio.run(plan(tmp_path))
    store_at(tmp_path, f"s3://{services.BUCKET}/{tmp_path.name}?endpoint={moto}")
    asyncio.run(plan(tmp_path))
