"""The project's name where monkey.yaml gives none: its repository and its directory may be renamed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monkey.fleet.machine_capacity import measure_capacity
from tests.acceptance.shop import Shop, until
from tests.git_command import git


@pytest.fixture
def paper(shop: Shop) -> Shop:
    """Return a project whose monkey.yaml names none, in a git repository of its own: it is called "project"."""
    (shop.root / "monkey.yaml").unlink()
    (shop.root / ".gitignore").write_text(".monkey/\n")
    git(shop.root, "init", "-q")
    shop.spec()
    _commit(shop.root)
    return shop


def _commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "work")


def _share_store(shop: Shop) -> None:
    """Have all checkouts use one store, as people who share a bucket do."""
    shop.env["MONKEY_STORE"] = str(shop.root.parent / "shared")


def _clone(shop: Shop, name: str, origin: str) -> None:
    """Go on in a fresh clone, whose remote has this URL."""
    there = shop.root.parent / name
    git(shop.root.parent, "clone", "-q", str(shop.root), str(there))
    git(there, "remote", "set-url", "origin", origin)
    shop.root = there


def test_a_checkout_keeps_its_project_whatever_is_renamed(paper: Shop) -> None:
    paper.run("apply")
    here = paper.root
    for step in (
        ["remote", "add", "origin", "git@example.org:me/cool-paper.git"],
        ["remote", "set-url", "origin", "git@example.org:me/cool-paper-v2.git"],
        ["remote", "remove", "origin"],
    ):
        git(paper.root, *step)
        plan = paper.run("plan", "--detailed-exitcode").stdout
        assert "4 kept" in plan
        assert ("write `project: project`" in plan) == (step[1] != "remove")
        assert len(paper.json("results", "sweep")) == 4
    paper.root = here.rename(here.with_name("moved"))
    assert "4 kept" in paper.run("plan", "--detailed-exitcode").stdout
    assert len(paper.json("results", "sweep")) == 4
    paper.run("apply")
    assert paper.ledger.executions == 4


def test_what_runs_is_cancelled_and_never_runs_twice_after_a_remote_was_added(paper: Shop) -> None:
    paper.ledger.hold()
    paper.run("apply", "--detach")
    until(lambda: paper.jobs, "a job runs")
    git(paper.root, "remote", "add", "origin", "git@example.org:me/paper.git")
    assert "Nothing to change" in paper.run("apply", "--detach").stdout
    paper.run("cancel", "sweep")
    until(lambda: not paper.jobs, "its jobs are ended")
    assert not paper.ledger.overlaps


def test_a_checkout_that_applied_before_names_were_remembered_learns_its_own(paper: Shop) -> None:
    paper.run("apply")
    memo = paper.root / ".monkey" / "stores.json"
    known = json.loads(memo.read_text())
    assert known.pop("project") == "project"
    memo.write_text(json.dumps(known))
    paper.run("apply")
    git(paper.root, "remote", "add", "origin", "git@example.org:me/cool-paper.git")
    assert "4 kept" in paper.run("plan").stdout


def test_a_project_file_wins_and_is_not_remembered(paper: Shop) -> None:
    paper.run("apply")
    (paper.root / "monkey.yaml").write_text("project: other\n")
    plan = paper.run("plan").stdout
    assert "4 new" in plan
    assert "project 'other' has no sweep in this store yet" in plan and "'project'" in plan
    paper.run("apply")
    assert paper.ledger.executions == 8
    assert "no sweep in this store" not in paper.run("plan").stdout
    (paper.root / "monkey.yaml").unlink()
    assert json.loads((paper.root / ".monkey" / "stores.json").read_text())["project"] == "project"
    assert "4 kept" in paper.run("plan").stdout


@pytest.mark.slow
def test_jobs_of_a_checkout_that_moves_run_again_at_the_new_place(paper: Shop) -> None:
    """The old agent holds the machine with frozen jobs; it ends them once they may be another's."""
    paper.ledger.hold()
    paper.spec(f"resources: {{cpus: {measure_capacity().cpus / 2}}}\n", jobs=2)
    paper.run("apply", "--detach")
    until(lambda: paper.ledger.executions == 2, "both jobs run")
    jobs, (agent,) = paper.jobs, paper.agents
    before = paper.root
    paper.root = before.rename(paper.root.with_name("moved"))
    paper.run("apply", "--detach")
    assert f"it was moved here from {before}/.monkey/store" in paper.run("doctor").stdout
    until(lambda: paper.ledger.executions == 4, "both jobs run again", patience=300, step=1)
    assert not {agent, *jobs} & {*paper.agents, *paper.jobs}
    paper.ledger.release()
    until(lambda: paper.states() == {"succeeded": 2}, "both succeed", step=1)
    assert not paper.ledger.overlaps
    assert "was moved or removed" in paper.agent_log


