"""What CI's variables say: of GitHub, Gitea and GitLab, for pushes, pull requests and forks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monkey.ci_run import CiRun, is_ci, read_ci_run

GITHUB = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_API_URL": "https://api.github.com/",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_RUN_ID": "12",
    "GITHUB_ACTOR": "ann",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REF_NAME": "main",
    "GITHUB_REF_TYPE": "branch",
}
GITLAB = {
    "CI": "true",
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://gitlab.com/api/v4",
    "CI_PROJECT_PATH": "g/s/r",
    "CI_PROJECT_ID": "7",
    "CI_PIPELINE_URL": "https://gitlab.com/g/s/r/-/pipelines/3",
    "CI_COMMIT_SHA": "a" * 40,
    "CI_COMMIT_BRANCH": "main",
    "GITLAB_USER_LOGIN": "ann",
}


@pytest.mark.parametrize(
    ("given", "expected"), [("", False), ("false", False), ("0", False), ("no", False), ("1", True)]
)
def test_ci_is_where_its_variable_is_set(given: str, expected: bool) -> None:
    assert is_ci({"CI": given}) is expected and not is_ci({})
    assert (read_ci_run({"CI": given}) == CiRun()) is expected


def test_a_push_is_to_a_branch() -> None:
    run = read_ci_run(GITHUB)
    assert run == CiRun(
        forge="github",
        api="https://api.github.com",
        repository="o/r",
        branch="main",
        commit="a" * 40,
        actor="ann",
        url="https://github.com/o/r/actions/runs/12",
    )
    tag = read_ci_run(GITHUB | {"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1"})
    assert tag is not None and tag.branch == ""
    gitlab = read_ci_run(GITLAB)
    assert gitlab is not None and (gitlab.forge, gitlab.branch, gitlab.pull) == ("gitlab", "main", None)
    assert gitlab.url == GITLAB["CI_PIPELINE_URL"] and not gitlab.fork


@pytest.mark.parametrize("fork", [False, True])
def test_a_pull_request_is_of_its_head_and_not_of_the_merge_that_is_checked_out(tmp_path: Path, fork: bool) -> None:
    head = {"sha": "b" * 40, "repo": {"full_name": "x/r" if fork else "o/r"}}
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 5, "head": head, "base": {"repo": {"full_name": "o/r"}}}}))
    pull = {"GITHUB_REF": "refs/pull/5/merge", "GITHUB_REF_NAME": "5/merge", "GITHUB_HEAD_REF": "topic"}
    given = GITHUB | pull | {"GITHUB_BASE_REF": "main", "GITHUB_EVENT_PATH": str(event)}
    run = read_ci_run(given)
    assert run is not None and (run.branch, run.base, run.commit) == ("topic", "main", "b" * 40)
    assert (run.pull, run.fork) == (5, fork)
    event.write_text("[1")
    run = read_ci_run(given)  # an event that cannot be read leaves what the variables say
    assert run is not None and (run.pull, run.commit, run.fork) == (5, "a" * 40, False)
    gitea = read_ci_run(given | {"GITEA_ACTIONS": "true"})
    assert gitea is not None and gitea.forge == "gitea"


@pytest.mark.parametrize("source", ["7", "8"])
def test_a_merge_request_is_of_its_source_branch(source: str) -> None:
    run = read_ci_run(
        {name: value for name, value in GITLAB.items() if name != "CI_COMMIT_BRANCH"}
        | {"CI_MERGE_REQUEST_IID": "5", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": source}
        | {"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
        | {"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "b" * 40}
    )
    assert run is not None and (run.branch, run.base, run.commit, run.pull) == ("topic", "main", "b" * 40, 5)
    assert run.fork is (source == "8")
    own = read_ci_run(
        GITLAB
        | {"CI_MERGE_REQUEST_IID": "5", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": source}
        | {"CI_PROJECT_ID": source, "CI_MERGE_REQUEST_PROJECT_ID": "7"}
    )
    assert own is not None and own.fork is (source == "8"), "a fork's pipeline runs in the fork"
