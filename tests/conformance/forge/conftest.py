"""The forges that the suite runs over: a real Gitea, and doubles of GitHub and GitLab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.forges import desks
from tests.forges.github_double import GitHubDouble
from tests.forges.gitlab_double import GitLabDouble


@pytest.fixture(params=["github", "gitlab", pytest.param("gitea", marks=pytest.mark.slow)])
def desk(request: pytest.FixtureRequest) -> Iterator[desks.Desk]:
    """Return a repository of the test's own."""
    if request.param == "gitea":
        yield desks.GiteaDesk(request.getfixturevalue("gitea"))
        return
    double = GitHubDouble() if request.param == "github" else GitLabDouble()
    try:
        yield desks.github_desk(double) if isinstance(double, GitHubDouble) else desks.gitlab_desk(double)
    finally:
        double.close()
