"""A real Gitea for tests: an instance of its own on a free port, with users, repositories and pull requests."""

from __future__ import annotations

import base64
import contextlib
import http.cookiejar
import itertools
import json
import os
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forge_programs import gitea_program
from tests.services import PATIENCE, free_port

ADMIN, PASSWORD = "boss", "no secret: 9aU3"
CONFIG = """
RUN_MODE = prod
RUN_USER = {user}
WORK_PATH = {data}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
STATIC_ROOT_PATH = {assets}
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = {data}/gitea.db
SQLITE_JOURNAL_MODE = WAL
SQLITE_TIMEOUT = 60000
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_v1
SECRET_KEY = none
[service]
DISABLE_REGISTRATION = true
[repository]
ROOT = {data}/repositories
DEFAULT_BRANCH = main
[queue]
TYPE = channel
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[log]
LEVEL = warn
logger.access.MODE = requests
[log.requests]
MODE = file
LEVEL = info
FILE_NAME = {data}/requests.log
[actions]
ENABLED = true
DEFAULT_ACTIONS_URL = self
[session]
PROVIDER = memory
"""


@dataclass(frozen=True)
class Person:
    """A user, and a token that may all."""

    name: str
    token: str


class Gitea:
    """One instance; see `serve_gitea`."""

    def __init__(self, data: Path) -> None:
        """Prepare what it keeps below `data`; it does not run yet."""
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = data / "app.ini"
        owner = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.config.write_text(
            CONFIG.format(user=owner, data=data, port=self.port, url=self.url, assets=gitea_program().parent)
        )
        self._numbers = itertools.count(1)
        self._people: dict[str, Person] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers; its administrator is made before."""
        self._run("migrate")
        words = ["admin", "user", "create", "--admin", "--username", ADMIN, "--password", PASSWORD]
        self._run(*words, "--email", "boss@example.org", "--must-change-password=false")
        self.serve()

    def serve(self) -> None:
        """Start it, which may have been stopped, with what it kept; wait until it answers."""
        with (self.data / "log").open("ab") as log:
            command = [str(gitea_program()), "web", "--config", str(self.config)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment()
            )
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.data / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "Gitea does not answer"
            time.sleep(0.05)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _run(self, *words: str) -> None:
        command = [str(gitea_program()), *words, "--config", str(self.config)]
        done = subprocess.run(command, env=self._environment(), capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.data), "GITEA_WORK_DIR": str(self.data)}

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            self.api("GET", "/version")
            return True
        return False

    def api(self, method: str, path: str, body: Any = None, token: str = "", allow: tuple[int, ...] = ()) -> Any:
        """Ask its REST API, by default as the administrator; its words for the statuses `allow`."""
        login = base64.b64encode(f"{ADMIN}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"token {token}" if token else f"Basic {login}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as exc:
            with exc:
                said = f"{exc.code} {exc.read()[:500]!r}"
            if exc.code in allow:
                return said
            raise AssertionError(f"{method} {path}: {said}") from None
        return json.loads(text) if text else None

    def read_requests(self) -> str:
        """Return what it wrote down of all requests that were answered: `"POST /api/v1/… HTTP/1.1"` in a line."""
        mark, log = f"/version?mark={next(self._numbers)}", self.data / "requests.log"
        self.api("GET", mark)
        deadline = time.monotonic() + PATIENCE
        while mark not in (text := log.read_text() if log.exists() else ""):
            assert time.monotonic() < deadline, "Gitea writes no log of requests"
            time.sleep(0.01)
        return text

    def make_person(self, name: str = "") -> Person:
        """Return the user of that name, or of a new one, with a token; made where there is none."""
        name = name or f"user{next(self._numbers)}"
        if name in self._people:
            return self._people[name]
        who = {"username": name, "email": f"{name}@example.org", "password": PASSWORD, "must_change_password": False}
        self.api("POST", "/admin/users", who)
        self._people[name] = Person(name, self.make_token(name))
        return self._people[name]

    def make_token(self, name: str, *scopes: str) -> str:
        """Make a token of a user's: for all, or for these scopes."""
        login = base64.b64encode(f"{name}:{PASSWORD}".encode()).decode()
        body = json.dumps({"name": f"t{next(self._numbers)}", "scopes": list(scopes) or ["all"]}).encode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1/users/{name}/tokens", body, headers, method="POST")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return str(json.load(answer)["sha1"])

    def make_repository(self, owner: Person, name: str = "") -> GiteaRepository:
        """Make a repository (of a new name) with one commit on main."""
        name = name or f"repo{next(self._numbers)}"
        self.api("POST", "/user/repos", {"name": name, "auto_init": True, "default_branch": "main"}, owner.token)
        return GiteaRepository(self, owner, f"{owner.name}/{name}")


