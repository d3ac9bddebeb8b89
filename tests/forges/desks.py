"""A forge in the hands of a test: the port, opened as CI would, and what a person does there beside it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from monkey.ci_run import CiRun
from monkey.forge.forge_port import Forge
from monkey.forge.open_forge import open_forge
from tests.forges import github_double, gitlab_double
from tests.forges.double import Double
from tests.forges.gitea import Gitea, Person


class Said(NamedTuple):
    """A comment that is there."""

    number: int
    author: str
    text: str


class Desk(Protocol):
    """A repository of the test's own; all who work there are made for it."""

    #: Name of a person who may push, and of one who may only read.
    writer: str
    reader: str

    def open(self, user: str = "") -> Forge:
        """Return the port as monkey (default), or as that person."""
        ...

    def open_with(self, token: str) -> Forge:
        """Return the port with a token."""
        ...

    def make_pull(self) -> tuple[int, str]:
        """Open a pull request; return its number, and its head commit."""
        ...

    def make_fork_pull(self) -> int:
        """Have the reader open a pull request from another repository; return its number."""
        ...

    def merge(self, number: int, how: str) -> str:
        """Merge it; return the commit."""
        ...

    def comments(self, number: int) -> list[Said]:
        """Return all comments that people wrote, and monkey."""
        ...

    def say(self, number: int, text: str, user: str = "") -> None:
        """Write a comment as that person, or as monkey without knowing of the others."""
        ...

    def statuses(self, commit: str) -> list[dict[str, Any]]:
        """Return all statuses of a commit."""
        ...

    def writes(self) -> int:
        """Return how often a comment or a status was made or changed."""
        ...


class GiteaDesk:
    """A repository at a real Gitea."""

    def __init__(self, server: Gitea) -> None:
        """Make it."""
        self.server, self.monkey = server, server.make_person("monkey")
        self._other, self.outsider = server.make_person("alice"), server.make_person("outsider")
        self.repository = server.make_repository(self.monkey)
        self.writer, self.reader = self._other.name, self.outsider.name
        self.repository.api("PUT", f"/collaborators/{self.writer}", {"permission": "write"})
        self._branches = itertools.count(1)

    def open(self, user: str = "") -> Forge:
        """See `Desk`."""
        return self.open_with(self._person(user).token)

    def open_with(self, token: str) -> Forge:
        """See `Desk`."""
        run = CiRun("gitea", f"{self.server.url}/api/v1", self.repository.name)
        return _open(run, {"GITEA_TOKEN": token})

    def _person(self, user: str) -> Person:
        return {"": self.monkey, self.writer: self._other, self.reader: self.outsider}[user]

    def make_pull(self) -> tuple[int, str]:
        """See `Desk`."""
        branch = f"change{next(self._branches)}"
        self.repository.write_file(f"{branch}.txt", "one\n", "main", new_branch=branch)
        commit = self.repository.write_file(f"{branch}-more.txt", "two\n", branch)
        number = self.repository.open_pull(branch)
        return number, commit

    def make_fork_pull(self) -> int:
        """See `Desk`."""
        fork = self.repository.fork(self.outsider)
        fork.write_file("theirs.txt", "one\n", "main", new_branch="theirs")
        return self.repository.open_fork_pull(fork, "theirs")

    def merge(self, number: int, how: str) -> str:
        """See `Desk`; the branch is deleted, as most do."""
        return self.repository.merge(number, how, delete_branch=True)

    def comments(self, number: int) -> list[Said]:
        """See `Desk`."""
        found = self.repository.list_comments(number)
        return [Said(each["id"], each["user"]["login"], each["body"]) for each in found]

    def say(self, number: int, text: str, user: str = "") -> None:
        """See `Desk`."""
        self.repository.api("POST", f"/issues/{number}/comments", {"body": text}, self._person(user).token)

    def statuses(self, commit: str) -> list[dict[str, Any]]:
        """See `Desk`."""
        return list(self.repository.api("GET", f"/commits/{commit}/statuses?limit=50"))

    def writes(self) -> int:
        """See `Desk`; by what Gitea writes down of each request."""
        written = rf'"(POST|PUT|PATCH|DELETE) /api/v1/repos/{self.repository.name}/(issues|statuses)'
        return len(re.findall(written, self.server.read_requests()))


class DoubleDesk:
    """A repository at a double."""

    writer, reader = "alice", "outsider"

    def __init__(self, double: Double, monkey: str, run: CiRun, variable: str) -> None:
        """Make monkey and the others known there."""
        self.double, self._run, self._variable, self._monkey = double, run, variable, monkey
        for user, role in ((monkey, "write"), (self.writer, "write"), (self.reader, "read")):
            double.users[f"token-of-{user}"], double.roles[user] = user, role
        self._commits = itertools.count(1)

    def open(self, user: str = "") -> Forge:
        """See `Desk`."""
        return self.open_with(f"token-of-{user or self._monkey}")

    def open_with(self, token: str) -> Forge:
        """See `Desk`."""
        return _open(self._run, {self._variable: token})

    def make_pull(self) -> tuple[int, str]:
        """See `Desk`."""
        number = next(self._commits)
        commit = f"{number:040x}"
        return self.double.open_pull(f"change{number}", commit), commit

    def make_fork_pull(self) -> int:
        """See `Desk`."""
        return self.double.open_pull("main", f"{next(self._commits):040x}", is_fork=True)

    def merge(self, number: int, how: str) -> str:
        """See `Desk`."""
        commit = f"{next(self._commits):040x}"
        self.double.merge(number, commit)
        return commit

    def comments(self, number: int) -> list[Said]:
        """See `Desk`."""
        found = self.double.pulls[number].comments.values()
        return [Said(each["id"], _login(each.get("user") or each["author"]), each["body"]) for each in found]

    def say(self, number: int, text: str, user: str = "") -> None:
        """See `Desk`."""
        made, who = next(self.double.ids), user or self._monkey
        author = {"login": who, "username": who}
        url = f"{self.double.url}/comment/{made}"
        comment = {"id": made, "body": text, "user": author, "author": author, "html_url": url}
        self.double.pulls[number].comments[made] = comment

    def statuses(self, commit: str) -> list[dict[str, Any]]:
        """See `Desk`."""
        return [status for status in reversed(self.double.statuses) if status["sha"] == commit]

    def writes(self) -> int:
        """See `Desk`."""
        return sum(method != "GET" and not path.endswith("/graphql") for method, path in self.double.asked)


def _login(user: Mapping[str, str]) -> str:
    return user.get("login") or user["username"]


def _open(run: CiRun, environ: Mapping[str, str]) -> Forge:
    forge = open_forge(run, environ)
    assert forge is not None
    return forge


def github_desk(double: github_double.GitHubDouble, monkey: str = github_double.BOT) -> DoubleDesk:
    """Return a repository at the double of GitHub; monkey has a job's token."""
    return DoubleDesk(double, monkey, CiRun("github", double.url, github_double.REPOSITORY), "GITHUB_TOKEN")


def gitlab_desk(double: gitlab_double.GitLabDouble) -> DoubleDesk:
    """Return a project at the double of GitLab; monkey has a project's access token."""
    run = CiRun("gitlab", f"{double.url}/api/v4", gitlab_double.REPOSITORY)
    return DoubleDesk(double, "project_7_bot", run, "MONKEY_FORGE_TOKEN")
