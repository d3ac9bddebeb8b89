"""What `monkey init --provider kubernetes` asks kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.kubernetes import namespace_entry
from monkey_stacks.kubernetes.kubectl import Kubectl, KubectlAnswer
from monkey_stacks.kubernetes.kubernetes_engine import spell_name
from monkey_stacks.kubernetes.namespace_entry import NamespaceFacts


def ask_for_entry(name: str, asked: Mapping[str, str]) -> str:
    """Ask kubectl and the cluster, and return the lines of an entry of monkey.yaml, without the provider's name.

    `asked`: `context` and `namespace`, if not those that kubectl would take; `create`: the project's name, if `apply`
    is to make what is missing. Raises FleetError.
    """
    known = _read(Kubectl(name, "", "").run_verb("config", "view", "--output=json"))
    context, others = namespace_entry.select_context(next(known, {}), asked.get("context", ""))
    create = asked.get("create", "")
    namespace = asked.get("namespace") or (spell_name(create, 63) if create else context.namespace) or "default"
    kubectl = Kubectl(name, context.name, namespace)
    found = [
        each for kinds in ("namespaces", "persistentvolumeclaims,resourcequotas") for each in _list(kubectl, kinds)
    ]
    facts = NamespaceFacts(
        context.name,
        namespace,
        tuple(others),
        namespaces=namespace_entry.read_names(found, "Namespace"),
        claims=namespace_entry.read_names(found, "PersistentVolumeClaim"),
        quotas=namespace_entry.read_quotas(found),
        forbidden=_ask_rights(kubectl, create=bool(create)),
        create=bool(create),
    )
    return namespace_entry.write_namespace_entry(facts)


def _ask_rights(kubectl: Kubectl, *, create: bool) -> tuple[tuple[str, str], ...]:
    given = {
        "apiVersion": "v1",
        "kind": "List",
        "items": namespace_entry.write_reviews(kubectl.namespace, create=create),
    }
    answer = kubectl.run_verb("create", "--filename=-", "--output=json", given=given)
    return namespace_entry.read_forbidden(list(_read(answer)))


def _list(kubectl: Kubectl, kinds: str) -> list[Mapping[str, Any]]:
    """Return what the user may see of these kinds."""
    answer = kubectl.try_verb("get", kinds, "--output=json")
    return [each for found in _read(answer) for each in found.get("items", ())]


def _read(answer: KubectlAnswer) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that kubectl printed one after the other. Raises FleetError."""
    decoder, text = json.JSONDecoder(), answer.text.lstrip()
    while text:
        try:
            found, end = decoder.raw_decode(text)
        except ValueError:
            raise FleetError("kubectl printed no JSON", hint="try it by hand: kubectl config view -o json") from None
        yield found
        text = text[end:].lstrip()
