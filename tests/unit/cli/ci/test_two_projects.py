"""Two projects of one repository: the forge takes no job of one for a job of the other."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import MonkeyError
from tests.ci_clone import MACHINES, Clone
from tests.ci_linters import lint_workflows, list_gitlab_jobs

#: Directories whose slugs could be one: of another case, or with a sign that a slug lacks.
DIRECTORIES = (".", "p1", "P1", "a/b", "a--b", "a-b", "a b", "a.b", "drift", "plan", "p1-drift", "p1.drift")


def list_groups(workflow: dict[str, Any]) -> set[str]:
    """Return the concurrency groups; GitHub's names have no case."""
    return {job["concurrency"]["group"].lower() for job in workflow["jobs"].values() if "concurrency" in job}


@pytest.mark.needs("actionlint")
@pytest.mark.parametrize("forge", ["github", "gitea"])
def test_projects_share_no_file_no_name_and_no_group(clone: Clone, forge: str) -> None:
    for directory in DIRECTORIES:
        done = clone.init(forge, MACHINES["lab"], at=directory)
        assert done.exit_code == 0 and "Kept" not in done.stderr, (directory, done.stderr)
    files = sorted((clone.root / f".{forge}/workflows").iterdir())
    assert len(files) == len({file.name.lower() for file in files}) == len(DIRECTORIES) * (2 if forge == "gitea" else 1)
    read = [clone.read(file.relative_to(clone.root).as_posix()) for file in files]
    assert len({workflow["name"] for workflow in read}) == len(files)
    for one, other in itertools.combinations(map(list_groups, read), 2):
        assert not one & other
    assert lint_workflows(files) == ""


def test_a_project_in_a_directory_has_it_in_all_names(clone: Clone) -> None:
    clone.init("github", MACHINES["lab"], at="p2")
    workflow = clone.read(".github/workflows/monkey-p2.yml")
    assert workflow["name"] == "monkey in p2"
    assert all(group.startswith("monkey-p2-") for group in list_groups(workflow))
    assert len(list_groups(workflow)) == 4


def parse_jobs(clone: Clone, name: str) -> dict[str, Any]:
    """Return the jobs of a file of GitLab's and their parts."""
    return {key: value for key, value in clone.read(name).items() if key not in ("stages", "workflow", "include")}


def test_gitlab_merges_no_two_jobs(clone: Clone) -> None:
    assert "Wrote .gitlab-ci.yml." in clone.init("gitlab", MACHINES["lab"], at="p1").stderr
    second = clone.init("gitlab", MACHINES["ssh"], at="p2", package=("--package", "monkey-sweep[ssh] @ x"))
    assert "Kept .gitlab-ci.yml." in second.stderr and "Give it these lines" not in second.stdout
    one, two = (parse_jobs(clone, f".gitlab/monkey-{name}.yml") for name in ("p1", "p2"))
    assert one and not set(one) & set(two) and "apply-p1" in one and "apply-p2" in two
    groups = [{job["resource_group"] for job in jobs.values() if "resource_group" in job} for jobs in (one, two)]
    assert len(groups[0]) == 3 and not groups[0] & groups[1]
    assert two[".job-p2"]["variables"]["MONKEY_PACKAGE"] == "monkey-sweep[ssh] @ x", "each installs what it needs"
    assert two["plan-p2"]["extends"] == ".job-p2"


def test_a_pipeline_of_others_stays_and_the_script_names_what_it_lacks(clone: Clone) -> None:
    (clone.root / ".gitlab-ci.yml").write_text("build: {script: make}\n")
    done = clone.init("gitlab", MACHINES["lab"], at="p2")
    assert done.exit_code == 0 and "Wrote .gitlab/monkey-p2.yml." in done.stderr
    assert (clone.root / ".gitlab-ci.yml").read_text() == "build: {script: make}\n"
    assert "#     - local: /.gitlab/monkey-*.yml" in done.stdout and ":/.gitlab-ci.yml" not in done.stdout


@pytest.mark.slow
@pytest.mark.needs("gitlab-ci-local")
@pytest.mark.parametrize(("first", "jobs"), [("p1", ["apply-p1", "apply-p2"]), (".", ["apply", "apply-p2"])])
def test_gitlab_s_schema_holds_and_both_projects_run(clone: Clone, first: str, jobs: list[str]) -> None:
    for directory in (first, "p2"):
        done = clone.init("gitlab", MACHINES["lab"], "--branch", "trunk", at=directory)
        assert done.exit_code == 0
    # What a person does with the lines that the script names.
    given = [line for line in re.findall("^#   (.*)", done.stdout, re.MULTILINE) if "stages:" not in line]
    assert bool(given) is (first == ".")
    file = clone.root / ".gitlab-ci.yml"
    file.write_text("\n".join([*given, file.read_text()]))
    clone.git("add", ".")
    clone.git("-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "ci")
    assert sorted(list_gitlab_jobs(clone.root, CI_PIPELINE_SOURCE="push", CI_COMMIT_BRANCH="trunk")) == jobs


@pytest.mark.parametrize("forge", ["github", "gitea", "gitlab"])
def test_what_a_fork_installs_is_no_variable(clone: Clone, forge: str) -> None:
    """A fork's job gets no variable of the repository."""
    clone.init(forge, MACHINES["lab"], package=("--package", "monkey-sweep @ git+https://h/o/m@1"))
    texts = [path.read_text() for path in clone.root.rglob("*.yml") if path.name != "monkey.yaml"]
    assert texts and all('MONKEY_PACKAGE: "monkey-sweep @ git+https://h/o/m@1"' in text for text in texts)


def test_a_package_that_only_the_user_knows_is_asked_for(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As an index's: the installer wrote down no address.
    about = tmp_path / "site/monkey_sweep-9.dist-info/METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: monkey-sweep\nVersion: 9\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    refused = clone.init("github", MACHINES["lab"], package=())
    assert isinstance(refused.exception, MonkeyError)
    assert "expected to know what pip installs in CI" in str(refused.exception)
    assert re.search(r"--package 'monkey-sweep\[ssh\] @ git\+https://", str(refused.exception.hint))
    assert not (clone.root / ".github").exists()
