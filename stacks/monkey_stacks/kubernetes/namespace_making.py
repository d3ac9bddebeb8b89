"""The namespace that `create_namespace:` asks for: made where it is missing, and never deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.kubernetes.kubectl import Kubectl
from monkey_stacks.kubernetes.kubectl_errors import shorten_refusal

#: The label of what monkey made, and that of a namespace which it made for a project.
_MAKER = {"app.kubernetes.io/managed-by": "monkey"}
_PROJECT_LABEL = "monkey-sweep/project"
_CREATE = ("create", "--filename=-", "--output=name")


@dataclass(frozen=True)
class NamespaceMaking:
    """The namespace of one provider, for a project by its name as a label has it."""

    kubectl: Kubectl
    project: str

    def is_missing(self) -> bool:
        """Ask whether the namespace is missing, and could be made; changes nothing.

        Raises FleetError where it is missing, or hidden from this user, and he may not make it.
        """
        answer = self.kubectl.try_verb(*_CREATE, "--dry-run=server", given=self._manifest)
        if not answer.refusals:
            return True
        [refused, *_] = answer.refusals
        if refused.reason == "AlreadyExists":
            return False
        if refused.reason != "Forbidden":
            raise self.kubectl.make_error(refused.line)
        seen = self.kubectl.try_verb("get", "namespace", self.kubectl.namespace, "--output=name").refusals
        if not seen:
            return False
        if seen[0].reason != "NotFound" and not self.kubectl.try_verb("get", "jobs", "--output=name").refusals:
            return False  # he may not see namespaces, but work in this one
        name, context = self.kubectl.namespace, self.kubectl.context
        raise FleetError(
            f"{self.kubectl.provider}: namespace {name!r} is missing or not yours, and your user may not make it: "
            f"{shorten_refusal(refused.line)}",
            hint=f"write a `namespace:` of yours, or ask an administrator for the role in docs/kubernetes.md, and: "
            f"kubectl --context={context} create namespace {name}",
        )

    def make(self) -> bool:
        """Make the namespace where it is missing; return whether it was. Raises FleetError.

        A user who may not make namespaces may have one that another made: what follows says whether it is there.
        """
        answer = self.kubectl.try_verb(*_CREATE, given=self._manifest)
        for refusal in answer.refusals:
            if refusal.reason not in ("AlreadyExists", "Forbidden"):
                raise self.kubectl.make_error(refusal.line)
        return not answer.refusals

    def is_ours(self) -> bool:
        """Ask whether monkey made the namespace; False where this user may not see it. Raises FleetError."""
        answer = self.kubectl.try_verb("get", "namespace", self.kubectl.namespace, "--output=json")
        labels = {} if answer.refusals else json.loads(answer.text)["metadata"].get("labels", {})
        return _PROJECT_LABEL in labels and _MAKER.items() <= labels.items()

    @property
    def _manifest(self) -> Mapping[str, Any]:
        labels = {**_MAKER, _PROJECT_LABEL: self.project}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.kubectl.namespace, "labels": labels}}
