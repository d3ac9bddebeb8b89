"""A namespace that is missing is made by those who may, and asked for by no others; nobody's is taken for ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.kubernetes.kubectl import Kubectl
from monkey_stacks.kubernetes.namespace_making import NamespaceMaking

#: kubectl that answers each verb as the file beside it says: a text, or the reason of a refusal.
PROGRAM = """\
#!{python}
import json, sys
words = [word for word in sys.argv[1:] if not word.startswith("--")]
answer = json.load(open(__file__ + ".answers"))[" ".join(words[:2])]
if "refused" in answer:
    sys.exit(f"Error from server ({{answer['refused']}}): namespaces is {{answer['refused']}}")
print(answer["text"])
"""
YES, NO, GONE = {"text": "namespace/shop"}, {"refused": "Forbidden"}, {"refused": "NotFound"}
TAKEN = {"refused": "AlreadyExists"}


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that says what kubectl answers."""
    program = tmp_path / "kubectl"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "kubectl.answers"


MAKING = NamespaceMaking(Kubectl("kube", "prod", "shop"), "shop")


@pytest.mark.parametrize(
    ("create", "get", "jobs", "missing"),
    [(YES, GONE, NO, True), (TAKEN, YES, YES, False), (NO, YES, YES, False), (NO, NO, YES, False)],
)
def test_whether_it_is_missing_is_asked_of_those_rights_that_the_user_has(
    kubectl: Path, create: object, get: object, jobs: object, missing: bool
) -> None:
    kubectl.write_text(json.dumps({"create": create, "get namespace": get, "get jobs": jobs}))
    assert MAKING.is_missing() is missing


@pytest.mark.parametrize(("get", "jobs"), [(GONE, YES), (NO, NO)])
def test_a_user_who_may_not_make_it_is_told_what_to_ask_for(kubectl: Path, get: object, jobs: object) -> None:
    kubectl.write_text(json.dumps({"create": NO, "get namespace": get, "get jobs": jobs}))
    with pytest.raises(FleetError, match="namespace 'shop' is missing or not yours") as refused:
        MAKING.is_missing()
    assert "kubectl --context=prod create namespace shop" in (refused.value.hint or "")


def test_another_who_applies_may_have_made_it(kubectl: Path) -> None:
    for answer, made in ((YES, True), (TAKEN, False), (NO, False)):
        kubectl.write_text(json.dumps({"create": answer}))
        assert MAKING.make() is made
    kubectl.write_text(json.dumps({"create": {"refused": "Invalid"}}))
    with pytest.raises(FleetError, match="Invalid"):
        MAKING.make()


def test_only_what_monkey_made_is_called_ours(kubectl: Path) -> None:
    labels = {"app.kubernetes.io/managed-by": "monkey", "monkey-sweep/project": "shop"}
    for found, ours in ((labels, True), ({"app.kubernetes.io/managed-by": "monkey"}, False), (None, False)):
        text = json.dumps({"metadata": {"labels": found} if found else {}})
        kubectl.write_text(json.dumps({"get namespace": {"text": text}}))
        assert MAKING.is_ours() is ours
    kubectl.write_text(json.dumps({"get namespace": NO}))
    assert MAKING.is_ours() is False
