"""GitLab: notes on merge requests, statuses of commits, members.

A job's own token (CI_JOB_TOKEN) may write neither notes nor statuses: monkey takes a project's access token.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from monkey.forge.comments import PostedComment, write_single_comment
from monkey.forge.forge_port import CommitStatus, PullRequest, StatusState
from monkey.forge.rest_answer import RestFields, check_list
from monkey.forge.rest_client import RestClient

#: Characters of a status's text.
_TEXT = 255
#: Access levels begin to push at this one: Developer.
_DEVELOPER = 30
_API, _READ = "scope api, role Developer", "scope read_api"
#: GitLab refuses statuses of a protected branch's pipelines to all others.
_STATUS = f"{_API}; at commits of a protected branch, a role that may merge into the branch"
#: The user of an access token: which project or group it is of, and the token.
_BOT = re.compile(r"((?:project|group)_\d+_bot)(?:\d*|_[0-9a-f]+)")
#: What GitLab takes for orders to whoever wrote a note ("quick actions"), as `/merge`: in some code, too.
_ORDER = re.compile(r"^(?=\r*/)", re.MULTILINE)
_STATES: dict[str, StatusState] = {
    "pending": "pending",
    "running": "pending",
    "created": "pending",
    "success": "success",
}


class GitLabForge:
    """A project at GitLab."""

    def __init__(self, client: RestClient, repository: str) -> None:
        """Keep whom to ask, and the project: "group/subgroup/name"."""
        self._client, self._repository = client, repository
        self._at = f"/projects/{quote(repository, safe='')}"

    def name_author(self) -> str:
        """See `Forge`."""
        return self._author

    def write_comment(self, pull: int, key: str, text: str, others: Collection[str] = ()) -> str:
        """See `Forge`."""
        seen = f"{self._client.api.removesuffix('/api/v4')}/{self._repository}/-/merge_requests/{pull}"
        thread = _GitLabThread(self._client, f"{self._at}/merge_requests/{pull}/notes", seen)
        return write_single_comment(thread, self._author, key, _disarm_orders(text), others)

    def set_status(self, commit: str, context: str, state: StatusState, text: str, url: str = "") -> None:
        """See `Forge`; a status that is pending gets another text only once.

        GitLab changes what has not ended by steps: pending, running, an end. It refuses to repeat one.
        """
        text = text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
        found = self._find_status(commit, context)
        there = found and (_read_state(found), found.read_text("description"), found.read_text("target_url"))
        if there == (state, text, url):
            return
        step: str = "failed" if state == "failure" else state
        if state == "pending" and found and _read_state(found) == "pending":
            step = "running"
        body: dict[str, Any] = {"state": step, "name": context, "description": text, "target_url": url}
        # A later pipeline of the commit, as of a schedule, would get a status of its own, and this one would never end.
        body |= {"pipeline_id": found.get("pipeline_id")} if found and _read_state(found) == "pending" else {}
        sent = {name: value for name, value in body.items() if value}
        path = f"{self._at}/statuses/{quote(commit)}"
        refused = (400,) if step == "running" else ()
        self._client.ask("POST", path, sent, needs=_STATUS, allow=refused)

    def read_status(self, commit: str, context: str) -> CommitStatus | None:
        """See `Forge`."""
        found = self._find_status(commit, context)
        return CommitStatus(_read_state(found), found.read_text("description")) if found else None

    def _find_status(self, commit: str, context: str) -> RestFields | None:
        path = f"{self._at}/repository/commits/{quote(commit)}/statuses"
        # All: without it, GitLab hides those that another author's of the same name followed.
        found = self._client.list_all(path, needs=_READ, allow=(404,), name=context, all="true")
        named = [each for each in found if each.read("name", str) == context]
        mine = [each for each in named if self._is_ours(_name_author(each.find("author")))]
        return max(mine, key=lambda status: status.read("id", int), default=None)

    def _is_ours(self, user: str) -> bool:
        """Is it our user, or that of another access token of the same project? `apply` has one of its own."""
        own, other = _BOT.fullmatch(self._author), _BOT.fullmatch(user)
        return user == self._author or (own is not None and other is not None and own[1] == other[1])

    def list_pulls_of(self, commit: str) -> list[PullRequest]:
        """See `Forge`."""
        path = f"{self._at}/repository/commits/{quote(commit)}/merge_requests"
        pulls = [_read_pull(each) for each in self._client.list_all(path, needs=_READ, allow=(404,))]
        return sorted(pulls, key=lambda pull: (not pull.is_merged, -pull.number))

    def list_open_pulls(self) -> list[PullRequest]:
        """See `Forge`."""
        found = self._client.list_all(f"{self._at}/merge_requests", needs=_READ, state="opened")
        return [_read_pull(each) for each in found]

    def read_pull(self, number: int) -> PullRequest | None:
        """See `Forge`."""
        answer = self._client.ask("GET", f"{self._at}/merge_requests/{number}", needs=_READ, allow=(404,))
        return _read_pull(answer.fields) if answer.status == 200 else None

    def can_write(self, user: str) -> bool:
        """See `Forge`."""
        answer = self._client.ask("GET", f"/users?username={quote(user, safe='')}", needs=_READ)
        for found in check_list(answer.data, answer.asked):
            path = f"{self._at}/members/all/{found.read('id', int)}"
            member = self._client.ask("GET", path, needs=_READ, allow=(404,))
            if member.status == 200:
                level, state = member.fields.read("access_level", int), member.fields.get("state", "active")
                return level >= _DEVELOPER and bool(state == "active")
        return False

    @cached_property
    def _author(self) -> str:
        return _name_author(self._client.ask("GET", "/user", needs=_API).fields)


@dataclass(frozen=True)
class _GitLabThread:
    client: RestClient
    notes: str
    seen: str

    def list_comments(self) -> Iterator[PostedComment]:
        for each in self.client.list_all(self.notes, needs=_READ, sort="asc", order_by="created_at"):
            # GitLab's own notes quote what users wrote.
            if not each.get("system"):
                number, author = each.read("id", int), _name_author(each.find("author"))
                yield PostedComment(number, author, each.read_text("body"), f"{self.seen}#note_{number}")

    def post_comment(self, text: str) -> None:
        self.client.ask("POST", self.notes, {"body": text}, needs=_API)

    def replace_comment(self, number: int, text: str, *, theirs: bool = False) -> bool:
        path, allow = f"{self.notes}/{number}", (404, 403) if theirs else (404,)
        return self.client.ask("PUT", path, {"body": text}, needs=_API, allow=allow).status not in (403, 404)

    def remove_comment(self, number: int, *, theirs: bool = False) -> None:
        allow = (404, 403) if theirs else (404,)
        self.client.ask("DELETE", f"{self.notes}/{number}", needs=_API, allow=allow)


def _disarm_orders(text: str) -> str:
    """Return the text, in which no line begins with a slash."""
    text = text.strip()
    return _ORDER.sub(" ", f"\\{text}" if text.startswith("/") else text)


def _name_author(user: RestFields | None) -> str:
    return "" if user is None else user.read("username", str)


def _read_state(status: RestFields) -> StatusState:
    return _STATES.get(status.read("status", str), "failure")


def _read_pull(data: RestFields) -> PullRequest:
    return PullRequest(
        number=data.read("iid", int),
        branch=data.read("source_branch", str),
        commit=data.read_text("sha"),
        base=data.read("target_branch", str),
        is_open=data.read("state", str) in ("opened", "locked"),
        is_merged=data.read("state", str) == "merged",
        is_fork=data.get("source_project_id") != data.read("target_project_id", int),
    )
