"""A double of GitLab's REST API, as far as `monkey.forge` asks it: GitLab itself cannot run here.

By docs.gitlab.com (API v4) and `app/models/commit_status.rb`: a status that has not ended takes steps forward only; one
that has ended is followed by another of the same name.
"""

from __future__ import annotations

from typing import Any

from tests.forges.double import Asked, Double, Refusal, Request

REPOSITORY = "lab/deep/sweeps"
_AT = "/api/v4/projects/lab%2Fdeep%2Fsweeps"
#: State → the states that it may follow, in one status.
_STEPS = {
    "pending": {"created"},
    "running": {"pending"},
    "success": {"created", "pending", "running"},
    "failed": {"created", "pending", "running"},
}
_LEVELS = {"read": 20, "write": 30}


class GitLabDouble(Double):
    """GitLab with one project."""

    ROUTES = (
        ("GET", "/api/v4/user", "get_user"),
        ("GET", "/api/v4/users", "list_users"),
        ("GET", f"{_AT}/members/all/(\\d+)", "get_member"),
        ("GET", f"{_AT}/merge_requests", "list_requests"),
        ("GET", f"{_AT}/merge_requests/(\\d+)", "get_request"),
        ("GET", f"{_AT}/merge_requests/(\\d+)/notes", "list_notes"),
        ("POST", f"{_AT}/merge_requests/(\\d+)/notes", "post_note"),
        ("PUT", f"{_AT}/merge_requests/\\d+/notes/(\\d+)", "put_note"),
        ("DELETE", f"{_AT}/merge_requests/\\d+/notes/(\\d+)", "delete_note"),
        ("GET", f"{_AT}/repository/commits/([^/]+)/merge_requests", "list_requests_of"),
        ("GET", f"{_AT}/repository/commits/([^/]+)/statuses", "list_statuses"),
        ("POST", f"{_AT}/statuses/([^/]+)", "post_status"),
    )

    def read_token(self, headers: dict[str, str]) -> str:
        """See `Double`."""
        return headers.get("private-token", "")

    def get_user(self, asked: Asked) -> Any:
        return {"username": asked.user}

    def list_users(self, asked: Asked) -> Any:
        logins = sorted(self.users.values())
        return [{"id": logins.index(login) + 1} for login in logins if login == asked.query["username"]]

    def get_member(self, asked: Asked, number: str) -> Any:
        login = sorted(self.users.values())[int(number) - 1]
        if login not in self.roles:
            raise Refusal(404, "404 Not found")
        return {"access_level": _LEVELS[self.roles[login]], "state": "active"}

    def list_requests(self, asked: Asked) -> Any:
        wanted = {"opened": "open"}.get(asked.query["state"], asked.query["state"])
        return [_describe(pull) for pull in self.pulls.values() if pull.state == wanted]

    def get_request(self, asked: Asked, number: str) -> Any:
        return _describe(self.find_pull(number))

    def list_requests_of(self, asked: Asked, commit: str) -> Any:
        return [_describe(pull) for pull in self.pulls.values() if commit in (pull.commit, pull.merged_as)]

    def list_notes(self, asked: Asked, number: str) -> Any:
        if asked.query.get("sort") != "asc":
            raise Refusal(400, "the double knows one order")
        # GitLab's own: it may quote what users wrote.
        own = {"id": 0, "body": "<!-- monkey:plan:shop -->", "system": True, "author": {"username": asked.user}}
        return [own, *self.find_pull(number).comments.values()]

    def post_note(self, asked: Asked, number: str) -> Any:
        self.may_write(asked)
        made = next(self.ids)
        note = {"id": made, "body": asked.body["body"], "system": False, "author": {"username": asked.user}}
        self.find_pull(number).comments[made] = note
        return note

    def put_note(self, asked: Asked, number: str) -> Any:
        note = self.find_comment(number)[1]
        if note["author"]["username"] != asked.user:
            raise Refusal(403, "403 Forbidden")
        note["body"] = asked.body["body"]
        return note

    def delete_note(self, asked: Asked, number: str) -> None:
        pull, note = self.find_comment(number)
        if note["author"]["username"] != asked.user:
            raise Refusal(403, "403 Forbidden")
        del pull.comments[note["id"]]

    def list_statuses(self, asked: Asked, commit: str) -> Any:
        named = asked.query.get("name")
        return [each for each in self.statuses if each["sha"] == commit and named in (None, each["name"])]

    def post_status(self, asked: Asked, commit: str) -> Any:
        self.may_write(asked)
        body = asked.body
        name, state = body["name"], body["state"]
        if len(body.get("description", "")) > 255:
            raise Refusal(400, "description is too long (maximum is 255 characters)")
        mine = [each for each in self.statuses if (each["sha"], each["name"]) == (commit, name)]
        active = next((each for each in mine if each["status"] in ("created", "pending", "running")), None)
        before = active["status"] if active else "created"
        if before not in _STEPS[state]:
            raise Refusal(
                400, f"Cannot transition status via :{state} from :{before} (Reason(s): Status cannot transition)"
            )
        if active is None:
            active = {"id": next(self.ids), "sha": commit, "name": name, "author": {"username": asked.user}}
            self.statuses.append(active)
        active |= {"status": state, "description": body.get("description"), "target_url": body.get("target_url")}
        return active


def _describe(pull: Request) -> dict[str, Any]:
    return {
        "iid": pull.number,
        "state": "opened" if pull.state == "open" else pull.state,
        "source_branch": pull.branch,
        "target_branch": "main",
        "sha": pull.commit,
        "source_project_id": 7,
        "target_project_id": 7,
    }
