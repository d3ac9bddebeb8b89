"""A double of GitLab's REST API, as far as `monkey.forge` asks it: GitLab itself cannot run here.

By docs.gitlab.com (API v4) and GitLab's own source: `create_commit_status_service.rb`, `commit_status.rb`,
`commit_statuses.rb` and `pipeline_policy.rb`.

- A status is a job of a pipeline: of the newest of its commit, unless the request names one. Without any pipeline, one
  is made for a branch that has the commit.
- A status that has not ended takes steps forward only. One that has ended is followed by another of the same name, and
  hides all earlier ones of the name in its pipeline, whoever set them: `all=true` lists these, too.
- In a pipeline of a protected branch, only users may set one who may push or merge there.
- A line of a note may be an order ("quick action"), except in code. What is code is judged by `extractor.rb`, which
  takes the first line of three backticks for a block's end, however many began it.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tests.forges.double import Asked, Double, Refusal, Request

REPOSITORY = "lab/deep/sweeps"
_AT = "/api/v4/projects/lab%2Fdeep%2Fsweeps"
#: State → the states that it may follow, in one status.
_STEPS = {
    "pending": {"created"},
    "running": {"created", "pending"},
    "success": {"created", "pending", "running"},
    "failed": {"created", "pending", "running"},
}
_ORDERS = re.compile(
    r"^```.+?\n```$|^.*`\n*.+?\n*`$|^<[^>]+?>\n.+?\n</[^>]+?>$|^>>>.+?\n>>>$"
    r"|^/(?P<order>approve|close|label|merge)(?: [^\n]*)?(?:\s*\n|$)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
#: What a user may → the access level: Reporter, Developer, Maintainer.
_LEVELS = {"read": 20, "write": 30, "maintain": 40}


class GitLabPipeline(NamedTuple):
    """A pipeline: its number, its commit, and the branch it is of."""

    id: int
    commit: str
    ref: str


class GitLabDouble(Double):
    """GitLab with one project, whose branch `main` is protected as by default: for Maintainers."""

    def __init__(self) -> None:
        """Begin to listen."""
        super().__init__()
        self.pipelines: list[GitLabPipeline] = []
        #: What notes told GitLab to do.
        self.orders: list[str] = []
        #: Protected branch → the access level from which users may push or merge there.
        self.protected = {"main": _LEVELS["maintain"]}

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
        return [
            _describe(pull)
            for pull in self.pulls.values()
            if commit in (pull.commit, pull.merged_as) or commit in pull.commits
        ]

    def list_notes(self, asked: Asked, number: str) -> Any:
        if asked.query.get("sort") != "asc":
            raise Refusal(400, "the double knows one order")
        # GitLab's own: it may quote what users wrote.
        own = {"id": 0, "body": "<!-- monkey:plan:shop -->", "system": True, "author": {"username": asked.user}}
        return [own, *self.find_pull(number).comments.values()]

    def take_orders(self, text: str) -> None:
        """Do what a note says."""
        found = (match["order"] for match in _ORDERS.finditer(text.replace("\r", "")))
        self.orders += [order for order in found if order]

    def post_note(self, asked: Asked, number: str) -> Any:
        self.may_write(asked)
        self.take_orders(asked.body["body"])
        made = next(self.ids)
        note = {"id": made, "body": asked.body["body"], "system": False, "author": {"username": asked.user}}
        self.find_pull(number).comments[made] = note
        return note

    def put_note(self, asked: Asked, number: str) -> Any:
        note = self.find_comment(number)[1]
        if note["author"]["username"] != asked.user:
            raise Refusal(403, "403 Forbidden")
        self.take_orders(asked.body["body"])
        note["body"] = asked.body["body"]
        return note

    def delete_note(self, asked: Asked, number: str) -> None:
        pull, note = self.find_comment(number)
        if note["author"]["username"] != asked.user:
            raise Refusal(403, "403 Forbidden")
        del pull.comments[note["id"]]

    def start_pipeline(self, commit: str, ref: str) -> GitLabPipeline:
        """Make a pipeline of a commit, without any job."""
        self.pipelines.append(GitLabPipeline(next(self.ids), commit, ref))
        return self.pipelines[-1]

    def list_branches(self, commit: str) -> list[str]:
        """Return the branches that have the commit."""
        heads = [pull.branch for pull in self.pulls.values() if pull.state == "open" and pull.commit == commit]
        return [*heads, *("main" for pull in self.pulls.values() if pull.merged_as == commit)]

    def may_write(self, asked: Asked) -> None:
        """See `Double`."""
        if self._level(asked.user) < _LEVELS["write"]:
            raise Refusal(403, self.forbidden)

    def _level(self, user: str) -> int:
        return _LEVELS.get(self.roles.get(user, ""), 0)

    def _find_pipeline(self, wanted: int | None, commit: str) -> GitLabPipeline:
        found = [each for each in self.pipelines if each.commit == commit and wanted in (None, each.id)]
        if found:
            return found[-1]
        if wanted is not None:
            raise Refusal(404, "404 Pipeline for pipeline_id, sha and ref Not Found")
        refs = self.list_branches(commit)
        if not refs:
            raise Refusal(404, "404 References for commit Not Found")
        return self.start_pipeline(commit, refs[0])

    def list_statuses(self, asked: Asked, commit: str) -> Any:
        named, hidden = asked.query.get("name"), asked.query.get("all") == "true"
        found = [each for each in self.statuses if each["sha"] == commit and named in (None, each["name"])]
        return [each for each in found if hidden or not each["retried"]]

    def post_status(self, asked: Asked, commit: str) -> Any:
        self.may_write(asked)
        body = asked.body
        name, state = body["name"], body["state"]
        if any(len(body.get(what) or "") > 255 for what in ("description", "target_url")):
            raise Refusal(400, "is too long (maximum is 255 characters)")
        pipeline = self._find_pipeline(body.get("pipeline_id"), commit)
        if self._level(asked.user) < self.protected.get(pipeline.ref, 0):
            raise Refusal(403, "403 Forbidden")
        same = [each for each in self.statuses if (each["pipeline_id"], each["name"]) == (pipeline.id, name)]
        mine = (each for each in same if each["author"]["username"] == asked.user)
        active = next((each for each in mine if each["status"] in ("pending", "running")), None)
        before = active["status"] if active else "created"
        if before not in _STEPS[state]:
            raise Refusal(
                400, f"Cannot transition status via :{state} from :{before} (Reason(s): Status cannot transition)"
            )
        if active is None:
            active = {"id": next(self.ids), "sha": commit, "name": name, "author": {"username": asked.user}}
            active |= {"pipeline_id": pipeline.id, "ref": pipeline.ref}
            self.statuses.append(active)
        for each in same:
            each["retried"] = True
        active |= {"status": state, "description": body.get("description"), "target_url": body.get("target_url")}
        active["retried"] = False
        return active


def _describe(pull: Request) -> dict[str, Any]:
    return {
        "iid": pull.number,
        "state": "opened" if pull.state == "open" else pull.state,
        "source_branch": pull.branch,
        "target_branch": "main",
        "sha": pull.commit,
        "source_project_id": 8 if pull.is_fork else 7,
        "target_project_id": 7,
    }
