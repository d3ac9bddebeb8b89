"""A cluster whose policies refuse pods of some images: a plan names the pilots that will not come."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from monkey.fleet.fleet_records import FleetWork
from monkey.spec.job.recipe import JobResources
from monkey.spec.project.engines.kubernetes_settings import KubernetesSettings
from monkey.spec.project.provider import Provider
from monkey.store.memory import MemoryStore
from monkey_stacks.kubernetes.fleet import make_fleet
from tests.signing import make_signers

#: kubectl where a policy lets Jobs in, and keeps their pods out that are of another registry.
PROGRAM = """\
#!{python}
import json, sys
verb = [word for word in sys.argv[1:] if not word.startswith("--")]
given = json.loads(sys.stdin.read() or "{{}}").get("items", ())
images = [each["spec"]["containers"][0]["image"] for each in given if each["kind"] == "Pod"]
with open(__file__ + ".asked", "a") as asked:
    print(*images, sep="\\n", end="\\n" * bool(images), file=asked)
for image in images:
    if image.startswith("docker.io/"):
        sys.exit('Error from server (Forbidden): error when creating "STDIN": admission webhook "registries" denied '
                 'the request: ' + image.partition("@")[0] + ' is not from ghcr.io')
print('{{"items": []}}' if verb == ["get", "jobs,pods"] else "")
"""


@pytest.mark.parametrize("policy", ["of a sweep", "of the provider"])
def test_a_plan_says_which_image_a_policy_refuses(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(PROGRAM.format(python=sys.executable))
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    good, bad = "ghcr.io/lab/a", "docker.io/lab/b"
    own, theirs = (good, bad) if policy == "of a sweep" else (bad, good)
    settings = KubernetesSettings("prod", own, namespace="ml", store_path="/store")
    provider, asked = Provider("kubernetes", kubernetes=settings), ((JobResources(), 1),)
    image = f"{theirs}@sha256:{'a' * 64}"
    fleet = make_fleet("kube", provider, "p", "/store", MemoryStore, lambda: make_signers(1))
    told = asyncio.run(fleet.preview(FleetWork(2, asked=asked, images={"": asked, image: asked})))
    troubles = {change.why.partition(" in prod")[0]: change.trouble for change in told.changes}
    refused = f'Kubernetes refuses it (admission webhook "registries" denied the request: {bad} is not from ghcr.io)'
    expected = {f"a pod of {own}": "", f"a pod of {theirs}@sha256:aaaaaaaaaaaa…": ""}
    assert troubles == expected | {name: refused for name in expected if bad in name}
    assert sorted((tmp_path / "kubectl.asked").read_text().split()) == sorted([own, image]), "each is asked once"
