"""Providers of type `kubernetes` in monkey.yaml: what they may say, and each mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.engines.kubernetes_settings import ClaimedVolume, KubernetesSettings
from monkey.spec.project.project import load_project
from monkey.spec.project.provider import Provider

HEAD = "project: x\nproviders:\n  kube:\n    type: kubernetes\n    context: prod\n    image: python:3.12-slim\n"


def kube(body: str, root: Path, head: str = HEAD) -> Provider:
    """Return the provider `kube`; `body` begins on line 7."""
    (root / "monkey.yaml").write_text(head + "".join(f"    {line}\n" for line in body.splitlines()))
    return load_project(root).providers["kube"]


def test_a_context_and_an_image_are_enough(tmp_path: Path) -> None:
    made = kube("", tmp_path)
    settings = KubernetesSettings("prod", "python:3.12-slim")
    assert made == Provider("kubernetes", idle_timeout=30, kubernetes=settings)
    assert (made.clustered.time, made.clustered.architecture) == (86400, "amd64")


def test_everything_that_pods_may_say(tmp_path: Path) -> None:
    body = (
        "namespace: ml\ncreate_namespace: true\npilots: 8\ntime: 2h\n"
        "cpus: 4\nmemory: 16GiB\ngpus: 1\ngpu_resource: amd.com/gpu\n"
        "node_selector: {gpu: a100, kubernetes.io/arch: arm64}\ntolerations: [{key: gpu, operator: Exists}]\n"
        "service_account: trainer\npriority_class: low\nqueue: team-a\nspot: true\n"
        "volumes: {data: {claim: shared, path: /data}}\nstore_path: /data/store\npod: {hostNetwork: true}"
    )
    assert kube(body, tmp_path).clustered == KubernetesSettings(
        context="prod",
        image="python:3.12-slim",
        namespace="ml",
        create_namespace=True,
        pilots=8,
        time=7200,
        cpus=4,
        memory=16 << 30,
        gpus=1,
        gpu_resource="amd.com/gpu",
        node_selector=(("gpu", "a100"), ("kubernetes.io/arch", "arm64")),
        tolerations=({"key": "gpu", "operator": "Exists"},),
        service_account="trainer",
        priority_class="low",
        queue="team-a",
        spot=True,
        volumes=(ClaimedVolume("data", "shared", "/data"),),
        store_path="/data/store",
        pod={"hostNetwork": True},
    )


@pytest.mark.parametrize(
    ("body", "place", "message", "hint"),
    [
        ("create_namespace: maybe", (7, 23), "expected true or false", "create_namespace: true"),
        ("storage: much", (7, 14), "expected a size", "GiB"),
        ("spot: yes please", (7, 11), "expected true or false", "spot: true"),
        ("namespace: My_Team", (7, 16), "expected a namespace, found the text 'My_Team'", "small letters"),
        ("pilots: 0", (7, 13), "expected a number of pilots, found 0", "1 to 1000"),
        ("time: 1m", (7, 11), "expected 2m to 7d, found 60s", "time: 24h"),
        ("time: 8d", (7, 11), "expected 2m to 7d", "time: 24h"),
        ("time: soon", (7, 11), "expected a duration", "2h"),
        ("memory: much", (7, 13), "expected a size", "GiB"),
        ("gpus: a100:1", (7, 11), "expected a number of GPUs, found the text 'a100:1'", "gpu_resource:"),
        ("gpus: true", (7, 11), "expected a number of GPUs, found true", "gpu_resource:"),
        ("gpu_resource: a b", (7, 19), "expected the name of a resource", "nvidia.com/gpu"),
        ("queue: --x", (7, 12), "expected the name of an object, found the text '--x'", "kubectl"),
        ("node_selector: [a]", (7, 20), "expected labels of nodes, found a list", "{gpu: a100}"),
        ("node_selector: {gpu: true}", (7, 26), "expected a label's text, found true", "quotes"),
        ("tolerations: {key: a}", (7, 18), "expected a list, found a mapping", "operator: Exists"),
        ("tolerations: [{keys: a}]", (7, 20), "unknown key 'keys' of a toleration", "tolerationSeconds"),
        ("volumes: {data: shared}", (7, 21), "expected a claim and a path", "claim: NAME"),
        ("volumes: {data: {claim: a, path: here}}", (7, 38), "expected an absolute path", "/data"),
        ("volumes: {data: {claim: a, path: /monkey/x}}", (7, 38), "the agent itself has /monkey", None),
        ("store_path: ~/store", (7, 17), "which has no home of yours", "absolute path"),
        ("store_path: /data/store", (7, 17), "no volume is mounted at /data/store", "volumes:"),
        ("pod: [a]", (7, 10), "expected a part of a pod's spec, found a list", "hostNetwork"),
        ("partition: gpu", (7, 5), "unknown key 'partition' of a provider of type kubernetes", None),
    ],
)
def test_mistakes_have_a_place_and_a_hint(
    body: str, place: tuple[int, int], message: str, hint: str | None, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as raised:
        kube(body, tmp_path)
    problem = raised.value.problems[0]
    assert (problem.line, problem.column) == place
    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("    image: x\n", "expected a context of kubectl, found none"),
        ("    context: ''\n    image: x\n", "expected a context of kubectl, found the text ''"),
        ("    context: a\n", "expected the image of a pod, found none"),
        ("    context: a\n    image: --privileged\n", "expected the image of a pod, found the text '--privileged'"),
    ],
)
def test_what_must_be_there(lines: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=message):
        kube("", tmp_path, "project: x\nproviders:\n  kube:\n    type: kubernetes\n" + lines)
