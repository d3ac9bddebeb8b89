"""What CI refuses: work on the runner itself, and data that is not the repository's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from monkey.apply.ci_refusals import check_work_stays
from monkey.apply.planning import make_plan, plan_without_store
from monkey.apply.world.desired_state import list_spec_files, read_specs
from monkey.errors import MonkeyError, SpecError
from monkey.plan.change import Plan
from monkey.spec.project.project import load_project
from monkey.spec.project.provider import Provider
from tests.loops import Run
from tests.unit.apply.small_project import SPEC, opened, write_project

DATA = "datasets: {loot: PATH}\n"


@pytest.fixture(autouse=True)
def _ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")


async def plan(root: Path) -> Plan:
    async with opened(root) as world:
        return (await make_plan(world, [])).plan


def test_jobs_of_the_runner_itself_are_not_left_to_it(root: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run(plan(root))
    far = replace(load_project(root), store="s3://bucket/x")
    with pytest.raises(MonkeyError, match="machines that stay for small, found provider 'local', which is this runner"):
        check_work_stays(far, made)
    check_work_stays(replace(far, providers={"local": Provider("ssh")}), made)
    for near in ("/data/store", "file:///data/store", "memory://x"):
        with pytest.raises(MonkeyError, match=r"expected a store that stays, found (/data/store|memory://x)"):
            check_work_stays(replace(far, store=near, providers={"local": Provider("ssh")}), made)
    monkeypatch.setenv("CI", "")
    check_work_stays(load_project(root), made)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository beside a file of the runner's own."""
    (tmp_path / "loot").write_text("hunter2")
    root = tmp_path / "repository"
    write_project(root / "vision")
    (root / ".git").mkdir()
    return root


@pytest.mark.parametrize("path", ["../../loot", "linked", "linked/deep/inner", "../.git/config", "/etc/hostname"])
def test_data_outside_of_the_repository_is_refused_wherever_a_link_leads(repository: Path, path: str) -> None:
    root = repository / "vision"
    (root / "linked" / "deep").mkdir(parents=True)
    (root / "linked" / "deep" / "inner").symlink_to(repository.parent / "loot")
    (repository / ".git" / "config").write_text("token")
    write_project(root, SPEC + DATA.replace("PATH", path))
    with pytest.raises(
        SpecError, match=r"small\.yaml:6:.*dataset 'loot': CI and previews send files of the repository alone"
    ):
        plan_without_store(load_project(root), [str(root / "specs")])


@pytest.mark.parametrize("path", ["../data.csv", "train.py", "linked", "/nowhere/at/all"])
def test_data_of_the_repository_is_taken_and_what_is_not_here_is_no_runners_file(repository: Path, path: str) -> None:
    root = repository / "vision"
    (repository / "data.csv").write_text("1\n")
    (root / "linked").mkdir()
    (root / "linked" / "inner").symlink_to(repository / "data.csv")
    write_project(root, SPEC + DATA.replace("PATH", path))
    project = load_project(root)
    assert len(read_specs(project, list_spec_files(project, [str(root / "specs")]))) == 1
