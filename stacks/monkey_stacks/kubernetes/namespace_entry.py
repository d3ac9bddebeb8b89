"""The entry that `monkey init --provider kubernetes` writes, by what kubectl and a cluster say. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.pilots.entry_lines import join_entry_lines, quote_yaml_word

#: What the role of docs/kubernetes.md permits, by the API's group and the resource.
_RIGHTS = {
    ("batch", "jobs"): ("get", "list", "create", "delete"),
    ("", "pods"): ("get", "list", "create", "delete"),
    ("", "secrets"): ("get", "create", "patch", "delete"),
}
#: What it needs besides where `apply` is to make what is missing.
_NAMESPACES, _CLAIMS = ("create", "namespaces"), ("create", "persistentvolumeclaims")
#: Rights without which sweeps run all the same, and what is missing then.
_SPARED = {
    ("create", "pods"): "plans cannot ask whether the namespace takes pods",
    ("delete", "pods"): "destroy waits for pods on nodes that do not answer",
}
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_QUANTITY = re.compile(r"[\w./-]{1,80}")
#: An image that anybody may pull; pilots at most, and memory of one: a first sweep shall not take a cluster.
_IMAGE, _PILOTS, _MEMORY = "python:3.12-slim", 2, "2GiB"
#: The size of a volume claim.
_STORAGE = "40GiB"
#: Contexts, namespaces, claims and quotas that are named, at most.
_MOST = 8


@dataclass(frozen=True)
class KubeContext:
    """A context of the user's kubeconfig; `namespace`: "" where it names none."""

    name: str
    namespace: str = ""


@dataclass(frozen=True)
class NamespaceFacts:
    """What a namespace has for its user; nothing of what he may not see."""

    context: str
    namespace: str
    other_contexts: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    #: Each quota in a line.
    quotas: tuple[str, ...] = ()
    #: What he may not do, of what pilots need: ("create", "jobs").
    forbidden: tuple[tuple[str, str], ...] = ()
    #: `apply` is to make a namespace that is missing, and a volume claim.
    create: bool = False


def select_context(config: Mapping[str, Any], wanted: str) -> tuple[KubeContext, Sequence[str]]:
    """Return a context of the kubeconfig `config`, and the names of the others: `wanted`, the current or the only one.

    Raises FleetError.
    """
    found = {str(each["name"]): each.get("context") or {} for each in config.get("contexts") or ()}
    named = {name: of for name, of in found.items() if name and name.isprintable()}
    listed = ", ".join(sorted(named)[:_MOST])
    if not named:
        hint = "log in to your cluster as its documentation says; `kubectl config get-contexts` shows it then"
        raise FleetError("expected a context of kubectl, found none", hint=hint)
    current = str(config.get("current-context") or "")
    name = wanted or (current if current in named else next(iter(named)) if len(named) == 1 else "")
    choose = f"choose one by --context: {listed}"
    if not name:
        raise FleetError("kubectl has several contexts, and none is the current one", hint=choose)
    if name not in named:
        raise FleetError(f"expected a context of kubectl, found {name!r}", hint=choose)
    chosen = KubeContext(name, str(named[name].get("namespace") or ""))
    return chosen, [each for each in named if each != name]


def write_reviews(namespace: str, *, create: bool = False) -> list[Mapping[str, Any]]:
    """Return the questions whether the user may do what pilots need; `create`: and make a namespace and a claim."""
    asked = {**_RIGHTS, **({("", resource): (verb,) for verb, resource in (_NAMESPACES, _CLAIMS)} if create else {})}
    return [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
            },
        }
        for (group, resource), verbs in asked.items()
        for verb in verbs
    ]


