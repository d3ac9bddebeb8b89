"""Sweeps in pods of a real Kubernetes: its own programs, two nodes, users with few rights; no double of anything."""

from __future__ import annotations

import base64
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.acceptance.kubernetes_desk import (
    AWAY,
    COLLEAGUE,
    OTHER,
    OTHER_KEY,
    QUOTA,
    RIGHTS,
    SECRET,
    STRICT,
    TEAM,
    VOLUME,
    count_fleet,
    describe,
    list_signers,
    overlaps,
    say,
    sees,
    sweep,
)
from tests.acceptance.shop import Shop, until
from tests.kubernetes.image import VARIANT_FILE
from tests.kubernetes.local_kubernetes import ADMIN, LIMITED
from tests.kubernetes.nodes import NODES, PAUSE, PYTHON, VARIANT, Nodes, run_nodes

pytestmark = [pytest.mark.slow, pytest.mark.needs("kubernetes"), pytest.mark.needs("moto")]

DOCS = Path(__file__).parents[2] / "docs/kubernetes.md"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with (
        tempfile.TemporaryDirectory(prefix="mk8-", dir="/tmp", ignore_cleanup_errors=True) as home,
        run_nodes(Path(home)) as made,
    ):
        role = DOCS.read_text().partition("## Rights")[2].partition("```yaml\n")[2].partition("```")[0]
        for namespace in (STRICT, TEAM):
            made.cluster.kubectl("create", "namespace", namespace)
            given = role.replace("namespace: ml", f"namespace: {namespace}")
            made.cluster.kubectl("-n", namespace, "apply", "-f", "-", given=f"{given}---{RIGHTS}")
        made.cluster.kubectl("label", "namespace", STRICT, "pod-security.kubernetes.io/enforce=restricted")
        yield made


