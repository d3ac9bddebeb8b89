"""A volume claim that is there is used by those, too, who may create none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from monkey.spec.project.engines.kubernetes_settings import KubernetesSettings
from monkey.spec.project.provider import Provider
from monkey_stacks.kubernetes.kubernetes_engine import KubernetesEngine
from monkey_stacks.pilots.pilot_engine import PilotRequest

#: kubectl for a user who may see volume claims, and create none; what was asked is written down beside it.
PROGRAM = """\
#!{python}
import json, sys
verb = [word for word in sys.argv[1:] if not word.startswith("--")]
given = json.loads(sys.stdin.read() or "{{}}")
with open(__file__ + ".asked", "a") as asked:
    print(*verb[:2], *sorted(each["kind"] for each in given.get("items", ())), file=asked)
if verb[0] == "create" and any(each["kind"] == "PersistentVolumeClaim" for each in given["items"]):
    sys.exit('Error from server (Forbidden): error when creating "STDIN": persistentvolumeclaims is forbidden: '
             'User "u" cannot create resource "persistentvolumeclaims" in API group "" in the namespace "ml"')
if verb[0] == "get":
    print({{"persistentvolumeclaim": "persistentvolumeclaim/x", "jobs,pods": '{{"items": []}}'}}.get(verb[1], ""))
if verb[0] == "create":
    print(*("job.batch/" + each["metadata"]["name"] for each in given["items"]), sep="\\n")
"""


def test_pilots_are_submitted_by_who_may_not_create_the_claim_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(PROGRAM.format(python=sys.executable))
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = KubernetesSettings("prod", "x", namespace="ml", storage=1 << 30, store_path="/store")
    engine = KubernetesEngine("kube", Provider("kubernetes", kubernetes=settings), "p", "/store")
    said: list[str] = []
    assert engine.submit(PilotRequest({"": 1}, 10.0, "", {}), said.append) == 1
    assert said == ["1 pilot created as Job in prod/ml"]
    assert (tmp_path / "kubectl.asked").read_text().splitlines()[-1] == "create Job"
