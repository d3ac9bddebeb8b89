"""A double of GitHub's REST API, as far as `monkey.forge` asks it: the differences to Gitea, which runs for real.

By docs.github.com of 2022-11-28: a job's token may not `GET /user`; comments are paged; 140 characters of a status; the
header that names the permissions which would do.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.forges.double import Asked, Double, Refusal, Request

REPOSITORY = "lab/sweeps"
_AT = f"/repos/{REPOSITORY}"
#: Login of whom a job's token belongs to.
BOT = "github-actions[bot]"


class GitHubDouble(Double):
    """GitHub with one repository."""

    forbidden = "Resource not accessible by integration"
    forbidden_headers: ClassVar[dict[str, str]] = {"X_Accepted_GitHub_Permissions": "issues=write; pull_requests=write"}
    ROUTES = (
        ("GET", "/user", "get_user"),
        ("POST", "/graphql", "get_viewer"),
        ("GET", f"{_AT}/issues/(\\d+)/comments", "list_comments"),
        ("POST", f"{_AT}/issues/(\\d+)/comments", "post_comment"),
        ("PATCH", f"{_AT}/issues/comments/(\\d+)", "patch_comment"),
        ("DELETE", f"{_AT}/issues/comments/(\\d+)", "delete_comment"),
        ("GET", f"{_AT}/pulls", "list_pulls"),
        ("GET", f"{_AT}/pulls/(\\d+)", "get_pull"),
        ("GET", f"{_AT}/commits/([^/]+)/pulls", "list_pulls_of"),
        ("GET", f"{_AT}/commits/([^/]+)/statuses", "list_statuses"),
        ("POST", f"{_AT}/statuses/([^/]+)", "post_status"),
        ("GET", f"{_AT}/collaborators/([^/]+)/permission", "get_permission"),
    )

    def read_token(self, headers: dict[str, str]) -> str:
        """See `Double`."""
        return headers.get("authorization", "").partition(" ")[2]

    def get_user(self, asked: Asked) -> Any:
        if asked.user.endswith("[bot]"):
            raise Refusal(403, "Resource not accessible by integration")
        return {"login": asked.user}

    def get_viewer(self, asked: Asked) -> Any:
        return {"data": {"viewer": {"login": asked.user}}}

    #: A field that no comment has in lists.
    leaves_out = ""

    def list_comments(self, asked: Asked, number: str) -> Any:
        found = self.find_pull(number).comments.values()
        return [{name: value for name, value in each.items() if name != self.leaves_out} for each in found]

    def post_comment(self, asked: Asked, number: str) -> Any:
        self.may_write(asked)
        if len(asked.body["body"]) > 65_536:
            raise Refusal(422, "Body is too long (maximum is 65536 characters)")
        made = next(self.ids)
        url = f"{self.url}/{REPOSITORY}/pull/{number}#issuecomment-{made}"
        comment = {"id": made, "body": asked.body["body"], "user": {"login": asked.user}, "html_url": url}
        self.find_pull(number).comments[made] = comment
        return comment

    def patch_comment(self, asked: Asked, number: str) -> Any:
        self.may_write(asked)
        comment = self.find_comment(number)[1]
        comment["body"] = asked.body["body"]
        return comment

    def delete_comment(self, asked: Asked, number: str) -> None:
        self.may_write(asked)
        pull, comment = self.find_comment(number)
        del pull.comments[comment["id"]]

    def list_pulls(self, asked: Asked) -> Any:
        return [_describe(pull) for pull in self.pulls.values() if pull.state == asked.query.get("state", "open")]

    def get_pull(self, asked: Asked, number: str) -> Any:
        pull = self.find_pull(number)
        return {**_describe(pull), "merged": pull.state == "merged"}

    def list_pulls_of(self, asked: Asked, commit: str) -> Any:
        return [_describe(pull) for pull in self.pulls.values() if commit in (pull.commit, pull.merged_as)]

    def list_statuses(self, asked: Asked, commit: str) -> Any:
        return [status for status in reversed(self.statuses) if status["sha"] == commit]

    def post_status(self, asked: Asked, commit: str) -> Any:
        self.may_write(asked)
        body = asked.body
        if len(body["description"]) > 140:
            raise Refusal(422, "Validation Failed")
        if body["state"] not in ("error", "failure", "pending", "success"):
            raise Refusal(422, "Validation Failed")
        self.statuses.append({**body, "id": next(self.ids), "sha": commit, "creator": {"login": asked.user}})
        return self.statuses[-1]

    def get_permission(self, asked: Asked, user: str) -> Any:
        if user not in self.roles:
            raise Refusal(404, "Not Found")
        return {"permission": self.roles[user]}


def _describe(pull: Request) -> dict[str, Any]:
    repo, source = {"full_name": REPOSITORY}, {"full_name": "outsider/sweeps" if pull.is_fork else REPOSITORY}
    return {
        "number": pull.number,
        "state": "open" if pull.state == "open" else "closed",
        "merged_at": "2026-11-25T12:00:00Z" if pull.state == "merged" else None,
        "head": {"ref": pull.branch, "sha": pull.commit, "repo": source},
        "base": {"ref": "main", "sha": "0" * 40, "repo": repo},
    }
