"""The CI run that this process is part of, by the variables of GitHub, Gitea, Forgejo and GitLab.

Sources: docs.github.com "Variables reference", docs.gitea.com "Compared to GitHub Actions", docs.gitlab.com "Predefined
CI/CD variables reference".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

ForgeKind = Literal["github", "gitea", "gitlab"]
#: The variables by which CI names its forge's API.
API_VARIABLES = ("GITHUB_API_URL", "CI_API_V4_URL")


@dataclass(frozen=True)
class CiRun:
    """One run of CI; "" and None for what its variables do not say."""

    #: None: a CI that is none of these.
    forge: ForgeKind | None = None
    #: Where the forge's API is, without a `/` at its end.
    api: str = ""
    #: The repository as the forge calls it: "owner/name", or "group/subgroup/name".
    repository: str = ""
    #: The branch that this run is about: of a pull request, the one that is to be merged.
    branch: str = ""
    #: Of a pull request, the branch that it is to be merged into.
    base: str = ""
    #: The branch that the repository calls its own.
    default_branch: str = ""
    #: The commit that people see: of a pull request its head, and not the merge that was checked out.
    commit: str = ""
    #: The pull request's number, where the run is about one.
    pull: int | None = None
    #: Is it of another repository, whose branches no one here has looked at?
    fork: bool = False
    #: Who caused the run.
    actor: str = ""
    #: Where people see the run.
    url: str = ""


def is_ci(environ: Mapping[str, str] | None = None) -> bool:
    """Is this CI, whose machine and disk are gone after the run? All that are in use set `CI`."""
    return (os.environ if environ is None else environ).get("CI", "").lower() not in ("", "0", "false", "no")


def read_ci_run(environ: Mapping[str, str] | None = None) -> CiRun | None:
    """Return what CI's variables (default: this process's) say of this run; None outside of CI."""
    given = os.environ if environ is None else environ
    if not is_ci(given):
        return None
    if given.get("GITLAB_CI"):
        return _read_gitlab(given)
    if given.get("GITHUB_ACTIONS") or given.get("GITEA_ACTIONS") or given.get("FORGEJO_ACTIONS"):
        return _read_github(given)
    return CiRun()


def _read_github(given: Mapping[str, str]) -> CiRun:
    event = _read_event(given.get("GITHUB_EVENT_PATH", ""))
    pull = _as_dict(event.get("pull_request"))
    head, base = _as_dict(pull.get("head")), _as_dict(pull.get("base"))
    repository, server = given.get("GITHUB_REPOSITORY", ""), given.get("GITHUB_SERVER_URL", "").rstrip("/")
    number = pull.get("number")
    found = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", given.get("GITHUB_REF", ""))
    run = given.get("GITHUB_RUN_ID", "")
    gitea = bool(given.get("GITEA_ACTIONS") or given.get("FORGEJO_ACTIONS"))
    is_branch = given.get("GITHUB_REF_TYPE", "branch") == "branch"
    return CiRun(
        forge="gitea" if gitea else "github",
        api=given.get("GITHUB_API_URL", "").rstrip("/"),
        repository=repository,
        branch=given.get("GITHUB_HEAD_REF", "") or (given.get("GITHUB_REF_NAME", "") if is_branch else ""),
        base=given.get("GITHUB_BASE_REF", ""),
        default_branch=str(_as_dict(event.get("repository")).get("default_branch") or ""),
        commit=str(head.get("sha") or given.get("GITHUB_SHA", "")),
        pull=number if isinstance(number, int) else int(found[1]) if found else None,
        fork=_as_dict(head.get("repo")).get("full_name") != _as_dict(base.get("repo")).get("full_name"),
        actor=given.get("GITHUB_ACTOR", ""),
        url=f"{server}/{repository}/actions/runs/{run}" if server and repository and run else "",
    )


def _read_gitlab(given: Mapping[str, str]) -> CiRun:
    number = given.get("CI_MERGE_REQUEST_IID", "")
    source = given.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
    return CiRun(
        forge="gitlab",
        api=given.get("CI_API_V4_URL", "").rstrip("/"),
        repository=given.get("CI_PROJECT_PATH", ""),
        branch=given.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "") or given.get("CI_COMMIT_BRANCH", ""),
        base=given.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", ""),
        default_branch=given.get("CI_DEFAULT_BRANCH", ""),
        # In a pipeline of merged results, CI_COMMIT_SHA is a merge that no one sees.
        commit=given.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "") or given.get("CI_COMMIT_SHA", ""),
        pull=int(number) if number.isdecimal() else None,
        # Not CI_PROJECT_ID: a fork's pipeline runs in the fork itself.
        fork=bool(source) and source != (given.get("CI_MERGE_REQUEST_PROJECT_ID") or given.get("CI_PROJECT_ID", "")),
        actor=given.get("GITLAB_USER_LOGIN", ""),
        url=given.get("CI_PIPELINE_URL", ""),
    )


def _read_event(path: str) -> dict[str, Any]:
    """Return what started the run: the file is written by the forge, and some of it by who opened the pull request."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            return _as_dict(json.load(file))
    except (OSError, ValueError):
        return {}


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
