"""A clone of a repository whose CI is set up by `monkey init --ci`, and machines that its projects may have."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from monkey.cli.commands.init import init_command
from monkey.spec.yaml import document

MACHINES = {
    "aws": "store: s3://b/x\nproviders: {c: {type: aws, region: eu-west-1, instance_type: m5.large}}\n",
    "gcp": "store: gs://b/x\nproviders:\n"
    "  c: {type: gcp, gcp_project: my-project-1, region: europe-west4, machine_type: e2-small}\n",
    "lab": "store: 's3://b/x?endpoint=https://minio.lab'\nproviders: {lab: {type: ssh, hosts: [h]}}\n",
    "ssh": "store: ssh://h/x\nproviders: {lab: {type: ssh, hosts: [h]}, local: {type: local}}\n",
    "azure": "store: az://c/x\nproviders: {lab: {type: ssh, hosts: [h]}}\n",
}
PACKAGE = ("--package", "monkey-sweep @ git+https://forge.example/o/monkey@" + "a" * 40)


class Clone:
    """A clone of a repository at a forge."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "trunk")
        self.git("remote", "add", "origin", "git@forge.example:team/sweeps.git")

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", self.root, *words], check=True, capture_output=True)

    def init(self, forge: str, text: str, *words: str, at: str = ".", package: tuple[str, ...] = PACKAGE) -> Result:
        """Run it in a project that says so."""
        directory = self.root / at
        (directory / "specs").mkdir(parents=True, exist_ok=True)
        (directory / "monkey.yaml").write_text(text)
        return CliRunner().invoke(init_command, [str(directory), "--ci", forge, *package, *words])

    def read(self, name: str) -> dict[str, Any]:
        """Return a file as the forge reads it."""
        text = (self.root / name).read_text().replace("!reference ", "")
        return dict(document.parse_document(text, name).data)

    def jobs(self, name: str) -> dict[str, Any]:
        """Return the jobs of a workflow."""
        return dict(self.read(name)["jobs"])
