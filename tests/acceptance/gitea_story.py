"""A repository at Gitea whose CI is as `monkey init --ci gitea` wrote it, with keys, secrets and a host of the lab."""

from __future__ import annotations

import subprocess
import sysconfig
import zipfile
from pathlib import Path

from tests import services
from tests.acceptance.lab_site import LabSite
from tests.acceptance.shop import until
from tests.acceptance.test_gitea import Clone
from tests.forges.gitea import GiteaRepository
from tests.forges.gitea_runner import FAILURE, SUCCESS, GiteaRunner, Task
from tests.host_root import USER
from tests.trusting import trust

#: The store's credentials: found anywhere, they came from there.
STORE_KEYS = {"AWS_ACCESS_KEY_ID": "AKIAPLANTEDFORTESTS1", "AWS_SECRET_ACCESS_KEY": "planted/7dKq0vXw3s9LmN2b"}


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


class Story:
    """A repository whose CI is set up as `monkey init --ci gitea` says, a host, and who works there."""

    def __init__(self, site: LabSite, repository: GiteaRepository, endpoint: str, base: Path) -> None:
        self.site, self.repository, self.base = site, repository, base
        (self.host,) = site.hosts("h2")
        self.ledger = site.ledger(self.host)
        site.shop.env |= STORE_KEYS
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
        own = site.shop.run("trust").stdout.splitlines()[1].strip()
        self.secrets = {
            "MONKEY_SIGNING_KEY": (base / "ci_key").read_text(),
            "MONKEY_SSH_KEY": (site.lab.home / "id").read_text(),
            **STORE_KEYS,
        }
        for name, value in self.secrets.items():
            repository.set_secret(name, value)
        for name, value in {
            "MONKEY_SIGNERS": (base / "ci_key.pub").read_text() + own,
            "MONKEY_SSH_HOSTS": site.lab.known_hosts.read_text(),
            "MONKEY_TRUSTED_ENDPOINTS": endpoint,
        }.items():
            repository.set_variable(name, value)

    def push(self, branch: str, message: str) -> str:
        """Commit what the project has now, on top of the newest main, and push it; return the commit."""
        self.clone.git("fetch", "--quiet", "origin")
        self.clone.git("reset", "--quiet", "origin/main")
        self.clone.git("add", "-A")
        return self.clone.push(branch, message)

    def status(self, commit: str, context: str) -> tuple[str, str]:
        """Return the newest status of a commit in that context."""
        newest = self.repository.list_statuses(commit, context)[0]
        return newest["status"], newest["description"]

    def comments(self, pull: int, mark: str) -> list[tuple[int, str]]:
        """Return the comments with that mark, and their numbers."""
        found = self.repository.list_comments(pull)
        return [(each["id"], each["body"]) for each in found if each["body"].startswith(mark)]

    @property
    def planted(self) -> list[str]:
        """A line of each secret that is in no other: of a key, one from its middle."""
        return [lines[len(lines) // 2] for lines in (value.splitlines() for value in self.secrets.values())]


def find_tasks(runner: GiteaRunner, job: str, commit: str, event: str) -> list[Task]:
    """Return the tasks of a job for a commit, also those that only saw that they are not meant."""
    return [task for task in runner.tasks if (task.job, task.commit, task.event) == (job, commit, event)]


def await_job(runner: GiteaRunner, job: str, commit: str, event: str, result: int = SUCCESS) -> Task:
    """Wait until the job of a commit has ended like this."""

    def find() -> list[Task]:
        assert runner.failure is None, runner.failure
        failed = [task for task in runner.tasks if (task.result, task.commit) == (FAILURE, commit) and task.job != job]
        assert all(task.killed for task in failed), failed[0].log
        return find_tasks(runner, job, commit, event)

    task: Task = until(find, f"the {job} of {commit}", step=0.2)[-1]
    assert task.result == result, task.log
    return task
