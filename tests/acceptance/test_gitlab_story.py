"""The whole loop at GitLab, by the pipeline that `monkey init --ci gitlab` writes: no word of it is changed.

GitLab is a double with a real repository, and gitlab-ci-local runs the pipelines: see `tests.forges`. The runner stays,
as a shell runner does, and has no monkey. Machines are hosts of the lab, and the store is a bucket.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.acceptance.gitea_story import write_wheel
from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import until
from tests.forges.gitlab_project import BRANCH, GitLabProject
from tests.forges.gitlab_runner import CiVariable, GitLabRunner, PipelineRun
from tests.host_root import USER
from tests.trusting import trust

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitlab-ci-local"), pytest.mark.needs("moto")]

PLAN, RESULTS = "<!-- monkey:plan:shop -->", "<!-- monkey:results:shop:sweep -->"
#: Users of the project's two access tokens.
PLANNER, APPLIER = "project_7_bot_0f3a", "project_7_bot_77aa"
#: Makes environments that share one pip: a second instead of four.
_PYTHON = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
{python} -m venv --without-pip "$3"
printf '#!/bin/sh\\nexec {python} -m pip --python "%s" "$@"\\n' "$3" > "$3/bin/pip"
chmod +x "$3/bin/pip"
"""


class Story:
    """A project whose CI is set up as `monkey init --ci gitlab` says, a host, and who works there."""

    def __init__(self, site: LabSite, project: GitLabProject, endpoint: str, base: Path) -> None:
        self.site, self.project = site, project
        (self.host,) = site.hosts("h2")
        self.ledger = site.ledger(self.host)
        site.shop.env |= {"AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": "ours"}
        trust(endpoint, env=site.shop.env)
        config = base / "ssh_config"
        config.write_text(f"IdentityFile {site.lab.home}/id\nUserKnownHostsFile {site.lab.known_hosts}\n")
        site.shop.env["MONKEY_SSH_CONFIG"] = str(config)
        store = f"s3://{services.BUCKET}/lab?endpoint={endpoint}&region=us-east-1"
        # By address: no runner has a user's ssh_config.
        site.providers(f"{USER}@{self.host.address}", store=store)
        settings = site.shop.root / "monkey.yaml"
        said = json.loads(settings.read_text())
        settings.write_text(json.dumps({**said, "previews": {"jobs": 1, "providers": ["lab"], "expires": "1h"}}))
        self.git("init", "--quiet", f"--initial-branch={BRANCH}")
        self.git("remote", "add", "origin", str(project.path))
        site.run("init", "--ci", "gitlab", "--branch", BRANCH, "--package", str(write_wheel(base)))
        variables = self._set_variables(base, endpoint)
        self.runner = GitLabRunner(project, base / "runner", _prepare_runner(site, base), variables)
        (self.runner.home / ".ssh").mkdir(parents=True)
        (self.runner.home / ".ssh/id_ed25519").write_text("mine")

    def _set_variables(self, base: Path, endpoint: str) -> list[CiVariable]:
        for user, role in ((PLANNER, "write"), (APPLIER, "maintain")):
            self.project.users[f"token-of-{user}"], self.project.roles[user] = user, role
        keys = {}
        for name in ("ci", "preview"):
            keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{name}@shop", "-f", base / f"{name}_key"]
            subprocess.run(keygen, check=True)
            self.site.run("trust", str(base / f"{name}_key.pub"))
            # Without a newline at its end, as GitLab may have it.
            keys[name] = (base / f"{name}_key").read_text().rstrip()
        public = [(base / f"{name}_key.pub").read_text() for name in keys]
        own = self.site.shop.run("trust").stdout.splitlines()[1].strip()
        return [
            CiVariable("GITLAB_TOKEN", f"token-of-{PLANNER}"),
            CiVariable("GITLAB_TOKEN", f"token-of-{APPLIER}", "monkey-apply", protected=True),
            CiVariable("MONKEY_SIGNING_KEY", keys["ci"], "monkey-apply", protected=True, is_file=True),
            CiVariable("MONKEY_SIGNING_KEY", keys["preview"], "monkey-preview", is_file=True),
            CiVariable("MONKEY_SSH_KEY", (self.site.lab.home / "id").read_text().rstrip(), is_file=True),
            CiVariable("MONKEY_SSH_HOSTS", self.site.lab.known_hosts.read_text()),
            CiVariable("MONKEY_SIGNERS", "".join(public) + own),
            CiVariable("MONKEY_TRUSTED_ENDPOINTS", endpoint),
            CiVariable("AWS_ACCESS_KEY_ID", "us"),
            CiVariable("AWS_SECRET_ACCESS_KEY", "ours"),
        ]

    def git(self, *words: str) -> str:
        """Run git in the project."""
        who = ["-c", "user.name=alice", "-c", "user.email=alice@example.org"]
        done = subprocess.run(["git", "-C", self.site.shop.root, *who, *words], capture_output=True, text=True)
        assert done.returncode == 0, f"git {words}: {done.stderr}"
        return done.stdout.strip()

    def push(self, branch: str, message: str) -> str:
        """Commit all, and push it; return the commit."""
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", message)
        self.git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def begin(self) -> None:
        """Go on from the protected branch."""
        self.git("fetch", "--quiet", "origin")
        self.git("checkout", "--quiet", "--detach", f"origin/{BRANCH}")

    def notes(self, number: int, mark: str) -> list[tuple[int, str]]:
        """Return the notes with that mark, and their numbers."""
        found = self.project.pulls[number].comments.values()
        return [(each["id"], each["body"]) for each in found if each["body"].startswith(mark)]

    def status(self, commit: str, context: str) -> tuple[str, str]:
        """Return the newest status of a commit in that context."""
        found = [each for each in self.project.statuses if (each["sha"], each["name"]) == (commit, context)]
        return found[-1]["status"], found[-1]["description"]


