"""The whole loop on a real Gitea, by the workflows that `monkey init --ci gitea` writes: no word of them is changed.

The runner has no monkey, no key and no store: all comes by the workflow, from the repository's secrets and variables.
Machines are hosts of the lab, and the store is a bucket.
"""

from __future__ import annotations

import subprocess
import sysconfig
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.cli.ci.actions_workflow import PYTHON
from tests import services
from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import until
from tests.acceptance.test_gitea import Clone
from tests.forges.gitea import Gitea, GiteaRepository
from tests.forges.gitea_runner import FAILURE, SKIPPED, SUCCESS, GiteaRunner, Task, run_tasks
from tests.host_root import USER
from tests.trusting import trust

pytestmark = [pytest.mark.slow, pytest.mark.needs("gitea"), pytest.mark.needs("act")]

PLAN = "<!-- monkey:plan:shop -->"
ASKED = "<!-- monkey:apply:shop -->"
RESULTS = "<!-- monkey:results:sweep -->"


def write_wheel(directory: Path) -> Path:
    """Write what pip installs for monkey: its command, and the way to the packages that these tests have."""
    name, directory = "monkey_sweep-0.0.0", directory / "wheels"
    directory.mkdir()
    packages = sysconfig.get_paths()["purelib"]
    files = {
        "monkey_of_tests.pth": f"import site; site.addsitedir({packages!r})\n",
        f"{name}.dist-info/METADATA": "Metadata-Version: 2.1\nName: monkey-sweep\nVersion: 0.0.0\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "[console_scripts]\nmonkey = monkey.cli.main:main\n",
    }
    files[f"{name}.dist-info/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{name}.dist-info/RECORD"])
    with zipfile.ZipFile(directory / f"{name}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return directory / f"{name}-py3-none-any.whl"


@pytest.fixture
def python_action(tmp_path: Path) -> dict[str, Path]:
    """Return an action in the place of setup-python: the Python of these tests is on the PATH already."""
    path = tmp_path / "setup-python"
    path.mkdir()
    steps = "    - {run: python --version, shell: bash}\n"
    inputs = "inputs: {python-version: {description: any}}\n"
    (path / "action.yml").write_text(f"name: python\n{inputs}runs:\n  using: composite\n  steps:\n{steps}")
    return {PYTHON.partition(" ")[0]: path}


@pytest.fixture
def endpoint(lab_site: LabSite, require: Callable[[str], str]) -> Iterator[str]:
    """Return a bucket server that hosts and runner reach."""
    require("moto")
    with services.moto(f"{lab_site.lab.network}.1") as found:
        yield found


class Story:
    """A repository whose CI is set up as `monkey init --ci gitea` says, a host, and who works there."""

    def __init__(self, site: LabSite, repository: GiteaRepository, endpoint: str, base: Path) -> None:
        self.site, self.repository = site, repository
        (self.host,) = site.hosts("h2")
        site.shop.env |= {"AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": "ours"}
        trust(endpoint, env=site.shop.env)
        store = f"s3://{services.BUCKET}/lab?endpoint={endpoint}&region=us-east-1"
        config = base / "ssh_config"
        config.write_text(f"IdentityFile {site.lab.home}/id\nUserKnownHostsFile {site.lab.known_hosts}\n")
        site.shop.env["MONKEY_SSH_CONFIG"] = str(config)
        # By address: no runner has a user's ssh_config.
        site.providers(f"{USER}@{self.host.address}", store=store)
        self.clone = Clone(site.shop, repository)
        site.run("init", "--ci", "gitea", "--branch", "main", "--package", str(write_wheel(base)))
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ci@shop", "-f", base / "ci_key"]
        subprocess.run(keygen, check=True)
        site.run("trust", str(base / "ci_key.pub"))
        known = site.lab.known_hosts.read_text()
        own = site.shop.run("trust").stdout.splitlines()[1].strip()
        for name, value in {
            "MONKEY_SIGNING_KEY": (base / "ci_key").read_text(),
            "MONKEY_SSH_KEY": (site.lab.home / "id").read_text(),
            "AWS_ACCESS_KEY_ID": "us",
            "AWS_SECRET_ACCESS_KEY": "ours",
        }.items():
            repository.set_secret(name, value)
        for name, value in {
            "MONKEY_SIGNERS": (base / "ci_key.pub").read_text() + own,
            "MONKEY_SSH_HOSTS": known,
            "MONKEY_TRUSTED_ENDPOINTS": endpoint,
        }.items():
            repository.set_variable(name, value)

    def status(self, commit: str, context: str) -> tuple[str, str]:
        """Return the newest status of a commit in that context."""
        newest = self.repository.list_statuses(commit, context)[0]
        return newest["status"], newest["description"]

    def comments(self, pull: int, mark: str) -> list[tuple[int, str]]:
        """Return the comments with that mark, and their numbers."""
        found = self.repository.list_comments(pull)
        return [(each["id"], each["body"]) for each in found if each["body"].startswith(mark)]


@pytest.fixture
def story(lab_site: LabSite, gitea: Gitea, endpoint: str, tmp_path: Path) -> Iterator[Story]:
    yield Story(lab_site, gitea.make_repository(gitea.make_person("monkey")), endpoint, tmp_path)
    lab_site.run("destroy", "-y")


@pytest.fixture
def runner(story: Story, gitea: Gitea, tmp_path: Path, python_action: dict[str, Path]) -> Iterator[GiteaRunner]:
    """Return a runner that has Python, git and Pulumi, and a home of its own."""
    home = tmp_path / "runner-home"
    home.mkdir()
    kept = {name: story.site.shop.env[name] for name in ("PATH", "XDG_CACHE_HOME", "TERM")}
    environ = {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "RUNNER_TEMP": str(home / "temp")}
    with run_tasks(gitea, tmp_path / "runner", environ, python_action) as made:
        yield made


def find_tasks(runner: GiteaRunner, job: str, commit: str, event: str) -> list[Task]:
    """Return the tasks of a job for a commit, also those that only saw that they are not meant."""
    return [task for task in runner.tasks if (task.job, task.commit, task.event) == (job, commit, event)]


def await_job(runner: GiteaRunner, job: str, commit: str, event: str, result: int = SUCCESS) -> Task:
    """Wait until the job of a commit has ended like this."""

    def find() -> list[Task]:
        assert runner.failure is None, runner.failure
        failed = [task for task in runner.tasks if task.result == FAILURE and task.job != job]
        assert not failed, failed[0].log
        return find_tasks(runner, job, commit, event)

    task: Task = until(find, f"the {job} of {commit}", step=0.2)[-1]
    assert task.result == result, task.log
    return task


def test_a_value_is_added_by_pull_request_and_its_results_come_back(story: Story, runner: GiteaRunner) -> None:
    site, repository, clone = story.site, story.repository, story.clone
    ledger = site.ledger(story.host)
    site.sweep(jobs=2)
    first = clone.push("main", "the sweep, and its CI")
    await_job(runner, "apply", first, "push")
    until(lambda: ledger.executions == 2, "the jobs of the first push run")
    assert story.status(first, "monkey/apply")[0] == "success"
    # Two pushes to a pull request: one comment.
    site.sweep(jobs=3)
    commit = clone.push("more", "one value more")
    pull = repository.open_pull("more")
    await_job(runner, "plan", commit, "pull_request")
    [(number, said)] = story.comments(pull, PLAN)
    assert said.startswith(f"{PLAN}\n### monkey plan: 1 new")
    site.sweep(jobs=4)
    head = clone.push("more", "and another")
    await_job(runner, "plan", head, "pull_request")
    [(again, said)] = story.comments(pull, PLAN)
    state, planned = story.status(head, "monkey/plan")
    assert again == number and said.startswith(f"{PLAN}\n### monkey plan: 2 new") and state == "success"
    # A label makes no plan again: Gitea names that event in its own way.
    repository.add_label(pull, "big")
    until(lambda: len(find_tasks(runner, "plan", head, "pull_request")) == 2, "the label's run comes", step=0.2)
    assert sorted(task.result for task in find_tasks(runner, "plan", head, "pull_request")) == [SUCCESS, SKIPPED]
    # Another pull request comes first: what a squash makes is a commit that no one planned.
    repository.write_file("README2.md", "hello\n", "main", new_branch="other")
    await_job(runner, "apply", repository.merge(repository.open_pull("other"), "merge"), "push")
    # What is merged is what was agreed to, and it alone runs.
    merged = repository.merge(pull, "squash", delete_branch=True)
    await_job(runner, "apply", merged, "push")
    assert story.status(merged, "monkey/apply") == ("success", f"{planned.partition(' ')[0]} applied")
    until(lambda: len(ledger.digests) == 4, "the new jobs end")
    assert ledger.executions == 4
    assert not story.comments(pull, ASKED)
    until(lambda: [row["state"] for row in site.rows()] == ["succeeded"] * 4, "all jobs end")
    repository.dispatch("monkey.yml")
    await_job(runner, "notify", merged, "workflow_dispatch")
    [(_, results)] = story.comments(pull, RESULTS)
    assert "`sweep` has finished" in results
    assert story.status(merged, "monkey/sweep") == ("success", "4 succeeded")
    # Jobs without a key see no difference either: all is as the branch says.
    repository.dispatch("monkey-drift.yml")
    assert "No changes" in await_job(runner, "drift", merged, "workflow_dispatch").log
    assert {task.job for task in runner.tasks if task.result == SUCCESS} == {"plan", "apply", "notify", "drift"}
