"""Which forge a run has, and which token."""

from __future__ import annotations

import pytest

from monkey.ci_run import CiRun
from monkey.errors import ForgeError
from monkey.forge.github import GitHubForge
from monkey.forge.gitlab import GitLabForge
from monkey.forge.open_forge import find_token, open_forge, open_project_forge
from monkey.spec.project.forge_settings import ForgeSettings

API = "https://forge.example.org/api"


@pytest.mark.parametrize(
    ("kind", "environ", "token"),
    [
        ("github", {"GITHUB_TOKEN": "a", "GITEA_TOKEN": "b"}, "a"),
        ("github", {"GITHUB_TOKEN": "a", "MONKEY_FORGE_TOKEN": " m\n"}, "m"),
        ("gitea", {"GITHUB_TOKEN": "a", "GITEA_TOKEN": "b"}, "b"),
        ("gitea", {"GITHUB_TOKEN": "a"}, "a"),
        ("gitlab", {"GITLAB_TOKEN": "g", "CI_JOB_TOKEN": "j"}, "g"),
        ("gitlab", {"CI_JOB_TOKEN": "j", "GITHUB_TOKEN": "a"}, ""),
        ("github", {"GITHUB_TOKEN": ""}, ""),
        (None, {"GITHUB_TOKEN": "a"}, ""),
    ],
)
def test_the_token_is_the_forges_own(kind: str | None, environ: dict[str, str], token: str) -> None:
    run = CiRun(kind, API, "lab/sweeps")
    assert find_token(run, environ) == token
    assert (open_forge(run, environ) is not None) == bool(token)


def test_a_forge_is_opened_as_what_it_is() -> None:
    tokens = {"MONKEY_FORGE_TOKEN": "m"}
    assert isinstance(open_forge(CiRun("github", API, "o/r"), tokens), GitHubForge)
    assert isinstance(open_forge(CiRun("gitea", API, "o/r"), tokens), GitHubForge)
    assert isinstance(open_forge(CiRun("gitlab", API, "o/r"), tokens), GitLabForge)


def test_no_forge_is_named_by_half() -> None:
    tokens = {"MONKEY_FORGE_TOKEN": "m"}
    for run in (CiRun(None, API, "o/r"), CiRun("github", "", "o/r"), CiRun("github", API, "")):
        assert open_forge(run, tokens) is None


REMOTE = "git@git.lab:lab/sweeps.git"
GITHUB_RUN = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": API}


def test_a_projects_forge_is_that_of_its_run_or_else_of_its_file() -> None:
    forge, repository = open_project_forge(ForgeSettings("gitlab"), REMOTE, {"GITLAB_TOKEN": "g"})
    assert isinstance(forge, GitLabForge) and repository == "lab/sweeps"
    assert isinstance(open_project_forge(ForgeSettings("gitlab"), REMOTE, {}, token="given")[0], GitLabForge)
    forge, repository = open_project_forge(ForgeSettings("gitlab"), REMOTE, {**GITHUB_RUN, "GITHUB_TOKEN": "t"})
    assert isinstance(forge, GitHubForge) and repository == "o/r"
    # A CI that is no forge's: its variables say nothing.
    opened = open_project_forge(ForgeSettings("gitea"), REMOTE, {"CI": "true", "GITEA_TOKEN": "t"})
    assert isinstance(opened.forge, GitHubForge)


@pytest.mark.parametrize(
    ("remote", "environ", "said"),
    [
        (REMOTE, {"GITHUB_TOKEN": "t"}, "expected a token for the forge at https://git.lab/api/v4, found none"),
        (REMOTE, {**GITHUB_RUN, "GITLAB_TOKEN": "t"}, f"expected a token for the forge at {API}, found none"),
        ("http://git.lab/a/b", {"GITLAB_TOKEN": "t"}, "expected a forge's API at https://HOST/…, found http://git.lab"),
    ],
)
def test_a_projects_forge_needs_a_token_and_https(remote: str, environ: dict[str, str], said: str) -> None:
    with pytest.raises(ForgeError) as caught:
        open_project_forge(ForgeSettings("gitlab"), remote, environ)
    assert said in caught.value.message
