"""The base install is small: its packages are counted, and each extra's library is named where it is missing."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

import pytest

from tests.dependencies import find_closure

#: Packages of the base install, ours among them.
MOST = 32
SPEC = "datasets: {d: data}\ncommand: [python3, -c, 'pass']\noutputs: []\n"
#: `monkey` where libraries are not installed, their modules separated by commas.
WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(','))); "
    "from monkey.cli.main import main; main()"
)
#: Providers of each type that has machines elsewhere.
PROVIDERS = {
    "ssh": "{type: ssh, hosts: ['localhost:1']}",
    "aws": "{type: aws, region: eu-west-1, instance_type: m5.large, image: ami-0123456789abcdef0, max_instances: 1}",
    "gcp": "{type: gcp, gcp_project: my-project-1, region: europe-west4, machine_type: e2-medium, max_instances: 1}",
    "slurm": "{type: slurm, time: 1h}",
    "kubernetes": "{type: kubernetes, context: one, image: python}",
}


def test_the_base_install_is_small() -> None:
    found = find_closure("monkey-sweep")
    assert {"pydantic", "aiohttp"} <= found
    assert not found & {"dvc", "asyncssh", "pulumi", "pulumi-aws", "pulumi-gcp", "boto3", "google-auth", "uv"}
    assert len(found) <= MOST, f"{len(found)}: {', '.join(sorted(found))}"


def said_without(modules: str, root: Path, *words: str, codes: Container[int] = (1,)) -> str:
    """Return what a failing `monkey` says where the libraries with these modules are not installed."""
    command = [sys.executable, "-c", WITHOUT, modules, *words]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout + done.stderr


def with_provider(root: Path, kind: str) -> Path:
    """Write a project with a provider of this type."""
    text = f"project: test\nproviders:\n  lab: {PROVIDERS[kind]}\n"
    (project(root) / "monkey.yaml").write_text(text)
    (root / "specs" / "sweep.yaml").write_text("command: [python3, -c, 'pass']\nprovider: lab\noutputs: []\n")
    return root


def modules_beyond_the_base() -> str:
    """Return the modules that are installed here and are of no package of the base install."""
    base = find_closure("monkey-sweep")
    owners = importlib.metadata.packages_distributions()
    named = {module: {re.sub(r"[-_.]+", "-", name).lower() for name in of} for module, of in owners.items()}
    return ",".join(module for module, of in named.items() if base.isdisjoint(of))


def project(root: Path, *, store: str = ".monkey/store", tracked: bool = False) -> Path:
    """Write a project with a dataset, which lies in a DVC repository where it is tracked."""
    (root / "monkey.yaml").write_text(f"project: test\nstore: {store}\n")
    (root / "data").write_text("x")
    (root / "specs").mkdir()
    (root / "specs" / "sweep.yaml").write_text(SPEC)
    if tracked:
        (root / ".dvc").mkdir()
        (root / ".dvc" / "config").touch()
    return root


@pytest.mark.parametrize("verb", ["plan", "push", "doctor"])
def test_a_dataset_in_a_dvc_repository_names_its_line_and_the_extra(tmp_path: Path, verb: str) -> None:
    said = said_without("dvc", project(tmp_path, tracked=True), verb)
    assert re.search(r"specs/sweep\.yaml:1:\d+: dataset 'd': .* is a DVC repository, and DVC is not installed", said)
    assert "pip install" in said and "[dvc]" in said


def test_a_doctor_asks_for_no_dvc_where_no_dataset_is_dvc_s(tmp_path: Path) -> None:
    said = said_without("dvc", project(tmp_path, store="ssh://host"), "doctor")
    assert "DVC" not in said and "[dvc]" not in said


@pytest.mark.parametrize("verb", ["plan", "status", "doctor"])
def test_a_store_by_ssh_names_its_line_and_the_extra(tmp_path: Path, verb: str) -> None:
    said = said_without("asyncssh", project(tmp_path, store="ssh://host/~/store"), verb)
    assert "monkey.yaml:2:8: a store at ssh:// is reached by asyncssh, which is not installed here" in said
    assert "pip install" in said and "[ssh]" in said


@pytest.mark.parametrize(("verb", "code"), [("plan", 0), ("apply", 1), ("doctor", 1)])
def test_hosts_name_the_extra_on_a_base_install(tmp_path: Path, verb: str, code: int) -> None:
    """A plan reads hosts alone, and warns: what it shows could not be applied."""
    said = said_without(modules_beyond_the_base(), with_provider(tmp_path, "ssh"), verb, codes=(code,))
    assert "pip install" in said and "[ssh]" in said


@pytest.mark.parametrize("kind", ["aws", "gcp"])
def test_a_doctor_names_the_extra_of_a_cloud_on_a_base_install(tmp_path: Path, kind: str) -> None:
    said = said_without(modules_beyond_the_base(), with_provider(tmp_path, kind), "doctor")
    assert f"machines of type {kind} need what is not installed here" in said and f"[{kind}]" in said


@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_a_doctor_names_the_extra_of_pilots_on_a_base_install(tmp_path: Path, kind: str) -> None:
    said = said_without(modules_beyond_the_base(), with_provider(tmp_path, kind), "doctor")
    assert "library packaging, which is not installed here" in said and f"[{kind}]" in said


def test_a_base_install_lists_hosts(tmp_path: Path) -> None:
    missing = modules_beyond_the_base()
    assert {"packaging", "pytest"} <= set(missing.split(","))
    said_without(missing, with_provider(tmp_path, "ssh"), "list", "instances", codes=(0,))
