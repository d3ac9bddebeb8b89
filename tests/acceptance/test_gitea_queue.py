"""What Gitea makes of the workflows that `monkey init --ci gitea` writes, while its one runner is busy elsewhere."""

from __future__ import annotations

import pytest

from tests.acceptance.shop import Shop, until
from tests.acceptance.test_gitea import Clone
from tests.forges.gitea import Gitea, GiteaRepository

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitea")]


@pytest.fixture
def repository(gitea: Gitea, shop: Shop) -> GiteaRepository:
    """Return a repository whose CI is set up; no runner takes its tasks."""
    made = gitea.make_repository(gitea.make_person("monkey"))
    text = "project: shop\nstore: s3://bucket/lab\nproviders: {lab: {type: ssh, hosts: [h1]}}\n"
    (shop.root / "monkey.yaml").write_text(text)
    clone = Clone(shop, made)
    shop.run("init", "--ci", "gitea", "--branch", "main", "--package", "monkey-sweep")
    clone.push("main", "the workflow")
    return made


def await_jobs(repository: GiteaRepository, job: str, commit: str, event: str, states: list[str]) -> None:
    """Wait until Gitea, which looks at events later, has these jobs."""
    until(lambda: repository.list_jobs(job, commit, event) == states, f"{job} of {event}: {states}", step=0.1)


def test_what_waits_for_a_runner_is_cancelled_by_nothing_but_a_newer_one(repository: GiteaRepository) -> None:
    pushed = [repository.write_file(f"{number}.txt", "\n", "main") for number in range(5)]
    newest = pushed.pop()
    await_jobs(repository, "apply", newest, "push", ["queued"])
    for commit in pushed:
        await_jobs(repository, "apply", commit, "push", ["cancelled"])
    # No apply comes of a pull request, of its label, and of a run by hand: what is applied is not to wait for more.
    head = repository.write_file("three.txt", "3\n", "main", new_branch="change")
    pull = repository.open_pull("change")
    await_jobs(repository, "fork", head, "pull_request", ["queued"])
    repository.add_label(pull, "big")
    await_jobs(repository, "fork", head, "pull_request", ["queued", "queued"])
    repository.dispatch("monkey.yml")
    await_jobs(repository, "fork", newest, "workflow_dispatch", ["queued"])
    assert repository.list_jobs("apply", newest, "push") == ["queued"]
    assert repository.list_jobs("plan", head, "pull_request") == ["queued", "queued"]
    # A newer push to the pull request is what its plan is of.
    repository.write_file("four.txt", "4\n", "change")
    await_jobs(repository, "plan", head, "pull_request", ["cancelled", "queued"])
