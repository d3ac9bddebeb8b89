"""A runner of Gitea's Actions for tests: it takes tasks by the runners' own protocol, and has act run each.

A double of act_runner, which is no module that can be had here. What it does like the real one: the protocol (Connect,
in JSON), one job at a time, the job's own token, secrets and variables, logs, results. What it does itself:

- `actions/checkout` is a clone that it makes, as deep as the step asks for (1 by default): a missing depth is noticed.
- Jobs run on this machine, with the environment that the test gives: no container.
- Other actions are directories of this machine that the test names: nothing is fetched from elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.forge_programs import act_program
from tests.forges.act import run_act
from tests.forges.gitea import Gitea

LABEL = "ubuntu-latest"
#: Results of tasks and steps, as the protocol numbers them.
SUCCESS, FAILURE, SKIPPED = 1, 2, 4
#: Seconds between two questions for a task.
STEP = 0.2


@dataclass
class Task:
    """A job that was run."""

    event: str
    job: str
    commit: str
    result: int
    log: str
    #: Names of the secrets that it was given.
    secrets: tuple[str, ...] = ()
    #: Where all of it lies, but for what it wrote in its home.
    at: Path = Path()
    killed: bool = False


@dataclass
class GiteaRunner:
    """A runner of one instance, in a thread; see `run_tasks`."""

    server: Gitea
    work: Path
    #: What jobs find in their environment, besides what Gitea gives them: PATH at least.
    environ: Mapping[str, str]
    #: Actions as workflows name them, "owner/name@ref", to the directories that they are taken from.
    actions: Mapping[str, Path] = field(default_factory=dict)
    #: What jobs of a second runner find there instead; see `beside`.
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    #: Asked with a job of a push, and its commit: for which commits a second runner runs that job at the same time. So
    #: it is with a server that knows no concurrency, and where a run is repeated.
    beside: Callable[[str, str], Sequence[str]] = lambda job, commit: ()
    #: Asked with a job and each row that it prints: whether it is killed now, with all its processes.
    kills: Callable[[str, str], bool] = lambda job, row: False
    tasks: list[Task] = field(default_factory=list)
    failure: BaseException | None = None
    _identity: tuple[str, str] = ("", "")

    def register(self) -> None:
        """Make it known to the server."""
        token = self.server.api("POST", "/admin/actions/runners/registration-token")["token"]
        said = {"name": "test", "token": token, "labels": [f"{LABEL}:host"], "version": "v0.2.13"}
        runner = self._call("Register", said)["runner"]
        self._identity = (runner["uuid"], runner["token"])
        self._call("Declare", {"version": "v0.2.13", "labels": [LABEL]})

    def work_until(self, stop: threading.Event) -> None:
        """Take tasks and run them, one after another."""
        try:
            while not stop.is_set():
                # Version 0 has the server look for a task each time, and not only after it knows of a new one.
                task = self._call("FetchTask", {"tasksVersion": "0"}).get("task")
                if task is not None:
                    self.tasks += self._run(task)
                else:
                    stop.wait(STEP)
        except BaseException as exc:
            self.failure = exc

    def _call(self, method: str, body: Any) -> Any:
        uuid, token = self._identity
        headers = {
            "Content-Type": "application/json",
            "Connect-Protocol-Version": "1",
            "x-runner-uuid": uuid,
            "x-runner-token": token,
        }
        url = f"{self.server.url}/api/actions/runner.v1.RunnerService/{method}"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as exc:
            with exc:
                said = exc.read()[:500]
            raise AssertionError(f"{method}: {exc.code} {said!r}") from None

    def _run(self, task: dict[str, Any]) -> list[Task]:
        context, number, started = task["context"], int(task["id"]), _now()
        flow = YAML().load(base64.b64decode(task["workflowPayload"]))
        (name,) = flow["jobs"]
        steps = len(flow["jobs"][name].get("steps", []))
        self._report(number, started, 0, steps)
        others = self.beside(name, context["sha"]) if context["event_name"] == "push" else ()
        with ThreadPoolExecutor(1 + len(others)) as pool:
            ours = pool.submit(self._work, task, context, self.work / f"{number}", self.environ)
            there = {**self.environ, **self.elsewhere}
            beside = [
                pool.submit(self._work, task, {**context, "sha": commit}, self.work / f"{number}-{commit[:8]}", there)
                for commit in others
            ]
        done = ours.result()
        log = [{"time": _now(), "content": row} for row in done.log.splitlines()]
        self._call("UpdateLog", {"taskId": number, "index": 0, "rows": log, "noMore": True})
        self._report(number, started, done.result, steps)
        return [done, *(each.result() for each in beside)]

    def _work(self, task: dict[str, Any], context: dict[str, Any], at: Path, environ: Mapping[str, str]) -> Task:
        """Run a task for the commit of `context`, in the directory `at`."""
        yaml = YAML()
        yaml.width = 10_000
        flow = yaml.load(base64.b64decode(task["workflowPayload"]))
        # What the server has looked after: act would wait for jobs that are not in this file.
        (name,) = flow["jobs"]
        flow.pop("concurrency", None)
        for key in ("needs", "concurrency"):
            flow["jobs"][name].pop(key, None)
        # The server hands numbers on as text, which act's own checks refuse and act_runner, which has none, takes.
        if limit := flow["jobs"][name].get("timeout-minutes"):
            flow["jobs"][name]["timeout-minutes"] = int(limit)
        at.mkdir(parents=True)
        self._check_out(at / "src", context, flow["jobs"][name].get("steps", []))
        with (at / "flow.yml").open("w") as file:
            yaml.dump(flow, file)
        (at / "event.json").write_text(json.dumps(context["event"]))
        secrets = {**task.get("secrets", {}), "GITHUB_TOKEN": context["token"]}
        # JSON is YAML, and has values of several lines.
        (at / "secrets.yml").write_text(json.dumps(secrets))
        (at / "vars.yml").write_text(json.dumps(task.get("vars", {})))
        code, rows, killed = self._act(at, context, environ, lambda row: self.kills(name, row))
        known = any("Success - Main" in row for row in rows)
        result = FAILURE if code else SUCCESS if known else SKIPPED
        given = tuple(sorted(task.get("secrets", {})))
        return Task(context["event_name"], name, context["sha"], result, "\n".join(rows), given, at, killed)

    def _check_out(self, at: Path, context: dict[str, Any], steps: list[Any]) -> None:
        """Clone what `actions/checkout` would, with the job's token, and leave no token there."""
        at.mkdir()
        url = f"{self.server.url}/{context['repository']}.git"
        uses = [step for step in steps if str(step.get("uses", "")).startswith(("actions/checkout@", "./"))]
        _git(at, "init", "--quiet")
        _git(at, "remote", "add", "origin", url)
        if not uses:
            return
        depth = str(next((step.get("with", {}).get("fetch-depth", 1) for step in uses), 1))
        login = base64.b64encode(f"x:{context['token']}".encode()).decode()
        wanted = [f"+{context['sha']}:refs/remotes/origin/checked-out"]
        wanted += ["+refs/heads/*:refs/remotes/origin/*"] if depth == "0" else []
        words = ["fetch", "--quiet", *([] if depth == "0" else ["--depth", depth]), "origin", *wanted]
        _git(at, "-c", f"http.extraHeader=Authorization: Basic {login}", *words)
        _git(at, "checkout", "--quiet", "--detach", context["sha"])

    def _act(
        self, at: Path, context: dict[str, Any], environ: Mapping[str, str], kills: Callable[[str], bool]
    ) -> tuple[int, list[str], bool]:
        """Run the workflow, and return act's exit code, what it printed, and whether it was killed."""
        given = {
            "CI": "true",
            "GITEA_ACTIONS": "true",
            "GITHUB_API_URL": f"{self.server.url}/api/v1",
            "GITHUB_SERVER_URL": self.server.url,
            "GITHUB_REPOSITORY": context["repository"],
            "GITHUB_RUN_ID": str(context["run_id"]),
            "GITHUB_SHA": context["sha"],
            "GITHUB_REF": context["ref"],
            "GITHUB_REF_NAME": context.get("ref_name", ""),
            "GITHUB_REF_TYPE": context.get("ref_type", "branch"),
            "GITHUB_HEAD_REF": context.get("head_ref", ""),
            "GITHUB_BASE_REF": context.get("base_ref", ""),
            **environ,
        }
        words = [str(act_program()), context["event_name"], "-C", str(at / "src"), "-W", str(at / "flow.yml")]
        words += ["-P", f"{LABEL}=-self-hosted", "-e", str(at / "event.json"), "-a", context["actor"], "--json"]
        words += ["--secret-file", str(at / "secrets.yml"), "--var-file", str(at / "vars.yml")]
        # Without it, act listens on an address that others reach.
        words += ["--no-cache-server"]
        for name, path in self.actions.items():
            words += ["--local-repository", f"{name}={path}"]
        for name, value in given.items():
            words += ["--env", f"{name}={value}"]
        # act keeps its settings and its copies of actions there.
        own = {"PATH": self.environ["PATH"], "HOME": str(at), "XDG_CACHE_HOME": str(at / "cache")}
        return run_act(words, own, at, kills)

    def _report(self, number: int, started: str, result: int, steps: int) -> None:
        ended = {"result": result, "stoppedAt": _now()} if result else {}
        of_steps = [{"id": step, "startedAt": started, **ended} for step in range(steps)]
        self._call("UpdateTask", {"state": {"id": number, "startedAt": started, "steps": of_steps, **ended}})


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _git(at: Path, *words: str) -> None:
    done = subprocess.run(["git", "-C", str(at), *words], capture_output=True, text=True)
    assert done.returncode == 0, f"git {words[0]}: {done.stderr}"


@contextlib.contextmanager
def run_tasks(
    server: Gitea, work: Path, environ: Mapping[str, str], actions: Mapping[str, Path] | None = None
) -> Iterator[GiteaRunner]:
    """Run the instance's tasks; `environ`, `actions`: see `GiteaRunner`."""
    runner = GiteaRunner(server, work, {"PATH": os.environ["PATH"], **environ}, actions or {})
    runner.register()
    stop = threading.Event()
    thread = threading.Thread(target=runner.work_until, args=(stop,))
    thread.start()
    try:
        yield runner
    finally:
        stop.set()
        thread.join()
        if runner.failure is not None:
            raise AssertionError("the runner failed") from runner.failure
