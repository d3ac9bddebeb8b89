"""What Kubernetes gets: Jobs that a `restricted` namespace takes, with nothing secret; and the user's own part."""

from __future__ import annotations

import ast
import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from monkey.errors import FleetError
from monkey.spec.project.engines.kubernetes_settings import ClaimedVolume, KubernetesSettings
from monkey.spec.project.provider import Provider
from monkey_stacks.kubernetes.handed_files import HandedFiles
from monkey_stacks.kubernetes.kubernetes_engine import KubernetesEngine
from monkey_stacks.kubernetes.manifests.pilot_manifests import PilotShape, write_job, write_pod_spec, write_secret
from monkey_stacks.kubernetes.manifests.pod_merge import merge_pod
from monkey_stacks.kubernetes.manifests.storage_claim import write_storage_claim
from monkey_stacks.kubernetes.pilot_jobs import read_jobs
from monkey_stacks.kubernetes.pod_store import place_pod_store
from monkey_stacks.pilots.pilot_engine import PilotRequest

PLAIN = KubernetesSettings("prod", "python:3.12-slim")


def pod(of: KubernetesSettings, grace: float = 10) -> dict[str, Any]:
    return write_pod_spec(PilotShape(of, "monkey-x-kube-00000000", "ab" * 32, grace))


def job(of: KubernetesSettings, name: str = "") -> dict[str, Any]:
    return write_job(PilotShape(of, "monkey-x-kube-00000000", "ab" * 32, 10), name)