def _prepare_runner(site: LabSite, base: Path) -> dict[str, str]:
    """Return the environment of a runner that has Python, git and Pulumi."""
    programs = base / "runner-bin"
    programs.mkdir()
    (programs / "python3").write_text(_PYTHON.format(python=sys.executable))
    (programs / "python3").chmod(0o755)
    kept = {name: site.shop.env[name] for name in ("XDG_CACHE_HOME", "TERM")}
    pip = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {**kept, **pip, "PATH": f"{programs}:{site.shop.env['PATH']}"}


def check(run: PipelineRun, *jobs: str) -> None:
    """Have a pipeline passed, and just these jobs run."""
    assert run.passed, f"{run.said}\n{run.logs}"
    assert sorted(run.logs) == sorted(jobs)


@pytest.fixture
def story(lab_site: LabSite, tmp_path: Path) -> Iterator[Story]:
    with services.moto(f"{lab_site.lab.network}.1") as endpoint:
        project = GitLabProject(tmp_path)
        yield Story(lab_site, project, endpoint, tmp_path)
        project.close()
        lab_site.run("destroy", "-y")


def test_the_loop_at_gitlab(story: Story) -> None:
    site, project, runner, ledger = story.site, story.project, story.runner, story.ledger
    site.sweep(jobs=2)
    site.sweep("parameters: {i: [100]}\n", jobs=1, seconds=900, name="other")
    first = story.push(BRANCH, "two sweeps, and their CI")
    check(runner.run_branch(), "apply")
    until(lambda: ledger.executions == 3, "the jobs of the first push run")
    assert story.status(first, "monkey/apply")[0] == "success"
    # Three pushes to a merge request: one note. The last has a label, and gets a preview, too.
    numbers, pull, head = set(), 0, ""
    for jobs in (3, 4, 4):
        site.sweep(jobs=jobs)
        (site.shop.root / "README.md").write_text(f"{len(runner.runs)}\n")
        head = story.push("more", f"{jobs} jobs")
        pull = pull or project.open_request("more")
        project.update(pull)
        labels = "big,monkey-preview" if len(runner.runs) == 3 else ""
        check(runner.run_request(pull, labels), "plan", *(["preview"] if labels else []))
        [(number, said)] = story.notes(pull, PLAN)
        numbers.add(number)
        assert said.startswith(f"{PLAN}\n### monkey plan: {jobs - 2} new") and "1 unchanged" in said
    assert len(numbers) == 1 and said.startswith(f"{PLAN}\n### monkey plan: 2 new")
    until(lambda: ledger.executions == 4, "the preview runs one of them")
    # Another commit comes first: what a squash makes is a commit that no one planned.
    story.begin()
    (site.shop.root / "NOTES.md").write_text("hello\n")
    story.push(BRANCH, "notes [ci skip]")
    planned = story.status(head, "monkey/plan")[1]
    merged = project.merge_request(pull, "squash")
    check(runner.run_branch(), "apply")
    assert story.status(merged, "monkey/apply") == ("success", f"{planned.partition(' ')[0]} applied")
    until(lambda: ledger.executions == 5, "the job that is left runs")
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "all jobs end")
    check(runner.run_branch("schedule"), "notify")
    [(_, results)] = story.notes(pull, RESULTS)
    assert "`sweep` has finished" in results
    for commit in (head, merged):
        assert story.status(commit, "monkey/sweep") == ("success", "4 succeeded")
    _take_back(story)
    _delete_other(story)
    check(runner.run_branch("schedule", MONKEY_JOB="drift"), "drift")
    assert "No changes" in runner.runs[-1].logs["drift"]
    _check_left(story)


