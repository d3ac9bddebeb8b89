"""GitHub, and Gitea and Forgejo, whose REST API is nearly the same.

Differences that were met in Gitea 1.26:

- It has `/commits/SHA/pull` (one, merged) where GitHub has `/commits/SHA/pulls`.
- A status's state is called `status`, and lists of comments have one page.
- A job's token may `GET /user`. Statuses that it sets have no `creator`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote

from monkey.errors import ForgeError
from monkey.forge.comments import PostedComment, write_single_comment
from monkey.forge.forge_port import CommitStatus, PullRequest, StatusState
from monkey.forge.rest_answer import RestFields
from monkey.forge.rest_client import RestClient

#: Characters of a status's text; GitHub refuses more.
_TEXT = 140
_COMMENTS, _READ, _STATUSES = "pull-requests: write", "pull-requests: read", "statuses: write"
#: Who writes with the token of a job: GitHub lets such a token ask for no user.
_JOBS_AUTHOR = "github-actions[bot]"
_GITEA_JOBS_AUTHORS = ("gitea-actions", "forgejo-actions")


class GitHubForge:
    """A repository at GitHub, Gitea or Forgejo."""

    def __init__(self, client: RestClient, repository: str, kind: Literal["github", "gitea"]) -> None:
        """Keep whom to ask, and the repository: "owner/name"."""
        self._client, self._gitea = client, kind == "gitea"
        self._at = f"/repos/{quote(repository)}"

    def name_author(self) -> str:
        """See `Forge`."""
        return self._author

    def write_comment(self, pull: int, key: str, text: str, others: Collection[str] = ()) -> str:
        """See `Forge`."""
        thread = _GitHubThread(self._client, f"{self._at}/issues", pull)
        return write_single_comment(thread, self._author, key, text, others)

    def set_status(self, commit: str, context: str, state: StatusState, text: str, url: str = "") -> None:
        """See `Forge`."""
        text = _cut_text(text)
        body = {"state": state, "context": context, "description": text, "target_url": url}
        found = self._find_status(commit, context)
        there = found and (_read_state(found), found.read_text("description"), found.read_text("target_url"))
        if there != (state, text, url):
            self._client.ask("POST", f"{self._at}/statuses/{quote(commit)}", body, needs=_STATUSES)

    def read_status(self, commit: str, context: str) -> CommitStatus | None:
        """See `Forge`."""
        found = self._find_status(commit, context)
        return CommitStatus(_read_state(found), found.read_text("description")) if found else None

    def _find_status(self, commit: str, context: str) -> RestFields | None:
        # By their numbers: Gitea's times are whole seconds, and in 1.26 its names of orders mean their opposites.
        found = self._client.list_all(f"{self._at}/commits/{quote(commit)}/statuses", needs="statuses: read")
        mine = [each for each in found if each.read("context", str) == context and self._is_ours(each.find("creator"))]
        return max(mine, key=lambda status: status.read("id", int), default=None)

    def _is_ours(self, creator: RestFields | None) -> bool:
        """Is a status of this creator ours? Gitea names none where a job set it."""
        if creator is None and self._gitea:
            return self._author in _GITEA_JOBS_AUTHORS
        return _name_author(creator) == self._author

    def list_pulls_of(self, commit: str) -> list[PullRequest]:
        """See `Forge`."""
        if not self._gitea:
            found = self._client.list_all(f"{self._at}/commits/{quote(commit)}/pulls", needs=_READ)
            return _sort_pulls(map(_read_pull, found))
        path = f"{self._at}/commits/{quote(commit)}/pull"
        merged = self._client.ask("GET", path, needs=_READ, allow=(404, 422))
        pulls = [_read_pull(merged.fields)] if merged.status == 200 else []
        return _sort_pulls([*pulls, *(pull for pull in self.list_open_pulls() if pull.commit == commit)])

    def list_open_pulls(self) -> list[PullRequest]:
        """See `Forge`."""
        return [_read_pull(each) for each in self._client.list_all(f"{self._at}/pulls", needs=_READ, state="open")]

    def read_pull(self, number: int) -> PullRequest | None:
        """See `Forge`."""
        answer = self._client.ask("GET", f"{self._at}/pulls/{number}", needs=_READ, allow=(404,))
        return _read_pull(answer.fields) if answer.status == 200 else None

    def can_write(self, user: str) -> bool:
        """See `Forge`."""
        path = f"{self._at}/collaborators/{quote(user, safe='')}/permission"
        # Gitea tells only administrators of the repository, and no job's token is one's.
        needs = "rights of the repository's administrator" if self._gitea else "metadata: read"
        answer = self._client.ask("GET", path, needs=needs, allow=(404,))
        return answer.status == 200 and answer.fields.read("permission", str) in ("write", "admin", "owner")

    @cached_property
    def _author(self) -> str:
        """The login of whom the token belongs to.

        A token of an app, as each job's is, may not ask for its user. GitHub's other API tells who looks; if that
        is refused, too, the token is taken for a job's.
        """
        answer = self._client.ask("GET", "/user", needs="read:user", allow=(403, 404))
        if answer.status == 200:
            return _name_author(answer.fields)
        if self._gitea:
            raise ForgeError(
                f"{self._client.api} does not say whose token this is ({answer.status})",
                hint="give the token `read:user`: without it, comments of others could be taken for ours",
            )
        root = self._client.api.removesuffix("/v3")
        asked = self._client.ask("POST", "/graphql", {"query": "{viewer{login}}"}, allow=(401, 403, 404), url=root)
        viewer = (asked.data or {}).get("data") or {} if isinstance(asked.data, dict) else {}
        login = str((viewer.get("viewer") or {}).get("login") or _JOBS_AUTHOR)
        # Users who are no app have answered before.
        return login if login.endswith("[bot]") else f"{login}[bot]"


@dataclass(frozen=True)
class _GitHubThread:
    client: RestClient
    issues: str
    pull: int

    def list_comments(self) -> Iterator[PostedComment]:
        for each in self.client.list_all(f"{self.issues}/{self.pull}/comments", needs=_READ):
            author, text = _name_author(each.find("user")), each.read_text("body")
            yield PostedComment(each.read("id", int), author, text, each.read("html_url", str))

    def post_comment(self, text: str) -> None:
        self.client.ask("POST", f"{self.issues}/{self.pull}/comments", {"body": text}, needs=_COMMENTS)

    def replace_comment(self, number: int, text: str, *, theirs: bool = False) -> bool:
        path = f"{self.issues}/comments/{number}"
        answer = self.client.ask("PATCH", path, {"body": text}, needs=_COMMENTS, allow=(404, 403) if theirs else (404,))
        return answer.status not in (403, 404)

    def remove_comment(self, number: int, *, theirs: bool = False) -> None:
        path = f"{self.issues}/comments/{number}"
        self.client.ask("DELETE", path, needs=_COMMENTS, allow=(404, 403) if theirs else (404,))


def _name_author(user: RestFields | None) -> str:
    """Return a user's login; "" for one who is gone."""
    return "" if user is None else user.read("login", str)


def _read_state(status: RestFields) -> StatusState:
    said = status.get("state") or status.get("status")
    if said == "pending" or said == "success":
        return "pending" if said == "pending" else "success"
    return "failure"


def _read_pull(data: RestFields) -> PullRequest:
    head, base = data.read("head", RestFields), data.read("base", RestFields)
    ours, theirs = base.find("repo"), head.find("repo")
    return PullRequest(
        number=data.read("number", int),
        branch=head.read("ref", str),
        commit=head.read("sha", str),
        base=base.read("ref", str),
        is_open=data.read("state", str) == "open",
        is_merged=bool(data.get("merged") or data.get("merged_at")),
        # One whose repository is gone was a fork.
        is_fork=(theirs and theirs.get("full_name")) != (ours and ours.get("full_name")),
    )


def _sort_pulls(pulls: Any) -> list[PullRequest]:
    """Return pull requests, each once: those merged first, and the newest first."""
    return sorted(set(pulls), key=lambda pull: (not pull.is_merged, -pull.number))


def _cut_text(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
