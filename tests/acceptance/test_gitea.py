"""The loop on a real forge: Gitea, whose workflows act runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.forges.gitea import Gitea, GiteaRepository
from tests.forges.gitea_runner import FAILURE, SUCCESS, GiteaRunner, Task, run_tasks

pytestmark = pytest.mark.slow

WORKFLOW = """
on:
  pull_request:
  push: {branches: [main]}
jobs:
  plan:
    if: github.event_name == 'pull_request'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
        with: {fetch-depth: 0}
      - run: monkey plan --comment
        env:
          GITHUB_TOKEN: ${{ github.token }}
  apply:
    if: github.event_name == 'push'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
        with: {fetch-depth: 0}
      - run: monkey apply --approved
        env:
          GITHUB_TOKEN: ${{ github.token }}
"""
MARK = "<!-- monkey:plan:shop -->"


@pytest.fixture
def runner(require: Callable[[str], str], gitea: Gitea, shop: Shop, tmp_path: Path) -> Iterator[GiteaRunner]:
    """Return a runner whose jobs have monkey on their PATH, and the shop's store."""
    require("act")
    environ = {**shop.env, "MONKEY_STORE": str(tmp_path / "store")}
    with run_tasks(gitea, tmp_path / "runner", environ) as made:
        yield made


class Clone:
    """The shop as a clone of a repository at Gitea."""

    def __init__(self, shop: Shop, repository: GiteaRepository) -> None:
        self.shop, self.repository = shop, repository
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("remote", "add", "origin", repository.clone_url())
        self.git("fetch", "--quiet", "origin")
        self.git("reset", "--quiet", "origin/main")

    def git(self, *words: str) -> str:
        """Run git there."""
        who = ["-c", "user.name=alice", "-c", "user.email=alice@example.org"]
        done = subprocess.run(["git", "-C", self.shop.root, *who, *words], capture_output=True, text=True)
        assert done.returncode == 0, f"git {words}: {done.stderr}"
        return done.stdout.strip()

    def push(self, branch: str, message: str) -> str:
        """Commit all, and push it; return the commit."""
        commit = self.commit(message)
        self.git("push", "--quiet", "origin", f"HEAD:{branch}")
        return commit

    def commit(self, message: str) -> str:
        """Commit all; return the commit."""
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(gitea: Gitea, shop: Shop) -> Clone:
    """Return the shop, pushed to main with its workflow."""
    made = Clone(shop, gitea.make_repository(gitea.make_person("monkey")))
    flows = shop.root / ".gitea/workflows"
    flows.mkdir(parents=True)
    (flows / "monkey.yml").write_text(WORKFLOW)
    made.push("main", "the workflow")
    return made


def await_task(runner: GiteaRunner, commit: str, result: int, job: str = "plan") -> None:
    """Wait until the job of a commit has ended like this."""

    def find() -> list[Task]:
        assert runner.failure is None, runner.failure
        return [task for task in runner.tasks if (task.job, task.commit) == (job, commit)]

    [task] = until(find, f"the {job} of {commit}", step=0.2)
    assert task.result == result, task.log


def test_three_pushes_to_a_pull_request_leave_one_comment_and_a_status_each(clone: Clone, runner: GiteaRunner) -> None:
    repository = clone.repository
    seen = []
    pull = 0
    for jobs in (4, 6, 6):
        clone.shop.spec(jobs=jobs)
        (clone.shop.root / "README.md").write_text(f"push {len(seen)}\n")
        commit = clone.push("change", f"push {len(seen)}")
        pull = pull or repository.open_pull("change")
        await_task(runner, commit, SUCCESS)
        [comment] = repository.list_comments(pull)
        [status] = repository.list_statuses(commit, "monkey/plan")
        digest, _, said = status["description"].partition(" ")
        assert (status["status"], len(digest)) == ("success", 16) and said.startswith(f"{jobs} new")
        assert comment["body"].startswith(f"{MARK}\n### monkey plan: {jobs} new") and f"`{digest}`" in comment["body"]
        assert comment["user"]["login"] == "gitea-actions"
        seen.append((comment["id"], digest))
    assert len({number for number, _ in seen}) == 1
    assert seen[0][1] != seen[1][1] == seen[2][1]
    # A spec that is wrong takes the place of the good plan.
    (clone.shop.root / "specs/sweep.yaml").write_text("name: sweep\nparameterz: {}\n")
    commit = clone.push("change", "a mistake")
    await_task(runner, commit, FAILURE)
    [comment] = repository.list_comments(pull)
    [status] = repository.list_statuses(commit, "monkey/plan")
    assert comment["id"] == seen[0][0] and "specs/sweep.yaml:" in comment["body"]
    assert status["status"] == "failure" and "monkey plan: failed" in comment["body"]


def test_a_merge_applies_what_the_pull_request_agreed_to(clone: Clone, runner: GiteaRunner) -> None:
    """The other kinds of merges are in `test_gitea_story.py`."""
    shop, repository = clone.shop, clone.repository
    shop.spec(jobs=2)
    head = clone.push("change", "two jobs")
    pull = repository.open_pull("change")
    await_task(runner, head, SUCCESS)
    # Another came first: what a squash makes is a commit that no one planned.
    repository.write_file("README.md", "hello\n", "main", new_branch="other")
    other = repository.merge(repository.open_pull("other"), "merge")
    commit = repository.merge(pull, "squash", delete_branch=True)
    await_task(runner, commit, SUCCESS, "apply")
    assert commit not in (head, other) and shop.ledger.executions == 2
    [planned] = repository.list_statuses(head, "monkey/plan")
    [applied] = repository.list_statuses(commit, "monkey/apply")
    assert applied["status"] == "success"
    assert applied["description"] == f"{planned['description'].partition(' ')[0]} applied"
    assert len(repository.list_comments(pull)) == 1
