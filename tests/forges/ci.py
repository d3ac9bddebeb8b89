"""What the environment of a CI run has, as GitHub's and Gitea's runners set it."""

from __future__ import annotations

import json
from pathlib import Path


def pull_environment(
    base: Path, api: str, repository: str, pull: int, commit: str, *, fork: str = "", token: str = ""
) -> dict[str, str]:
    """Return the variables of a run for a pull request; `base`: where the event's file and the summary lie.

    `fork`: the repository that the branch is of, if that is another.
    """
    event, summary = base / f"event-{pull}-{commit[:8]}.json", base / "summary.md"
    head = {"sha": commit, "ref": "change", "repo": {"full_name": fork or repository}}
    said = {"number": pull, "head": head, "base": {"ref": "main", "repo": {"full_name": repository}}}
    event.write_text(json.dumps({"pull_request": said, "number": pull, "action": "synchronize"}))
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": api,
        "GITHUB_SERVER_URL": "https://github.example.org",
        "GITHUB_REPOSITORY": repository,
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REF": f"refs/pull/{pull}/merge",
        "GITHUB_HEAD_REF": "change",
        "GITHUB_BASE_REF": "main",
        "GITHUB_SHA": "e" * 40,
        "GITHUB_RUN_ID": "77",
        "GITHUB_STEP_SUMMARY": str(summary),
        **({"GITHUB_TOKEN": token} if token else {}),
    }


def push_environment(base: Path, api: str, repository: str, commit: str, *, token: str = "") -> dict[str, str]:
    """Return the variables of a run for a commit that was pushed to main."""
    event = base / f"push-{commit[:8]}.json"
    event.write_text(json.dumps({"after": commit, "ref": "refs/heads/main", "repository": {"full_name": repository}}))
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": api,
        "GITHUB_SERVER_URL": "https://github.example.org",
        "GITHUB_REPOSITORY": repository,
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_REF_NAME": "main",
        "GITHUB_REF_TYPE": "branch",
        "GITHUB_SHA": commit,
        "GITHUB_RUN_ID": "78",
        "GITHUB_STEP_SUMMARY": str(base / "summary.md"),
        **({"GITHUB_TOKEN": token} if token else {}),
    }
