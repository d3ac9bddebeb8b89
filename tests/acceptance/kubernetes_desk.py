"""A project whose pods run in a Kubernetes of the tests: what it says, and what is seen of it from outside."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path

from tests.acceptance.shop import Shop
from tests.kubernetes.local_kubernetes import LIMITED
from tests.kubernetes.nodes import PYTHON, Nodes

#: Pods of this namespace must be harmless; those that run jobs here see the ledger, and the bucket of this machine.
STRICT, TEAM = "strict", "team"
PROVIDER = """\
project: shop
store: s3://bucket/{namespace}?endpoint={endpoint}
providers:
  kube:
    type: kubernetes
    context: {context}
    namespace: {namespace}
    image: {image}
    pilots: 2
    memory: 300MiB
    idle_timeout: 2s
    {more}
"""
#: A role as docs/kubernetes.md has it, for a user who has no other.
RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: monkey}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: monkey}
subjects: [{kind: User, name: limited, apiGroup: rbac.authorization.k8s.io}]
"""
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small}
spec: {hard: {requests.cpu: 500m}}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {{name: disk}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteMany]
  hostPath: {{path: {disk}}}
"""
#: The key by which pods sign after a change.
OTHER_KEY = "OTHERKEY"
SECRET, OTHER = "tell-nobody-of-it", "nor-of-this"
#: Another person's key, to trust.
COLLEAGUE = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE7HcrQGKvYUAFY4wVzHGOPGvCSEJYOWrs+GWlWjHOQq", "--name", "ann")
#: Seconds for which the API server is away.
AWAY = 120.0 if os.environ.get("MONKEY_LONG") else 0.0


def describe(shop: Shop, *, context: str = LIMITED, namespace: str = TEAM, image: str = PYTHON, more: str = "") -> None:
    of = {"context": context, "namespace": namespace, "endpoint": shop.env["ENDPOINT"], "image": image}
    (shop.root / "monkey.yaml").write_text(PROVIDER.format(more=more or shop.env["POD"], **of))


def sweep(shop: Shop, *, jobs: int, more: str = "", provider: str = "kube") -> None:
    command = f"command: python3 job.py '{shop.ledger.directory}' 0.05 {{i}}\n"
    shop.spec(f"{command}parameters: {{i: {{range: [0, {jobs}]}}}}\nprovider: {provider}\noutputs: []\n{more}")


def say(shop: Shop, *words: str, code: int = 0) -> str:
    """Return what `monkey` says on both outputs."""
    done = shop.run(*words, code=code)
    return done.stdout + done.stderr


def overlaps(shop: Shop) -> list[object]:
    return [line for line in shop.ledger.lines if line.what == "overlap"]


def sees(nodes: Nodes, pod: str, file: str, text: str) -> bool:
    """Return whether a file of those that `apply` handed over to a pod has this text."""
    words = ("-n", TEAM, "exec", pod, "-c", "agent", "--", "cat", f"/monkey/fleet/{file}")
    return text in nodes.cluster.kubectl(*words, check=False)


def count_fleet(nodes: Nodes, namespace: str = TEAM) -> list[str]:
    """Return what the API server has with our label."""
    select = ("-l", "monkey-sweep/fleet", "-o", "name")
    return nodes.cluster.kubectl("-n", namespace, "get", "jobs,pods,secrets", *select).split()


def list_signers(shop: Shop) -> set[str]:
    """Return the keys by which the bucket was asked since the last call, by the bucket's own record."""
    record = Path(shop.env["RECORD"])
    found = set(re.findall(r"Credential=([^/]+)/", record.read_text())) if record.exists() else set()
    for verb in ("reset", "start"):
        address = f"{shop.env['ENDPOINT']}/moto-api/recorder/{verb}-recording"
        request = urllib.request.Request(address, method="POST", data=b"")
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).close()
    return found