@dataclass(frozen=True)
class GiteaRepository:
    """A repository there."""

    server: Gitea
    owner: Person
    name: str

    def api(self, method: str, path: str, body: Any = None, token: str = "", allow: tuple[int, ...] = ()) -> Any:
        """Ask the REST API of the repository, by default as its owner."""
        return self.server.api(method, f"/repos/{self.name}{path}", body, token or self.owner.token, allow)

    def clone_url(self, person: Person | None = None) -> str:
        """Return the URL by which git reads and writes it as a user (default: its owner)."""
        who = person or self.owner
        return f"{self.server.url}/{self.name}.git".replace("://", f"://{who.name}:{who.token}@")

    def write_file(self, path: str, text: str, branch: str, *, new_branch: str = "") -> str:
        """Commit a new file to a branch, without a clone; return the commit."""
        content = base64.b64encode(text.encode()).decode()
        body = {"content": content, "message": f"write {path}", "branch": branch}
        made = self.api("POST", f"/contents/{path}", body | ({"new_branch": new_branch} if new_branch else {}))
        return str(made["commit"]["sha"])

    def fork(self, person: Person) -> GiteaRepository:
        """Make a fork of it that is that person's."""
        name = self.api("POST", "/forks", {}, person.token)["full_name"]
        return GiteaRepository(self.server, person, str(name))

    def open_pull(self, branch: str, title: str = "a change", token: str = "") -> int:
        """Open a pull request to main, also of a fork ("owner:branch"); return its number."""
        asked = {"head": branch, "base": "main", "title": title}
        return int(self.api("POST", "/pulls", asked, token)["number"])

    def open_fork_pull(self, fork: GiteaRepository, branch: str) -> int:
        """Open a pull request from a fork's branch to main; return its number."""
        body = {"head": f"{fork.owner.name}:{branch}", "base": "main", "title": "a fork's change"}
        return int(self.api("POST", "/pulls", body, fork.owner.token)["number"])

    def close_pull(self, number: int) -> None:
        """Close a pull request without merging it."""
        self.api("PATCH", f"/pulls/{number}", {"state": "closed"})

    def merge(self, number: int, how: str = "merge", *, delete_branch: bool = False) -> str:
        """Merge a pull request (merge, squash or rebase), once Gitea has looked at it; return the commit made."""
        body = {"Do": how, "delete_branch_after_merge": delete_branch}
        deadline = time.monotonic() + PATIENCE
        while not (pull := self.api("GET", f"/pulls/{number}"))["merged"]:
            refused = self.api("POST", f"/pulls/{number}/merge", body, allow=(405, 409))
            assert time.monotonic() < deadline, f"{refused}: {pull}\n{(self.server.data / 'log').read_text()[-2000:]}"
            time.sleep(0.05)
        return str(self.api("GET", f"/pulls/{number}")["merge_commit_sha"])

    def set_secret(self, name: str, value: str) -> None:
        """Set a secret of the repository's Actions."""
        self.api("PUT", f"/actions/secrets/{name}", {"data": value})

    def set_variable(self, name: str, value: str) -> None:
        """Set a new variable of the repository's Actions."""
        self.api("POST", f"/actions/variables/{name}", {"value": value})

    def add_label(self, number: int, name: str) -> None:
        """Put a new label on a pull request."""
        label = self.api("POST", "/labels", {"name": name, "color": "#aaaaaa"})
        self.api("POST", f"/issues/{number}/labels", {"labels": [label["id"]]})

    def dispatch(self, workflow: str) -> None:
        """Run a workflow of main by hand."""
        self.api("POST", f"/actions/workflows/{workflow}/dispatches", {"ref": "main"})

    def list_runs(self, commit: str, event: str) -> list[dict[str, Any]]:
        """Return the runs of workflows for a commit, of that event."""
        return list(self.api("GET", f"/actions/runs?head_sha={commit}&event={event}")["workflow_runs"])

    def list_jobs(self, job: str, commit: str, event: str) -> list[str]:
        """Return how the job of a commit stands, once for each run of that event."""
        runs = self.list_runs(commit, event)
        found = [each for run in runs for each in self.api("GET", f"/actions/runs/{run['id']}/jobs")["jobs"]]
        return sorted(each.get("conclusion") or each["status"] for each in found if each["name"] == job)

    def approve(self, commit: str) -> None:
        """Let the runs for a stranger's commit begin, as the owner does by a button: the REST API has no such call."""
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), jar)
        login = urllib.parse.urlencode({"user_name": self.owner.name, "password": PASSWORD}).encode()
        browser.open(f"{self.server.url}/user/login", login, timeout=60).close()
        for run in self.list_runs(commit, "pull_request"):
            url = f"{self.server.url}/{self.name}/actions/runs/{run['id']}/approve"
            browser.open(url, b"", timeout=60).close()

    def list_comments(self, number: int) -> list[dict[str, Any]]:
        """Return the comments of a pull request."""
        return list(self.api("GET", f"/issues/{number}/comments"))

    def list_statuses(self, commit: str, context: str) -> list[dict[str, Any]]:
        """Return the statuses of a commit of one context, the newest first."""
        found = self.api("GET", f"/commits/{commit}/statuses?limit=50")
        return sorted((each for each in found if each["context"] == context), key=lambda each: -each["id"])


@contextlib.contextmanager
def serve_gitea(data: Path) -> Iterator[Gitea]:
    """Run a Gitea that keeps everything below `data`."""
    server = Gitea(data)
    try:
        server.start()
        yield server
    finally:
        server.stop()
