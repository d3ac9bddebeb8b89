"""`monkey plan --comment` in a CI run of a pull request; the forge is a double of GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop
from tests.forges.ci import pull_environment
from tests.forges.github_double import BOT, REPOSITORY, GitHubDouble

TOKEN = "ghs_0123456789abcdefghijklmn"
FIRST, SECOND = "1" * 40, "2" * 40
MARK = "<!-- monkey:plan:shop -->"


@pytest.fixture
def double() -> Iterator[GitHubDouble]:
    made = GitHubDouble()
    made.users[TOKEN], made.roles[BOT] = BOT, "write"
    made.open_pull("change", FIRST)
    yield made
    made.close()


class Pull:
    """A shop whose runs are CI's, for pull request 1."""

    def __init__(self, shop: Shop, double: GitHubDouble, base: Path) -> None:
        self.shop, self.double, self.base = shop, double, base
        self.at(FIRST)

    def at(self, commit: str, *, fork: str = "", token: str = TOKEN) -> None:
        """Let the next runs be of this commit."""
        for name in [name for name in self.shop.env if name.startswith("GITHUB_")]:
            del self.shop.env[name]
        self.shop.env |= pull_environment(self.base, self.double.url, REPOSITORY, 1, commit, fork=fork, token=token)

    @property
    def comments(self) -> dict[int, str]:
        """The comments there."""
        return {number: comment["body"] for number, comment in self.double.pulls[1].comments.items()}

    def statuses(self, commit: str = FIRST) -> list[tuple[str, str]]:
        """The statuses of a commit."""
        found = [each for each in self.double.statuses if each["sha"] == commit and each["context"] == "monkey/plan"]
        return [(each["state"], each["description"]) for each in found]

    @property
    def summary(self) -> str:
        """What the run's page shows."""
        path = self.base / "summary.md"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def pull(shop: Shop, double: GitHubDouble, tmp_path: Path) -> Pull:
    shop.spec(jobs=4)
    return Pull(shop, double, tmp_path)


def test_three_pushes_leave_one_comment(pull: Pull) -> None:
    done = pull.shop.run("plan", "--comment", "--detailed-exitcode", code=2)
    assert "4 new" in done.stdout and "commented: http" in done.stderr
    [(number, text)] = pull.comments.items()
    [(state, said)] = pull.statuses()
    digest, _, rest = said.partition(" ")
    assert text.startswith(f"{MARK}\n### monkey plan: 4 new") and f"`{digest}`" in text
    assert f"commit `{FIRST}`" in text
    assert "[run](https://github.example.org/lab/sweeps/actions/runs/77)" in text
    assert state == "success" and len(digest) == 16 and rest.startswith("4 new")
    for commit, jobs in ((SECOND, 6), ("3" * 40, 6)):
        pull.double.pulls[1].commit = commit
        pull.at(commit)
        pull.shop.spec(jobs=jobs)
        pull.shop.run("plan", "--comment")
        assert list(pull.comments) == [number] and "6 new" in pull.comments[number]
        [(_, now)] = pull.statuses(commit)
        assert now.partition(" ")[2].startswith("6 new") and not now.startswith(digest)
    assert pull.statuses(SECOND) == pull.statuses("3" * 40)
    assert not pull.summary


def test_a_plan_that_fails_replaces_the_good_one(pull: Pull) -> None:
    pull.shop.run("plan", "--comment")
    pull.double.pulls[1].commit = SECOND
    pull.at(SECOND)
    pull.shop.spec(f"parameterz: {{a: '``` {TOKEN}'}}\ncommand: 'echo {TOKEN}'\n")
    done = pull.shop.run("plan", "--comment", code=1)
    assert done.stderr.startswith("commented: ") and "error: specs/sweep.yaml:" in done.stderr
    [text] = pull.comments.values()
    assert text.startswith(f"{MARK}\n### monkey plan: failed\n\n````\nspecs/sweep.yaml:") and "4 new" not in text
    [(state, said)] = pull.statuses(SECOND)
    assert state == "failure" and said.startswith("specs/sweep.yaml:")
    assert TOKEN not in text + said and "***" in text


def test_a_broken_monkey_yaml_is_commented_in_the_same_place(pull: Pull) -> None:
    pull.shop.run("plan", "--comment")
    (pull.shop.root / "monkey.yaml").write_text("project: shop\nstoer: x\n")
    pull.shop.run("plan", "--comment", code=1)
    [text] = pull.comments.values()
    assert text.startswith(f"{MARK}\n### monkey plan: failed") and "stoer" in text


@pytest.mark.parametrize(("fork", "token"), [("stranger/sweeps", TOKEN), ("", "")])
def test_who_may_not_write_gets_the_plan_in_the_runs_summary(pull: Pull, fork: str, token: str) -> None:
    pull.at(FIRST, fork=fork, token=token)
    done = pull.shop.run("plan", "--comment", "--no-store")
    assert "no comment was written: " in done.stderr and ("of a fork" if fork else "GITHUB_TOKEN") in done.stderr
    assert "4 jobs" in done.stdout
    assert pull.summary.startswith("### monkey plan: ")
    pull.shop.run("plan", "--comment", "--detailed-exitcode", code=2)
    assert not pull.double.asked


def test_outside_of_ci_the_plan_is_printed_alone(pull: Pull) -> None:
    del pull.shop.env["CI"]
    done = pull.shop.run("plan", "--comment")
    assert "4 new" in done.stdout and "no CI run" in done.stderr
    assert not pull.double.asked


def test_a_late_run_of_an_older_commit_leaves_the_newer_comment(pull: Pull) -> None:
    pull.double.pulls[1].commit = SECOND
    pull.at(SECOND)
    pull.shop.spec(jobs=6)
    pull.shop.run("plan", "--comment")
    pull.at(FIRST)
    pull.shop.spec(jobs=4)
    done = pull.shop.run("plan", "--comment")
    assert "newer commit" in done.stderr
    [text] = pull.comments.values()
    assert "6 new" in text
    assert len(pull.statuses(FIRST)) == len(pull.statuses(SECOND)) == 1


def test_a_token_that_may_only_read_is_said_after_the_plan(pull: Pull) -> None:
    pull.double.roles[BOT] = "read"
    done = pull.shop.run("plan", "--comment", code=1)
    assert "4 new" in done.stdout
    assert "refused (403)" in done.stderr and "hint: give the token `pull-requests: write`" in done.stderr
    # What is wrong with the plan comes first, even so.
    pull.shop.spec("parameterz: 1\n")
    done = pull.shop.run("plan", "--comment", code=1)
    assert done.stderr.index("no comment was written") < done.stderr.index("error: specs/sweep.yaml")


def test_without_the_store_nothing_is_agreed_to(pull: Pull) -> None:
    pull.shop.run("plan", "--comment", "--no-store")
    [(state, said)] = pull.statuses()
    assert state == "success" and said.startswith("4 jobs")
