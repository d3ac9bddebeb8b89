"""Pipelines of the double of GitLab, run by gitlab-ci-local on this machine, as GitLab's shell runner would.

What it does itself, by docs.gitlab.com ("Predefined CI/CD variables", "CI/CD variables") and GitLab's source:

- A job's checkout is a new clone, as deep as GIT_DEPTH says, at a detached commit.
- Variables are given as GitLab gives them: protected ones to pipelines of protected branches alone, never to those of
  merge requests; gitlab-ci-local looks after their environments, and makes files of the others.
- Nothing else of this machine is there, but what the test says of the runner.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.ci_linters import gitlab_program
from tests.forges.gitlab_double import REPOSITORY
from tests.forges.gitlab_project import BRANCH, GitLabProject

#: Seconds within which a pipeline must end.
LIMIT = 300
#: GitLab's own depth of a clone, where a pipeline names none.
_DEPTH = "20"
_PROJECT = "7"


@dataclass(frozen=True)
class CiVariable:
    """A variable of the project's settings."""

    name: str
    value: str
    #: The environment whose jobs have it; "*": all have.
    scope: str = "*"
    protected: bool = False
    is_file: bool = False


@dataclass(frozen=True)
class PipelineRun:
    """A pipeline that ended: whether it passed, its jobs' logs, and all that was said."""

    passed: bool
    logs: dict[str, str]
    said: str


@dataclass
class GitLabRunner:
    """A runner that stays: it has a home, and a directory for temporary files."""

    project: GitLabProject
    base: Path
    environ: Mapping[str, str]
    variables: Sequence[CiVariable] = ()
    runs: list[PipelineRun] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """The home of the runner's user."""
        return self.base / "home"

    @property
    def temporary(self) -> Path:
        """Where that user's programs make temporary files."""
        return self.base / "tmp"

    def run_request(self, number: int, labels: str = "") -> PipelineRun:
        """Run a merge request's pipeline, of the head of its branch."""
        pull = self.project.pulls[number]
        return self._run(
            pull.commit,
            pull.branch,
            protected=False,
            CI_PIPELINE_SOURCE="merge_request_event",
            CI_MERGE_REQUEST_IID=str(number),
            CI_MERGE_REQUEST_PROJECT_ID=_PROJECT,
            CI_MERGE_REQUEST_SOURCE_PROJECT_ID=_PROJECT,
            CI_MERGE_REQUEST_SOURCE_BRANCH_NAME=pull.branch,
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME=BRANCH,
            **({"CI_MERGE_REQUEST_LABELS": labels} if labels else {}),
        )

    def run_branch(self, source: str = "push", **variables: str) -> PipelineRun:
        """Run a pipeline of the protected branch: of a push, or of a schedule with its variables."""
        about = {"CI_PIPELINE_SOURCE": source, "CI_COMMIT_BRANCH": BRANCH, **variables}
        return self._run(self.project.head(BRANCH), BRANCH, protected=BRANCH in self.project.protected, **about)

    def _run(self, commit: str, ref: str, *, protected: bool, **about: str) -> PipelineRun:
        pipeline = self.project.start_pipeline(commit, ref)
        url = f"{self.project.url}/{REPOSITORY}"
        said = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": f"{self.project.url}/api/v4",
            "CI_SERVER_URL": self.project.url,
            "CI_PROJECT_ID": _PROJECT,
            "CI_PROJECT_PATH": REPOSITORY,
            "CI_PROJECT_URL": url,
            "CI_DEFAULT_BRANCH": BRANCH,
            "CI_COMMIT_SHA": commit,
            "CI_COMMIT_REF_NAME": ref,
            "CI_COMMIT_REF_PROTECTED": str(protected).lower(),
            "CI_PIPELINE_ID": str(pipeline.id),
            "CI_PIPELINE_URL": f"{url}/-/pipelines/{pipeline.id}",
            "GITLAB_USER_LOGIN": "alice",
            **about,
        }
        given = [each for each in self.variables if protected or not each.protected]
        done, logs = self._start(commit, said, given)
        self.runs.append(PipelineRun(done.returncode == 0, logs, done.stdout + done.stderr))
        return self.runs[-1]

    def _start(
        self, commit: str, said: Mapping[str, str], given: Sequence[CiVariable]
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        at = self.base / "builds" / said["CI_PIPELINE_ID"]
        self._check_out(at, commit)
        kept: dict[str, dict[str, object]] = {}
        for each in given:
            form = "file" if each.is_file else "variable"
            values = kept.setdefault(each.name, {"type": form, "values": {}})["values"]
            assert isinstance(values, dict)
            values[each.scope] = each.value
        # Beside the checkout, in which GitLab's runner leaves nothing.
        state = Path("..") / f"{at.name}.state"
        (at / state).mkdir()
        # JSON is YAML.
        (at / state / "variables.yml").write_text(json.dumps({"global": kept}))
        words = [str(gitlab_program()), "--force-shell-executor", "--home", str(at), "--state-dir", str(state)]
        # The schema is tested elsewhere, and takes a while.
        words += ["--ignore-predefined-vars", ",".join(said), "--json-schema-validation=false"]
        # What GitLab sets for branches alone.
        words += [] if "CI_COMMIT_BRANCH" in said else ["--unset-variable", "CI_COMMIT_BRANCH"]
        for name, value in said.items():
            words += ["--variable", f"{name}={value}"]
        for path in (self.home, self.temporary):
            path.mkdir(exist_ok=True)
        env = {**self.environ, "HOME": str(self.home), "TMPDIR": str(self.temporary), "NO_COLOR": "1"}
        node = shutil.which("node") or "node"
        done = subprocess.run([node, *words], cwd=at, env=env, capture_output=True, text=True, timeout=LIMIT)
        logs = {log.stem: log.read_text() for log in (at / state / "output").glob("*.log")}
        self._remove_copies()
        return done, logs

    def _remove_copies(self) -> None:
        """Remove what gitlab-ci-local leaves of variables that are files: of each job that it looked at, in /tmp."""
        ours = {each.value for each in self.variables if each.is_file}
        for path in Path("/tmp").glob("gitlab-ci-local-file-variables-*"):
            with contextlib.suppress(FileNotFoundError):
                if any(file.read_text() in ours for file in path.iterdir()):
                    shutil.rmtree(path)

    def _check_out(self, at: Path, commit: str) -> None:
        at.mkdir(parents=True)
        text = subprocess.check_output(["git", "-C", self.project.path, "show", f"{commit}:.gitlab-ci.yml"], text=True)
        found = re.search(r'^ +GIT_DEPTH: "(\d+)"$', text, re.MULTILINE)
        depth = found[1] if found else _DEPTH
        refs = ["+refs/heads/*:refs/remotes/origin/*"] if depth == "0" else ["--depth", depth]
        for words in (
            ["init", "--quiet"],
            ["remote", "add", "origin", str(self.project.path)],
            ["fetch", "--quiet", "origin", *refs, commit],
            ["checkout", "--quiet", "--detach", commit],
        ):
            done = subprocess.run(["git", "-C", at, *words], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