def _check_left(story: Story) -> None:
    """Have no status waiting, none of the protected token at other branches, and nothing of jobs on the runner."""
    statuses, home = story.project.statuses, story.runner.home
    # A pipeline would wait for it for ever.
    assert not [each for each in statuses if each["status"] in ("pending", "running") and not each["retried"]]
    authors = {(each["name"], each["author"]["username"]) for each in statuses}
    assert {name for name, who in authors if who == APPLIER} >= {"monkey/apply", "monkey/sweep"}
    assert {name for name, who in authors if who == PLANNER} == {"monkey/plan", "monkey/pr-1.sweep"}
    assert list(story.runner.temporary.iterdir()) == []
    assert [(path.name, path.read_text()) for path in (home / ".ssh").iterdir()] == [("id_ed25519", "mine")]
    assert not (home / ".config").exists()


def _take_back(story: Story) -> None:
    """Revert the values by a merge request that is rebased first, and merged by fast-forward: nothing runs."""
    site, project, runner = story.site, story.project, story.runner
    story.begin()
    site.sweep(jobs=2)
    story.push("back", "as it was")
    number = project.open_request("back")
    story.begin()
    (site.shop.root / "NOTES.md").write_text("more\n")
    story.push(BRANCH, "more notes [ci skip]")
    head = project.rebase(number)
    check(runner.run_request(number), "plan")
    [(_, said)] = story.notes(number, PLAN)
    assert "2 removed" in said
    before = story.ledger.executions
    assert project.merge_request(number, "fast-forward") == head
    check(runner.run_branch(), "apply")
    assert story.status(head, "monkey/apply")[0] == "success"
    assert len(site.rows()) == 2 and story.ledger.executions == before


def _delete_other(story: Story) -> None:
    """Delete a spec whose sweep runs, by a merge request with a merge commit: the plan says so, and the sweep ends."""
    site, project, runner = story.site, story.project, story.runner
    story.begin()
    (site.shop.root / "specs/other.yaml").unlink()
    story.push("gone", "one sweep less")
    number = project.open_request("gone")
    check(runner.run_request(number), "plan")
    [(_, said)] = story.notes(number, PLAN)
    assert "sweep other: its spec is gone (1 running): cancelled" in said
    assert [each["kind"] for each in site.shop.json("history", "other")].count("revision") == 1, "no one touched it"
    project.merge_request(number, "merge")
    check(runner.run_branch(), "apply")
    until(lambda: site.shop.states("other") == {"cancelled": 1}, "it is cancelled", step=0.5)