def test_a_job_ends_by_itself_and_comes_again_for_disruptions_alone() -> None:
    made = job(PLAIN, "monkey-x-kube-00000000-0")
    spec = made["spec"]
    assert (spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"], spec["backoffLimit"]) == (604800, 3600, 3)
    assert spec["template"]["spec"]["activeDeadlineSeconds"] == 86400
    rules = spec["podFailurePolicy"]["rules"]
    assert [rule["action"] for rule in rules] == ["FailJob", "Ignore", "Ignore"]
    assert rules[0]["onExitCodes"]["values"] == [78] and rules[2]["onExitCodes"]["values"] == [75]
    assert rules[1]["onPodConditions"][0]["type"] == "DisruptionTarget"
    assert made["metadata"]["name"] == "monkey-x-kube-00000000-0"
    assert "kueue.x-k8s.io/queue-name" not in made["metadata"]["labels"]
    assert job(replace(PLAIN, queue="team-a"))["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert job(PLAIN)["metadata"]["generateName"] == "monkey-x-kube-00000000-"


def test_a_pod_has_no_rights_and_no_token() -> None:
    made = pod(PLAIN, grace=30)
    assert made["automountServiceAccountToken"] is False and made["enableServiceLinks"] is False
    assert made["restartPolicy"] == "Never" and made["terminationGracePeriodSeconds"] == 90
    assert made["securityContext"]["runAsNonRoot"] and made["securityContext"]["runAsUser"] == 1000
    assert made["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*made["containers"], *made["initContainers"]):
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    mounted = {each["name"]: each.get("readOnly", False) for each in made["containers"][0]["volumeMounts"]}
    assert mounted == {"place": False, "fleet": False, "handed": True}, "a pod sees what changes in its Secret"
    assert made["nodeSelector"] == {"kubernetes.io/arch": "amd64"}


def test_what_pods_ask_for() -> None:
    of = replace(PLAIN, cpus=4, memory=1 << 30, gpus=2, volumes=(ClaimedVolume("data", "shared", "/data"),), time=3600)
    made = pod(replace(of, priority_class="low", service_account="me", node_selector=(("gpu", "a100"),)))
    agent, fetch = made["containers"][0], made["initContainers"][0]
    assert agent["resources"]["requests"] == {"cpu": "4", "memory": str(1 << 30), "nvidia.com/gpu": "2"}
    assert agent["resources"]["limits"] == {"memory": str(1 << 30), "nvidia.com/gpu": "2"}
    assert "nvidia.com/gpu" not in fetch["resources"]["limits"]
    variables = {each["name"]: each for each in agent["env"]}
    assert variables["MONKEY_CPUS"]["valueFrom"] == {"resourceFieldRef": {"resource": "requests.cpu"}}
    assert variables["MONKEY_MEMORY"]["valueFrom"] == {"resourceFieldRef": {"resource": "requests.memory"}}
    assert {"name": "claim-data", "mountPath": "/data"} in agent["volumeMounts"]
    assert made["volumes"][-1] == {"name": "claim-data", "persistentVolumeClaim": {"claimName": "shared"}}
    assert (made["priorityClassName"], made["serviceAccountName"]) == ("low", "me")
    assert made["nodeSelector"]["gpu"] == "a100"
    assert agent["command"][5:8] == ["3420", "-I", "-S"], "the agent leaves three minutes before its end"


def test_pods_of_spot_run_on_nodes_that_a_cloud_may_take_back_and_on_no_others() -> None:
    assert "affinity" not in pod(PLAIN)
    own = {"key": "lab", "operator": "Exists"}
    made = pod(replace(PLAIN, spot=True, tolerations=(own,)))
    affinity = made["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = {term["matchExpressions"][0]["key"] for term in affinity["nodeSelectorTerms"]}
    assert len(labels) == 4 and {each["key"] for each in made["tolerations"][2:4]} < labels
    assert made["tolerations"][-1] == own


def test_storage_is_a_claim_that_jobs_find_by_a_variable() -> None:
    made = pod(of := replace(PLAIN, storage=40 << 30))
    assert made["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "monkey-x-kube-00000000"}
    assert {"name": "STORAGE_DIR", "value": "/storage"} in made["containers"][0]["env"]
    assert {"name": "storage", "mountPath": "/storage"} in made["containers"][0]["volumeMounts"]
    claim = write_storage_claim("x", {}, of)["spec"]
    assert claim == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": str(40 << 30)}}}
    assert write_storage_claim("x", {}, replace(of, pilots=2))["spec"]["accessModes"] == ["ReadWriteMany"]


def test_the_source_in_a_manifest_is_python_and_needs_nothing_of_ours() -> None:
    command = pod(PLAIN)["initContainers"][0]["command"]
    tree = ast.parse(command[4])
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if (name or "").startswith("monkey")]
    assert len(command[4]) < 8000


def test_the_users_part_of_a_pod_is_merged_last() -> None:
    theirs = {
        "hostNetwork": True,
        "securityContext": {"runAsUser": None, "runAsGroup": 5},
        "containers": [
            {"name": "agent", "env": [{"name": "HOME", "value": "/data"}]},
            {"name": "beside", "image": "x"},
        ],
        "volumes": [{"name": "here", "hostPath": {"path": "/x"}}],
        "tolerations": [{"operator": "Exists"}],
    }
    made = pod(replace(PLAIN, pod=theirs))
    assert made["hostNetwork"] is True
    assert "runAsUser" not in made["securityContext"] and made["securityContext"]["runAsGroup"] == 5
    assert [each["name"] for each in made["containers"]] == ["agent", "beside"]
    agent = made["containers"][0]
    assert {"name": "HOME", "value": "/data"} in agent["env"]
    assert len(agent["env"]) == len(pod(PLAIN)["containers"][0]["env"])
    assert agent["image"] == "python:3.12-slim"
    assert [each["name"] for each in made["volumes"]] == ["place", "fleet", "handed", "here"]
    assert made["tolerations"] == [{"operator": "Exists"}]


def test_pods_of_an_image_are_that_image_whatever_the_users_part_says() -> None:
    image = f"ghcr.io/lab/train@sha256:{'a' * 64}"
    of = replace(PLAIN, pod={"containers": [{"name": "agent", "image": "other"}, {"name": "beside", "image": "x"}]})
    made = write_job(PilotShape(of, "monkey-x-kube-00000000", "ab" * 32, 10, image))
    spec = made["spec"]["template"]["spec"]
    images = {each["name"]: each["image"] for each in (*spec["initContainers"], *spec["containers"])}
    assert images == {"agent": image, "fetch": image, "beside": "x"}
    assert made["metadata"]["labels"]["monkey-sweep/image"] == "a" * 8
    assert spec["containers"][0]["command"][-2:] == ["--own-image", f"sha256:{'a' * 64}"]
    assert pod(PLAIN)["containers"][0]["command"][-2:] == ["--own-image", "none"], "it has no image to run jobs in"
    assert "monkey-sweep/image" not in job(PLAIN)["metadata"]["labels"]
    assert (
        read_jobs([made | {"metadata": {**made["metadata"], "name": "n", "uid": "u"}}], 0.0)[0].pilot.image == "a" * 8
    )


@pytest.mark.parametrize(
    "theirs",
    [
        {"containers": [{"name": "beside"}]},
        {"containers": [{"name": "agent", "image": "other"}, {"image": "x"}]},
        {"containers": ["beside"]},
        {"containers": "beside"},
        {"containers": None},
        {"initContainers": None},
    ],
)
def test_the_api_server_judges_what_the_users_part_makes_of_containers(theirs: dict[str, Any]) -> None:
    asked, image = json.dumps(theirs), f"ghcr.io/lab/train@sha256:{'a' * 64}"
    plain = pod(of := replace(PLAIN, pod=theirs))
    made = write_pod_spec(PilotShape(of, "monkey-x-kube-00000000", "ab" * 32, 10, image))
    assert made.keys() == plain.keys() and json.dumps(theirs) == asked, "settings, to which plans are bound, stay"
    ours = [each for kind in ("containers", "initContainers") for each in made.get(kind) or () if "name" in each]
    assert {each["image"] for each in ours if each["name"] in ("agent", "fetch")} <= {image}


def test_mounts_are_merged_by_their_path() -> None:
    ours = {"volumeMounts": [{"name": "a", "mountPath": "/a"}]}
    both = merge_pod(ours, {"volumeMounts": [{"name": "a", "mountPath": "/b"}, {"name": "c", "mountPath": "/a"}]})
    assert both["volumeMounts"] == [{"name": "c", "mountPath": "/a"}, {"name": "a", "mountPath": "/b"}]


def test_secrets_are_in_the_secret_alone_and_those_that_pods_have_are_kept() -> None:
    provider = Provider("kubernetes", max_slots=2, idle_timeout=30, kubernetes=PLAIN)
    files = HandedFiles("kube", provider, "x", "/data/store", ["/data/store/bundle/x/0", "/data/store/bundle/x/1"])
    request = PilotRequest({"": 1}, 10, "me ssh-ed25519 AAAA", {"TOKEN": "TOKEN='new'"}, ["OLD", "GONE"])
    written = files.write(request, "/here", "OLD='o'\nTOKEN='old'\nMORE='m'\n")
    assert written["secrets"] == b"OLD='o'\nTOKEN='new'\n"
    settings = json.loads(written["settings.json"])
    assert settings["arguments"][:2] == ["--store", "/data/store"] and "--max-slots" in settings["arguments"]
    assert json.loads(written["credentials.json"]) == {}
    secret = write_secret("label", written)
    assert base64.b64decode(secret["data"]["links"]) == b"/data/store/bundle/x/0\n/data/store/bundle/x/1"
    assert "new" not in repr(request) and "bundle" not in repr(files)


def test_a_directory_of_this_machine_is_no_store_for_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_pod_store("kube", replace(PLAIN, store_path="/data/s"), "/here") == "/data/s"
    assert place_pod_store("kube", PLAIN, "gs://bucket/x") == "gs://bucket/x"
    for url in ("/here", "ssh://host/there"):
        with pytest.raises(FleetError, match="pods cannot reach the store"):
            place_pod_store("kube", PLAIN, url)


def test_names_are_those_that_kubernetes_takes() -> None:
    project = "A_Project.with-a-name-that-is-far-too-long"
    engine = KubernetesEngine("My.Kube", Provider("kubernetes", kubernetes=PLAIN), project, "s3://b")
    assert engine.label.startswith("monkey-a-project-with-a-my-kube-")
    assert len(f"{engine.label}-999-abcde") <= 63
    assert engine.where == "prod/a-project-with-a-name-that-is-far-too-long"
    assert json.dumps(engine.bound) and engine.marker["label"] == engine.label
