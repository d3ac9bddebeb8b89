"""The forge that a CI run belongs to, opened by the token that its environment has."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from monkey.ci_run import CiRun
from monkey.forge.forge_port import Forge
from monkey.forge.github import GitHubForge
from monkey.forge.gitlab import GitLabForge
from monkey.forge.rest_client import RestClient, check_api_url

#: Where a token may be that is for monkey alone, at every forge.
MONKEY_TOKEN = "MONKEY_FORGE_TOKEN"
#: Where else the token of each forge may be. GitLab's own, CI_JOB_TOKEN, may write neither notes nor statuses.
TOKENS = {
    "github": ("GITHUB_TOKEN",),
    "gitea": ("GITEA_TOKEN", "FORGEJO_TOKEN", "GITHUB_TOKEN"),
    "gitlab": ("GITLAB_TOKEN",),
}
#: The variables by which CI names its forge's API.
_APIS = ("GITHUB_API_URL", "CI_API_V4_URL")


def open_forge(run: CiRun, environ: Mapping[str, str], wait: Callable[[float], None] = time.sleep) -> Forge | None:
    """Return the run's forge; None where the run names none, or the environment has no token for it.

    Raises ForgeError for an API to which no token may be sent.
    """
    token = find_token(run, environ)
    if not token or run.forge is None or not run.api or not run.repository:
        return None
    api = check_api_url(run.api, trusted=run.api in [environ.get(name, "").rstrip("/") for name in _APIS])
    if run.forge == "gitlab":
        return GitLabForge(RestClient(api, {"PRIVATE-TOKEN": token}, token, wait), run.repository)
    # Both take "token"; GitHub takes "Bearer" as well, and Gitea does for some tokens only.
    headers = {"Authorization": f"token {token}"}
    if run.forge == "github":
        headers |= {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    return GitHubForge(RestClient(api, headers, token, wait), run.repository, run.forge)


def find_token(run: CiRun, environ: Mapping[str, str]) -> str:
    """Return the token for the run's forge; "" where there is none."""
    names = (MONKEY_TOKEN, *TOKENS.get(run.forge or "", ()))
    return next((value for name in names if (value := environ.get(name, "").strip())), "")
