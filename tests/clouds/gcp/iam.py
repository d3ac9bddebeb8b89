"""Google's IAM, as far as machines meet it: roles, whom they are given, and conditions, by an evaluator of CEL.

What a condition may read stands in docs.cloud.google.com/iam/docs: `conditions-resource-attributes` lists the types of
resources that have attributes, and `conditions-attribute-reference` says of all others: "If part of a condition uses an
attribute that isn't available for a resource, then that part of the condition is never interpreted as granting access".
That is what CEL does with an error: `error || true` is true, `error && false` is false, all else is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import cel

from tests.clouds.kind import Props, Refused

#: Types of resources with attributes, of the services that a fleet uses. An instance group is not among them.
ATTRIBUTED = frozenset(
    f"{service}.googleapis.com/{kind}"
    for service, kinds in {
        "cloudresourcemanager": ("Project",),
        "compute": (
            *("BackendService", "Disk", "Firewall", "ForwardingRule", "GlobalForwardingRule", "Image", "Instance"),
            *("InstanceTemplate", "Snapshot", "TargetHttpProxy", "TargetHttpsProxy", "TargetSslProxy"),
            "TargetTcpProxy",
        ),
        "secretmanager": ("Secret", "SecretVersion"),
        "storage": ("Bucket", "ManagedFolder", "Object"),
    }.items()
    for kind in kinds
)
_READ = frozenset({"storage.objects.get", "storage.objects.list"})
_PARTS = frozenset(f"storage.multipartUploads.{call}" for call in ("abort", "create", "list", "listParts"))
#: What Google's own roles permit (docs.cloud.google.com/iam/docs/roles-permissions), as far as machines ask for it.
ROLES: Mapping[str, frozenset[str]] = {
    "roles/storage.objectViewer": _READ,
    "roles/storage.objectUser": _READ | _PARTS | {f"storage.objects.{call}" for call in ("create", "delete", "update")},
    "roles/secretmanager.secretAccessor": frozenset({"secretmanager.versions.access"}),
    "roles/compute.instanceAdmin.v1": frozenset(
        f"compute.{call}"
        for call in ("instanceGroupManagers.get", "instanceGroupManagers.update", "instances.delete", "instances.get")
    ),
}
#: Logical operators that Google takes in a condition (docs.cloud.google.com/iam/quotas).
OPERATORS = 12


@dataclass(frozen=True)
class Asked:
    """What IAM is asked: a permission, and the resource that it is about."""

    permission: str
    #: "compute.googleapis.com/InstanceGroupManager".
    type: str
    #: As attributes have it: "projects/_/buckets/B/objects/KEY".
    name: str


@dataclass(frozen=True)
class Given:
    """A role that somebody has on a resource, and so on all that is in it."""

    on: str
    role: str
    member: str
    expression: str = ""


@dataclass(frozen=True)
class Iam:
    """All that is given, and the roles of the project's own: name to permissions."""

    given: tuple[Given, ...]
    roles: Mapping[str, frozenset[str]]

    def allows(self, member: str, asked: Asked) -> bool:
        """Say whether somebody may."""
        return any(
            each.member == member
            and f"{asked.name}/".startswith(f"{each.on}/")
            and asked.permission in (ROLES.get(each.role) or self.roles[each.role])
            and holds(each.expression, asked)
            for each in self.given
        )


def holds(expression: str, asked: Asked) -> bool:
    """Say whether a condition grants it."""
    if not expression:
        return True
    known = {"type": asked.type, "name": asked.name, "service": asked.type.partition("/")[0]}
    context = cel.Context()
    context.add_variable("resource", known if asked.type in ATTRIBUTED else {})
    try:
        return cel.evaluate(expression, context) is True
    except KeyError:  # an attribute that is not there
        return False


def check_condition(condition: Mapping[str, Any] | None) -> str:
    """Return a condition's text. Raises Refused for one that Google does not take, or that fails there."""
    text = str((condition or {}).get("expression", ""))
    if not text:
        return ""
    try:
        cel.compile(text)
    except ValueError as exc:
        raise Refused(f"googleapi: Error 400: Invalid expression: {exc}, badRequest") from exc
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    if len(re.findall(r"&&|\|\||!(?!=)", bare)) > OPERATORS:
        raise Refused(f"googleapi: Error 400: more than {OPERATORS} logical operators in a condition, badRequest")
    # "API attributes for Cloud Storage are supported only in Credential Access Boundaries": in a binding, methods
    # "will work incorrectly and fail unexpectedly". The double fails as it is set.
    if "storage.googleapis.com/object" in text:
        raise Refused("googleapi: Error 400: attributes of Cloud Storage's API in a role binding, badRequest")
    return text


def read_given(things: Mapping[str, Props]) -> Iterable[Given]:
    """Yield what the bindings on the shelf give."""
    for props in things.values():
        on = {
            "gcp:storage/bucketIAMMember:BucketIAMMember": "projects/_/buckets/{bucket}",
            "gcp:projects/iAMMember:IAMMember": "projects/{project}",
            "gcp:secretmanager/secretIamMember:SecretIamMember": "projects/{project}/secrets/{secretId}",
        }.get(props["type"])
        if on is not None:
            told = check_condition(props.get("condition"))
            yield Given(on.format(**props), props["role"], props["member"], told)