def test_a_plan_writes_nothing(paper: Shop) -> None:
    _share_store(paper)
    paper.run("apply")
    _clone(paper, "second", "git@example.org:me/project.git")
    assert "4 kept" in paper.run("plan").stdout
    assert not (paper.root / ".monkey").exists()


@pytest.mark.parametrize("own", [True, False], ids=["default store", "shared store"])
def test_a_renamed_repository_without_a_memory_is_stopped_with_both_names(paper: Shop, own: bool) -> None:
    if not own:
        _share_store(paper)
    paper.run("apply")
    if own:
        (paper.root / ".monkey" / "stores.json").unlink()
        git(paper.root, "remote", "add", "origin", "git@example.org:me/cool-paper.git")
    else:
        _clone(paper, "second", "git@example.org:me/cool-paper.git")
    for verb, code in ((["plan"], 1), (["apply"], 1), (["run", "true"], 125)):
        said = paper.run(*verb, code=code).stderr
        assert "'cool-paper'" in said and "'project'" in said
        assert "`project: project`" in said and "`project: cool-paper`" in said
    assert paper.ledger.executions == 4
    (paper.root / "monkey.yaml").write_text("project: project\n")
    assert "4 kept" in paper.run("plan").stdout
    (paper.root / "monkey.yaml").write_text("project: cool-paper\n")
    assert "4 new" in paper.run("plan").stdout


def test_a_shallow_clone_in_ci_is_stopped_as_well(paper: Shop) -> None:
    _share_store(paper)
    paper.run("apply")
    (paper.root / "README.md").write_text("later\n")
    _commit(paper.root)
    origin = paper.root.rename(paper.root.with_name("cool-paper"))
    paper.root = origin.with_name("runner")
    git(origin, "clone", "-q", "--depth=1", origin.as_uri(), str(paper.root))
    paper.env["CI"] = "1"
    assert "`project: project`" in paper.run("plan", code=1).stderr


def test_repositories_that_share_a_store_and_a_spec_do_not_hinder_each_other(paper: Shop) -> None:
    _share_store(paper)
    paper.run("apply")
    other = paper.root.with_name("second")
    other.mkdir()
    for name in ("job.py", "specs/sweep.yaml"):
        (other / name).parent.mkdir(exist_ok=True)
        (other / name).write_bytes((paper.root / name).read_bytes())
    git(other, "init", "-q")
    (other / "README.md").write_text("another repository\n")
    _commit(other)
    paper.root = other
    assert "4 new" in paper.run("plan").stdout


def test_projects_in_directories_of_one_repository_do_not_hinder_each_other(paper: Shop) -> None:
    _share_store(paper)
    top = paper.root
    for name in ("one", "two"):
        (top / name / "specs").mkdir(parents=True)
        (top / name / "monkey.yaml").write_text("providers: {local: {idle_timeout: 1s}}\n")
        for file in ("job.py", "specs/sweep.yaml"):
            (top / name / file).write_bytes((top / file).read_bytes())
    _commit(top)
    paper.root = top / "one"
    paper.run("apply")
    paper.root = top / "two"
    assert "4 new" in paper.run("plan").stdout
    git(top, "mv", "one", "three")
    _commit(top)
    # A clone remembers nothing, and its directory `one` is gone.
    git(top.parent, "clone", "-q", str(top), str(top.with_name("clone")))
    paper.root = top.with_name("clone") / "three"
    assert "`project: one`" in paper.run("plan", code=1).stderr
