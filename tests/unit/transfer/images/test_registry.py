"""Which image a tag names, asked of a real registry."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey.apply.world.desired_state import desire_specs, list_spec_files, read_specs
from monkey.errors import ImageError, SpecError
from monkey.plan.explain import explain_recipe_changes
from monkey.spec.job.image_reference import parse_image_reference
from monkey.spec.job.recipe import Recipe
from monkey.spec.project.project import load_project
from monkey.transfer.images.registry_client import RegistryClient
from monkey.transfer.images.registry_login import find_login
from tests.registry import PASSWORD, USER, Registry, serve_registry
from tests.services import free_port

pytestmark = pytest.mark.needs("docker-registry")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Run a registry that asks for no login."""
    with serve_registry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the user have no logins but those of a test."""
    for name in ("REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    (tmp_path / "docker").mkdir()
    return tmp_path / "docker" / "config.json"


def resolve(registry: Registry, name: str, home: Path = Path("/nonexistent")) -> str:
    image = parse_image_reference(f"{registry.name}/{name}")
    return RegistryClient(image.registry, find_login(image, os.environ, home)).resolve(image)


def recipe(root: Path, image: str, more: str = "") -> Recipe:
    """Return the recipe that a spec with this image gives now."""
    (root / "specs").mkdir(exist_ok=True)
    (root / "monkey.yaml").write_text("project: test\nstore: st\n")
    text = f"command: python3 train.py\nenvironment:\n  image: {image}\n{more}"
    (root / "specs" / "sweep.yaml").write_text(text)
    (root / "train.py").write_text("print(1)\n")
    project = load_project(root)
    [spec] = desire_specs(project, read_specs(project, list_spec_files(project)))
    return spec.desired.recipe


def test_a_tag_is_the_digest_that_it_names_now(registry: Registry) -> None:
    first = registry.push("lab/train", "v1", {"a": b"1"})
    assert resolve(registry, "lab/train:v1") == first
    second = registry.push("lab/train", "v1", {"a": b"2"})
    assert resolve(registry, "lab/train:v1") == second != first


def test_a_plan_says_that_the_tag_names_another_image(registry: Registry, tmp_path: Path) -> None:
    first = registry.push("lab/plan", "v1", {"a": b"1"})
    before = recipe(tmp_path, f"{registry.name}/lab/plan:v1")
    second = registry.push("lab/plan", "v1", {"a": b"2"})
    after = recipe(tmp_path, f"{registry.name}/lab/plan:v1")
    assert (before.image, after.image) == (first, second)
    [reason] = explain_recipe_changes(before, after, {}, {})
    assert reason.text == f"image changed: {first[7:19]}… → {second[7:19]}…"
    # The same image by another name is the same image.
    registry.push("lab/other", "v2", {"a": b"2"})
    assert recipe(tmp_path, f"{registry.name}/lab/other:v2") == after
    assert recipe(tmp_path, f"{registry.name}/lab/plan@{second}") == after


def test_a_digest_is_not_looked_up(tmp_path: Path) -> None:
    digest = "sha256:" + "0a" * 32
    assert recipe(tmp_path, f"127.0.0.1:{free_port()}/train@{digest}").image == digest


def test_what_is_not_there_is_told_with_its_line(registry: Registry, tmp_path: Path) -> None:
    registry.push("lab/there", "v1", {"a": b"1"})
    with pytest.raises(SpecError, match=r"specs/sweep.yaml:3:10: 127\S+ has no image \S+lab/there:v2") as told:
        recipe(tmp_path, f"{registry.name}/lab/there:v2")
    assert "check the name and the tag" in str(told.value)
    with pytest.raises(SpecError, match=r"specs/sweep.yaml:3:10: 127\S+ has no image \S+lab/absent:v1"):
        recipe(tmp_path, f"{registry.name}/lab/absent:v1")
    with pytest.raises(SpecError, match=r"specs/sweep.yaml:3:10: the registry 127\S+ does not answer") as told:
        recipe(tmp_path, f"127.0.0.1:{free_port()}/train:v1")
    assert "is this machine online" in str(told.value)


def test_a_private_image_needs_the_login_of_a_file(tmp_path: Path, files: Path) -> None:
    with serve_registry(tmp_path, login=True) as registry:
        digest = registry.push("lab/train", "v1", {"a": b"1"})
        with pytest.raises(ImageError, match="refuses users without a login") as refused:
            resolve(registry, "lab/train:v1")
        assert f"podman login {registry.name}" in str(refused.value)
        files.write_text(json.dumps({"auths": {registry.name: {"auth": encode(USER, "wrong")}}}))
        with pytest.raises(ImageError, match=f"refuses the login of {files}") as refused:
            resolve(registry, "lab/train:v1")
        assert "wrong" not in str(refused.value)
        files.write_text(json.dumps({"auths": {registry.name: {"auth": encode(USER, PASSWORD)}}}))
        assert resolve(registry, "lab/train:v1") == digest
        # podman's file comes first, and may have a login for a part of a registry.
        podman = tmp_path / ".config" / "containers" / "auth.json"
        podman.parent.mkdir(parents=True)
        podman.write_text(json.dumps({"auths": {f"{registry.name}/lab": {"auth": encode(USER, PASSWORD)}}}))
        files.write_text("no json")
        assert resolve(registry, "lab/train:v1", tmp_path) == digest
        podman.unlink()
        with pytest.raises(ImageError, match="found a file that cannot be read: no JSON"):
            resolve(registry, "lab/train:v1", tmp_path)


def test_a_helper_keeps_the_login(tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "bin" / "docker-credential-test"
    helper.parent.mkdir()
    monkeypatch.setenv("PATH", f"{helper.parent}:{os.environ['PATH']}")
    with serve_registry(tmp_path, login=True) as registry:
        digest = registry.push("lab/train", "v1", {"a": b"1"})
        files.write_text(json.dumps({"credHelpers": {registry.name: "test"}}))
        with pytest.raises(ImageError, match=r"docker-credential-test, which keeps the login for .*, gives no answer"):
            resolve(registry, "lab/train:v1")
        answer = json.dumps({"Username": USER, "Secret": PASSWORD})
        helper.write_text(f"#!/bin/sh\n[ $1 = get ] && [ $(cat) = {registry.name} ] && echo '{answer}'\n")
        helper.chmod(0o755)
        assert resolve(registry, "lab/train:v1") == digest
        files.write_text(json.dumps({"credsStore": "test", "auths": {registry.name: {}}}))
        assert resolve(registry, "lab/train:v1") == digest


@pytest.mark.needs("podman")
@pytest.mark.needs("mount")
def test_a_login_of_podman_without_a_directory_for_the_run_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where XDG_RUNTIME_DIR is not set, as it often is not for root, podman has a place of its own."""
    monkeypatch.delenv("DOCKER_CONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    with serve_registry(tmp_path, login=True) as registry:
        script = (
            "mount -t tmpfs none /run && podman login --tls-verify=false -u $1 -p $2 $3 >&2 && "
            'exec "$4" -c "import os; from pathlib import Path; '
            "from monkey.spec.job.image_reference import parse_image_reference as parse; "
            "from monkey.transfer.images.registry_login import find_login; "
            "print(find_login(parse('$3/a:1'), os.environ, Path('/nonexistent')).user)\""
        )
        words = ["sh", "-c", script, "sh", USER, PASSWORD, registry.name, sys.executable]
        done = subprocess.run(["unshare", "--mount", "--map-root-user", *words], capture_output=True, text=True)
    assert done.stdout == f"{USER}\n", done.stderr


def test_a_registry_that_gives_tokens_is_asked_by_token(tmp_path: Path, files: Path) -> None:
    with serve_registry(tmp_path, tokens=True) as registry:
        public, private = (registry.push(f"{place}/train", "v1", {"a": b"1"}) for place in ("public", "lab"))
        assert resolve(registry, "public/train:v1") == public
        with pytest.raises(ImageError, match="refuses users without a login"):
            resolve(registry, "lab/train:v1")
        files.write_text(json.dumps({"auths": {registry.name: {"auth": encode(USER, PASSWORD)}}}))
        assert resolve(registry, "lab/train:v1") == private


def encode(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()
