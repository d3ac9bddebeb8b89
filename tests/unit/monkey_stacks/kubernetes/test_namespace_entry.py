"""What `monkey init --provider kubernetes` writes, by what kubectl and the API server say."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.errors import FleetError
from monkey.spec.project.provider import find_provider_mistakes, parse_provider
from monkey.spec.yaml.document import parse_document
from monkey_stacks.kubernetes.namespace_entry import (
    NamespaceFacts,
    read_forbidden,
    read_names,
    read_quotas,
    select_context,
    write_namespace_entry,
    write_reviews,
)

EKS = "arn:aws:eks:eu-central-1:1:cluster/ml"


def make_config(*names: str, current: str = "", **of: str) -> dict[str, Any]:
    return {"contexts": [{"name": name, "context": of} for name in names], "current-context": current}


def entry(**facts: Any) -> tuple[str, dict[str, Any]]:
    """Return the lines, and what they say; they must be an entry without mistakes."""
    text = write_namespace_entry(NamespaceFacts(**{"context": "prod", "namespace": "ml", **facts}))
    data = parse_document(f"providers:\n  cluster:\n{text}", "monkey.yaml").data
    assert find_provider_mistakes(data["providers"]) == []
    found: dict[str, Any] = data["providers"]["cluster"]
    parse_provider(found)
    return text, found


def test_the_context_is_the_one_asked_for_the_current_one_or_the_only_one() -> None:
    both = make_config("prod", EKS, current=EKS, namespace="ml")
    chosen, others = select_context(both, "")
    assert (chosen.name, chosen.namespace, others) == (EKS, "ml", ["prod"])
    assert select_context(both, "prod")[0].name == "prod"
    assert select_context(make_config("kind"), "")[0].name == "kind"
    for config, wanted, said in (
        (make_config(), "", "found none"),
        ({"contexts": None}, "", "found none"),
        (make_config("a", "b", current="gone"), "", "several contexts"),
        (both, "gone", "found 'gone'"),
    ):
        with pytest.raises(FleetError, match=said) as caught:
            select_context(config, wanted)
        assert caught.value.hint and ("choose one by --context: " in caught.value.hint) == bool(config.get("contexts"))


def test_what_else_there_is_stands_beside_it() -> None:
    text, said = entry(
        context=EKS, other_contexts=("dev",), namespaces=("kube-system", "ml", "web"), claims=("big.data",)
    )
    assert said["context"] == EKS and said["namespace"] == "ml"
    assert "# context: dev" in text and "# namespace: web" in text and "kube-system" not in text
    shown = text.replace("# volumes:", "volumes:")
    volumes = parse_document(f"providers:\n  cluster:\n{shown}", "monkey.yaml").data["providers"]["cluster"]
    assert find_provider_mistakes({"cluster": volumes}) == []
    assert volumes["volumes"] == {"big-data": {"claim": "big.data", "path": "/data/big.data"}}
    assert entry(namespace="1e3")[1]["namespace"] == "1e3"


def test_a_namespace_that_is_missing_or_forbidden_is_refused() -> None:
    with pytest.raises(FleetError, match="prod has no namespace 'ml'; it has web") as caught:
        entry(namespaces=("web",))
    assert "add --create" in (caught.value.hint or "")
    asked = [{**each, "status": {"allowed": False}} for each in write_reviews("ml")]
    asked[0]["status"]["allowed"] = True
    with pytest.raises(FleetError, match="may not: list, create, delete jobs; get, list pods; get, create"):
        entry(forbidden=read_forbidden(asked))
    text, _ = entry(forbidden=(("create", "pods"),))
    assert "# You may not create pods there: plans cannot ask" in text


def list_asked(*, create: bool) -> set[tuple[str, str]]:
    asked = (each["spec"]["resourceAttributes"] for each in write_reviews("ml", create=create))
    return {(each["verb"], each["resource"]) for each in asked}


def test_what_apply_is_to_make_is_written_where_the_user_may_make_it() -> None:
    both = {("create", "namespaces"), ("create", "persistentvolumeclaims")}
    assert list_asked(create=True) - list_asked(create=False) == both
    said = entry(create=True, namespaces=("web",))[1]
    assert (said["namespace"], said["create_namespace"], said["storage"]) == ("ml", True, "40GiB")
    assert "create_namespace" not in entry(create=True, namespaces=("ml", "web"))[1], "it is there"
    with pytest.raises(FleetError, match="prod has no namespace 'ml', and your user may not make it"):
        entry(create=True, namespaces=("web",), forbidden=(("create", "namespaces"),))
    text, said = entry(create=True, forbidden=tuple(sorted(both)))
    assert "create_namespace" not in said and "# storage: 40GiB" in text, "whoever sees no namespaces may work in one"


def test_what_a_cluster_says_spoils_no_file() -> None:
    made = {"kind": "Namespace", "metadata": {"name": "a\nb: c"}}
    assert read_names([made, {"kind": "Namespace", "metadata": {"name": "web"}}], "Namespace") == ("web",)
    status = {"hard": {"requests.cpu": "2", "pods": "9"}, "used": {"requests.cpu": "500m"}}
    quota = {"kind": "ResourceQuota", "metadata": {"name": "small"}, "status": status}
    assert read_quotas([quota]) == ("small: pods 0 of 9 used, requests.cpu 500m of 2 used",)
    status["hard"]["pods"] = "9\nx: y"
    assert read_quotas([quota]) == ("small",)
    assert read_quotas([{"kind": "ResourceQuota", "metadata": {"name": "new"}}]) == ("new",)