@pytest.fixture
def desk(shop: Shop, nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    shop.env["RECORD"] = str(tmp_path / "record")
    monkeypatch.setenv("MOTO_RECORDER_FILEPATH", shop.env["RECORD"])
    with services.moto() as endpoint:
        shop.env |= {**nodes.cluster.environment, **services.KEYS, "AWS_REGION": "us-east-1"}
        shop.env["MONKEY_TRUSTED_ENDPOINTS"] = endpoint
        shop.ledger.directory.chmod(0o777)
        directory = shop.ledger.directory
        mount = f"volumeMounts: [{{name: ledger, mountPath: '{directory}'}}]"
        seen = f"hostNetwork: true, volumes: [{{name: ledger, hostPath: {{path: '{directory}'}}}}]"
        shop.env["POD"] = f"pod: {{{seen}, containers: [{{name: agent, {mount}}}]}}"
        shop.env["ENDPOINT"] = endpoint
        yield shop


def test_a_user_with_few_rights_runs_a_sweep_in_pods_and_nothing_is_left(desk: Shop, nodes: Nodes) -> None:
    describe(desk)
    sweep(desk, jobs=6, more="secrets: [TOKEN]\n")
    desk.env["TOKEN"] = SECRET
    assert "machines 0 → 2" in say(desk, "plan") and not count_fleet(nodes), "a plan makes nothing"
    desk.ledger.hold()
    both = [desk.start("apply", "-y", "--detach") for _ in range(2)]
    for each in both:
        each.communicate(timeout=120)
    assert len([name for name in count_fleet(nodes) if name.startswith("job")]) == 2, "as many as for one"
    until(lambda: len(desk.ledger.begins) == 2, "each pod begins a job")
    shown = say(desk, "list", "instances")
    assert shown.count(" left") == 2, "each with its time"
    kept = nodes.cluster.kubectl("-n", TEAM, "get", "jobs,pods", "-o", "yaml")
    assert SECRET not in kept and base64.b64encode(SECRET.encode()).decode()[:-4] not in kept
    held = json.loads(nodes.cluster.kubectl("-n", TEAM, "get", "secrets", "-o", "json"))["items"]
    assert [SECRET.encode() in base64.b64decode(each["data"]["secrets"]) for each in held] == [True]
    [first, *_] = nodes.cluster.pods(TEAM)
    name = first["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    suspend = ("-n", TEAM, "patch", "job", name, "-p")
    nodes.cluster.kubectl(*suspend, '{"spec": {"suspend": true}}')
    until(lambda: desk.states().get("queued") == 5, "its job is given back", step=1.0)
    until(lambda: "suspended" in say(desk, "list", "instances"), "it is said", step=1.0)
    nodes.cluster.kubectl(*suspend, '{"spec": {"suspend": false}}')
    until(lambda: desk.states().get("running") == 2, "both work again", step=1.0)
    desk.ledger.release()
    until(lambda: desk.states() == {"succeeded": 6}, "all end", step=1.0)
    assert not overlaps(desk)
    say(desk, "destroy", "-y")
    assert not count_fleet(nodes)


def test_a_volume_claim_is_made_for_jobs_and_outlives_the_pilots(desk: Shop, nodes: Nodes, tmp_path: Path) -> None:
    (disk := tmp_path / "disk").mkdir()
    disk.chmod(0o777)
    nodes.cluster.kubectl("apply", "-f", "-", given=VOLUME.format(disk=disk))
    describe(desk, more=f"{desk.env['POD']}\n    storage: 1GiB")
    command = "command: echo $MONKEY_JOB >> $STORAGE_DIR/kept\nparameters: {i: [0, 1]}\nprovider: kube\noutputs: []\n"
    desk.spec(command)
    assert "+ volume claim monkey-shop-kube-" in say(desk, "plan") and not count_fleet(nodes)
    say(desk, "apply", "-y")
    assert desk.states() == {"succeeded": 2} and len(set((disk / "kept").read_text().split())) == 2
    kept = nodes.cluster.kubectl("-n", TEAM, "get", "pvc", "-o", "name").strip().partition("/")[2]
    desk.spec(command.replace("[0, 1]", "[0, 1, 2]"))
    assert "volume claim" not in say(desk, "plan"), "it is there"
    assert f"it by: kubectl --context={LIMITED} --namespace={TEAM} delete pvc {kept}" in say(desk, "destroy", "-y")
    assert not count_fleet(nodes) and (disk / "kept").exists()
    nodes.cluster.kubectl("-n", TEAM, "delete", "pvc", kept)


def test_a_missing_namespace_is_made_and_a_sweeps_image_is_that_of_its_pods(desk: Shop, nodes: Nodes) -> None:
    notes, pinned = desk.ledger.directory / "images", nodes.pin(VARIANT)
    command = f"command: echo {{i}} $(cat {VARIANT_FILE} || echo plain) >> '{notes}'\n"
    rest = "provider: kube\noutputs: []\nmax_retries: 0\n"
    desk.spec(f"{command}parameters: {{i: [0, 1]}}\n{rest}")
    desk.spec(f"{command}parameters: {{i: [2, 3]}}\n{rest}environment: {{image: '{pinned}'}}\n", name="inside")
    make = f"{desk.env['POD']}\n    create_namespace: true"
    describe(desk, namespace="fresh", more=make)
    said = say(desk, "plan", code=1)
    assert "may not make it" in said and "create namespace fresh" in said, "neither does this user see it"
    describe(desk, context=ADMIN, namespace="fresh", more=make)
    said = say(desk, "plan")
    assert "+ namespace fresh" in said and "0 → 4" in said, "two of each image"
    assert f"a pod of {PYTHON} in" in said and "a pod of localhost/variant@sha256:" in said
    assert "namespace/fresh" not in nodes.cluster.kubectl("get", "namespaces", "-o", "name")
    assert "namespace fresh made" in say(desk, "apply", "-y")
    assert desk.states() == desk.states("inside") == {"succeeded": 2}
    assert sorted(notes.read_text().splitlines()) == ["0 plain", "1 plain", "2 variant", "3 variant"]
    assert {pod["spec"]["containers"][0]["image"] for pod in nodes.cluster.pods("fresh")} == {PYTHON, pinned}
    desk.spec(f"{command}parameters: {{i: [4]}}\n{rest}environment: {{image: '{nodes.pin(PAUSE)}'}}\n", name="bare")
    assert "namespace fresh" not in say(desk, "plan"), "it is there"
    say(desk, "apply", "-y", "--detach")
    until(lambda: "python3" in say(desk, "list", "instances"), "an image without a Python is told", step=1.0)
    requirements = f"environment: {{image: '{pinned}', requirements: [numpy==2.0.0]}}\n"
    desk.spec(f"{command}parameters: {{i: [5]}}\n{rest}{requirements}", name="bare")
    assert "Dockerfile" in say(desk, "plan", code=1)
    nodes.cluster.kubectl("-n", "fresh", "create", "configmap", "of-another")
    assert "delete namespace fresh" in say(desk, "destroy", "-y") and not count_fleet(nodes, "fresh")
    assert "of-another" in nodes.cluster.kubectl("-n", "fresh", "get", "configmaps", "-o", "name")
    sweep(desk, jobs=1)
    (desk.root / "specs/bare.yaml").unlink()
    describe(desk, more=make)
    assert "+ namespace" not in say(desk, "plan"), "a user who may make none has one"


def test_what_kubernetes_refuses_and_why_pods_wait_is_told(desk: Shop, nodes: Nodes) -> None:
    sweep(desk, jobs=2)
    describe(desk, namespace="nowhere")
    assert "jobs.batch is forbidden" in say(desk, "plan", code=1), "the user may not even see whether it is there"
    describe(desk, context=ADMIN, namespace="nowhere")
    assert "create namespace nowhere" in say(desk, "plan")
    describe(desk, context="gone")
    assert 'context "gone" does not exist' in say(desk, "plan", code=1)
    describe(desk, namespace=STRICT)
    assert "violates PodSecurity" in say(desk, "plan"), "the host's network is no right of theirs"
    describe(desk, namespace=STRICT, more="gpus: 1")
    assert "refuses" not in say(desk, "plan"), "what monkey writes itself fits into the strictest policy"
    say(desk, "apply", "-y", "--detach")
    until(lambda: "Insufficient nvidia.com/gpu" in say(desk, "list", "instances"), "it says why they wait", step=1.0)
    assert "Insufficient nvidia.com/gpu" in say(desk, "plan")
    say(desk, "destroy", "-y")
    assert not count_fleet(nodes, STRICT)
    describe(desk, image="127.0.0.1:1/gone:1", more=f"{desk.env['POD']}\n    spot: true")
    say(desk, "apply", "-y", "--detach")
    until(lambda: "didn't match Pod's node affinity" in say(desk, "list", "instances"), "no node is spot", step=1.0)
    for node, label in zip(NODES, ("karpenter.sh/capacity-type=spot", "cloud.google.com/gke-spot=true"), strict=True):
        nodes.cluster.kubectl("label", "node", node, label)
    until(lambda: "correct `image:`" in say(desk, "plan"), "it is said", step=1.0)
    assert "127.0.0.1:1/gone:1" in say(desk, "list", "instances")
    say(desk, "destroy", "-y")
    nodes.cluster.kubectl("-n", STRICT, "apply", "-f", "-", given=QUOTA)
    seen = ("-n", STRICT, "get", "quota", "small", "-o", "jsonpath={.status.hard}")
    until(lambda: nodes.cluster.kubectl(*seen), "the quota is counted")
    describe(desk, namespace=STRICT, more="cpus: 1")
    assert "exceeded quota: small" in say(desk, "plan")


def test_init_asks_the_cluster_and_the_entry_that_it_writes_can_be_planned(desk: Shop, nodes: Nodes) -> None:
    sweep(desk, jobs=2, provider="cluster")
    (desk.root / "monkey.yaml").write_text("project: shop\n")
    init = ("init", "--provider", "kubernetes", "--context", LIMITED, "--store", "s3://bucket/init")
    said = say(desk, *init, code=1)
    assert "limited/default: your user may not: get, list, create, delete jobs" in said and "role" in said
    assert "no namespace 'nowhere'; it has" in say(desk, *init[:4], ADMIN, "--namespace", "nowhere", code=1)
    assert (desk.root / "monkey.yaml").read_text() == "project: shop\n"
    say(desk, *init, "--namespace", TEAM)
    written = (desk.root / "monkey.yaml").read_text()
    assert f"context: {LIMITED}\n    # context: {ADMIN}\n    namespace: {TEAM}\n" in written
    endpoint = f"s3://bucket/init?endpoint={desk.env['ENDPOINT']}"
    (desk.root / "monkey.yaml").write_text(written.replace("s3://bucket/init", json.dumps(endpoint)))
    assert "pilot 0: a pod of python:3.12-slim in limited/team" in say(desk, "plan")
    (desk.root / "monkey.yaml").write_text("project: new.shop\n")
    say(desk, *init[:4], ADMIN, "--create")
    written = (desk.root / "monkey.yaml").read_text()
    assert "namespace: new-shop\n" in written and "create_namespace: true" in written and "storage: 40GiB" in written
    (desk.root / "monkey.yaml").unlink()
    say(desk, *init[:4], ADMIN)
    assert f"# namespace: {STRICT}\n    # namespace: {TEAM}\n" in (desk.root / "monkey.yaml").read_text()


def test_the_server_takes_our_manifests_in_a_strict_namespace(nodes: Nodes, tmp_path: Path) -> None:
    sync = DOCS.read_text().partition("## Sync on the cluster")[2].partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "sync.yaml").write_text(sync.replace("namespace: ml", f"namespace: {STRICT}"))
    check = ("-n", STRICT, "apply", "--dry-run=server", "--warnings-as-errors", "-o", "name")
    said = nodes.cluster.kubectl(*check, "-f", str(tmp_path / "sync.yaml"))
    assert [name.partition("/")[0].partition(".")[0] for name in said.split()] == [
        *("serviceaccount", "rolebinding", "configmap", "persistentvolumeclaim", "cronjob")
    ]
    said = nodes.cluster.kubectl(*check, "-f", str(DOCS.parents[1] / "dashboards/kubernetes"))
    assert said.count("deployment.apps/") == 2 and said.count("service/") == 2


def test_drained_pods_new_secrets_a_dead_api_server_and_a_greedy_job_lose_no_work(desk: Shop, nodes: Nodes) -> None:
    describe(desk)
    notes = desk.ledger.directory / "tokens"
    begin = f"command: \"echo $TOKEN >> '{notes}' && exec python3 job.py '{desk.ledger.directory}' 0.05 {{i}}\"\n"
    desk.spec(f"{begin}parameters: {{i: {{range: [0, 6]}}}}\nprovider: kube\noutputs: []\nsecrets: [TOKEN]\n")
    desk.env["TOKEN"] = SECRET
    desk.ledger.hold()
    say(desk, "apply", "-y", "--detach")
    until(lambda: len(desk.ledger.begins) == 2, "each pod begins a job")
    gone = {pod["metadata"]["name"] for pod in nodes.cluster.pods(TEAM) if pod["spec"]["nodeName"] == "n1"}
    assert gone, "a pod on each node"
    nodes.cluster.kubectl("drain", "n1", "--force", "--delete-emptydir-data", "--timeout=100s")
    until(lambda: desk.ledger.executions == 3, "a job of the drained node runs elsewhere")
    nodes.cluster.kubectl("uncordon", "n1")
    there = [pod["metadata"]["name"] for pod in nodes.cluster.pods(TEAM) if pod["status"]["phase"] == "Running"]
    assert len(there) == 2 and gone.isdisjoint(there)
    say(desk, "trust", *COLLEAGUE)
    desk.env |= {"TOKEN": OTHER, "AWS_ACCESS_KEY_ID": OTHER_KEY}
    assert "other signers and credentials and secrets" in say(desk, "plan")
    say(desk, "apply", "-y", "--detach")
    for name in there:
        until(
            lambda name=name: sees(nodes, name, "secrets", OTHER), "the new secret is in the pod that works", step=1.0
        )
        assert sees(nodes, name, "signers", COLLEAGUE[0].split()[1])
    until(lambda: list_signers(desk) == {OTHER_KEY}, "pods that work sign by the new key alone", step=2.0)
    nodes.cluster.end_daemon("kube-apiserver", signal.SIGKILL)
    away = time.monotonic()
    assert "refused" in say(desk, "list", "instances") and "refused" in say(desk, "plan", code=1)
    until(lambda: time.monotonic() - away > AWAY, "it is away for so long", patience=2 * AWAY + 1)
    desk.ledger.release()
    until(lambda: desk.states() == {"succeeded": 6}, "all end while no API server is there", step=1.0)
    nodes.cluster.start_api()
    assert notes.read_text().split() == [SECRET] * 3 + [OTHER] * 4
    assert not overlaps(desk) and desk.ledger.executions == 7, "one job was begun again: the drained one"
    greedy = "command: [python3, -c, 'bytearray(600 << 20)']\nparameters: {i: [0]}\nprovider: kube\nmax_retries: 0\n"
    desk.spec(f"{greedy}outputs: []\n", name="greedy")
    sweep(desk, jobs=7)
    say(desk, "apply", "-y", code=1)
    assert desk.states("greedy") == {"failed": 1} and "memory" in say(desk, "status", "greedy")
    assert desk.states()["succeeded"] == 7, "the neighbours go on"
    ends = nodes.cluster.kubectl("-n", TEAM, "get", "pods", "-o", "jsonpath={.items[*].status.phase}").split()
    assert "Failed" not in ends, "the pod goes on, too"
    say(desk, "destroy", "-y")
    assert not count_fleet(nodes)


@pytest.mark.skipif(not os.environ.get("MONKEY_LONG"), reason="a node dies: six minutes")
def test_a_dead_nodes_jobs_run_elsewhere_and_another_pilot_is_made(desk: Shop, nodes: Nodes) -> None:
    describe(desk)
    sweep(desk, jobs=2)
    desk.ledger.hold()
    say(desk, "apply", "-y", "--detach")
    until(lambda: len(desk.ledger.begins) == 2, "each pod begins a job")
    assert {pod["spec"]["nodeName"] for pod in nodes.cluster.pods(TEAM)} == {"n1", "n2"}
    nodes.kill_node("n1")
    desk.ledger.release()
    until(lambda: "does not answer" in desk.run("audit", code=None).stdout, "it is said", patience=500, step=2.0)
    say(desk, "apply", "-y", "--detach")
    until(lambda: desk.states() == {"succeeded": 2}, "all end", step=1.0)
    assert not overlaps(desk)
    say(desk, "destroy", "-y")
    assert not count_fleet(nodes)
    nodes.start_kubelet("n1")
    nodes.await_ready()
