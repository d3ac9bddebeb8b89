"""Which forge a run has, and which token."""

from __future__ import annotations

import pytest

from monkey.ci_run import CiRun
from monkey.forge.github import GitHubForge
from monkey.forge.gitlab import GitLabForge
from monkey.forge.open_forge import find_token, open_forge

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
