"""Statuses of projects: each project of a repository has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.cli.review.approval import PLAN_STATUS, read_approved_digest
from monkey.cli.review.pull_review import open_apply_review, open_pull_review
from tests.forges.ci import pull_environment
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble
from tests.git_command import git

TOKEN, HEAD, DIGESTS = (
    "ghs_0123456789abcdefghijklmn",
    "1" * 40,
    {"": "a" * 16, "labs/one": "b" * 16, "labs/two": "c" * 16},
)


def test_two_projects_of_a_repository_have_statuses_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q")
    for name in DIGESTS:
        (tmp_path / name / "specs").mkdir(parents=True)
        (tmp_path / name / "monkey.yaml").write_text("")
    double = GitHubDouble()
    try:
        double.users[TOKEN], double.roles[BOT] = BOT, "write"
        double.open_pull("change", HEAD)
        env = pull_environment(tmp_path, double.url, REPOSITORY, 1, HEAD, token=TOKEN)
        for name, digest in DIGESTS.items():
            monkeypatch.chdir(tmp_path / name / "specs")
            open_pull_review(env).set_status(PLAN_STATUS, "success", f"{digest} 4 new")
        assert [each["context"] for each in double.statuses] == [
            "monkey/plan", "monkey/plan/labs/one", "monkey/plan/labs/two"
        ]  # fmt: skip
        for name, digest in DIGESTS.items():
            monkeypatch.chdir(tmp_path / name)
            review = open_apply_review(env)
            assert review.forge is not None
            assert read_approved_digest(review.forge, HEAD, review.name_status(PLAN_STATUS)) == digest
    finally:
        double.close()