def read_forbidden(answers: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return what the answers to `write_reviews` do not allow: each a verb and a resource."""
    asked = [(each["spec"]["resourceAttributes"], each.get("status", {}).get("allowed")) for each in answers]
    return tuple((str(of["verb"]), str(of["resource"])) for of, allowed in asked if not allowed)


def read_names(objects: Iterable[Mapping[str, Any]], kind: str) -> tuple[str, ...]:
    """Return the names of the objects of this kind."""
    names = (str(each["metadata"]["name"]) for each in objects if each.get("kind") == kind)
    return tuple(filter(_NAME.fullmatch, names))


def read_quotas(objects: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return each quota in a line: "small: requests.cpu 500m of 2 used"."""
    found = []
    for each in objects:
        if each.get("kind") == "ResourceQuota" and _NAME.fullmatch(name := str(each["metadata"]["name"])):
            hard, used = (each.get("status", {}).get(key) or {} for key in ("hard", "used"))
            told = [f"{what} {used.get(what, '0')} of {most} used" for what, most in sorted(hard.items())]
            fits = all(map(_QUANTITY.fullmatch, map(str, (*hard, *hard.values(), *used.values()))))
            found.append(f"{name}: {', '.join(told)}" if told and fits else name)
    return tuple(found)


def write_namespace_entry(facts: NamespaceFacts) -> str:
    """Return the lines below the provider's name. Raises FleetError where pilots could not be made there."""
    _check_place(facts)
    return join_entry_lines(_list_lines(facts))


def _check_place(facts: NamespaceFacts) -> None:
    place = f"{facts.context}/{facts.namespace}"
    missing = bool(facts.namespaces) and facts.namespace not in facts.namespaces
    if missing and facts.create and _NAMESPACES in facts.forbidden:
        hint = f"name one that is there by --namespace; or ask an administrator to create {facts.namespace!r}"
        raise FleetError(
            f"{facts.context} has no namespace {facts.namespace!r}, and your user may not make it", hint=hint
        )
    if missing and not facts.create:
        listed = ", ".join(facts.namespaces[:_MOST])
        make = f"kubectl --context={facts.context} create namespace {facts.namespace}"
        hint = f"name another by --namespace, add --create, or make it: {make}"
        raise FleetError(f"{facts.context} has no namespace {facts.namespace!r}; it has {listed}", hint=hint)
    needed: dict[str, list[str]] = {}
    for verb, resource in facts.forbidden:
        if (verb, resource) not in (*_SPARED, _NAMESPACES, _CLAIMS):
            needed.setdefault(resource, []).append(verb)
    if needed:
        told = "; ".join(f"{', '.join(verbs)} {resource}" for resource, verbs in needed.items())
        hint = "name another by --namespace, or ask an administrator for the role in docs/kubernetes.md"
        raise FleetError(f"{place}: your user may not: {told}", hint=hint)


def _list_lines(facts: NamespaceFacts) -> Iterator[str]:
    yield "type: kubernetes"
    yield f"context: {quote_yaml_word(facts.context)}"
    yield from (f"# context: {quote_yaml_word(each)}" for each in facts.other_contexts[:_MOST])
    yield f"namespace: {quote_yaml_word(facts.namespace)}"
    others = [each for each in facts.namespaces if each != facts.namespace and not each.startswith("kube-")]
    yield from (f"# namespace: {quote_yaml_word(each)}" for each in others[:_MOST])
    if facts.create and facts.namespace not in facts.namespaces and _NAMESPACES not in facts.forbidden:
        yield "create_namespace: true  # by the first apply"
    for verb, resource in (each for each in facts.forbidden if each in _SPARED):
        yield f"# You may not {verb} {resource} there: {_SPARED[verb, resource]}."
    yield from (f"# quota {each}" for each in facts.quotas[:_MOST])
    yield f"image: {_IMAGE}  # has a Python 3.11 to 3.14; take one with what your jobs import"
    yield f"pilots: {_PILOTS}  # at most"
    yield "cpus: 1"
    yield f"memory: {_MEMORY}"
    yield "# gpus: 1"
    yield from _list_storage_lines(facts)
    mounts = [
        f"{each.replace('.', '-')[:63].strip('-')}: {{claim: {each}, path: /data/{each}}}" for each in facts.claims
    ]
    yield from (f"# volumes: {{{each}}}" for each in mounts[:_MOST])


def _list_storage_lines(facts: NamespaceFacts) -> Iterator[str]:
    if facts.create and _CLAIMS in facts.forbidden:
        yield f"# storage: {_STORAGE}  # you may not create persistentvolumeclaims there"
    elif facts.create:
        yield f"storage: {_STORAGE}  # at $STORAGE_DIR; on a cluster without volumes for several nodes, write pilots: 1"
