"""Roles at Google for users who run `apply`, and where they are granted.

Compute Engine knows no rights to what is called so: these are for the whole project, best one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from monkey.spec.project.cloud import CloudSettings
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.gcp import machine_rights
from monkey_stacks.gcp.desired_resources import spell_secret_path

#: To make, change and take away the machines of fleets, and what they need around them.
_MACHINE_CALLS = (
    *(f"compute.networks.{call}" for call in ("create", "delete", "get", "updatePolicy")),
    *(f"compute.subnetworks.{call}" for call in ("create", "delete", "get", "update", "use", "useExternalIp")),
    *(f"compute.firewalls.{call}" for call in ("create", "delete", "get", "update")),
    *(f"compute.instanceTemplates.{call}" for call in ("create", "delete", "get", "list", "useReadOnly")),
    *(f"compute.instanceGroupManagers.{call}" for call in ("create", "delete", "get", "list", "update")),
    # A group asks for machines in the name of who made it.
    *(f"compute.instances.{call}" for call in ("create", "delete", "get", "list", "setLabels", "setMetadata")),
    "compute.instances.setServiceAccount",
    *(f"compute.disks.{call}" for call in ("create", "delete", "get", "list", "setLabels")),
    *("compute.images.get", "compute.images.getFromFamily", "compute.images.useReadOnly", "compute.machineTypes.list"),
    *("compute.globalOperations.get", "compute.regionOperations.get"),
    *(f"iam.serviceAccounts.{call}" for call in ("actAs", "create", "delete", "get", "update")),
    # To see whether the role of machines is there.
    "iam.roles.get",
    *("resourcemanager.projects.get", "resourcemanager.projects.getIamPolicy"),
)
#: To use the store, and to have machines use it.
STORE = (
    *(f"storage.objects.{call}" for call in ("create", "delete", "get", "list")),
    *(f"storage.multipartUploads.{call}" for call in ("abort", "create", "listParts")),
    *(f"storage.buckets.{call}" for call in ("get", "getIamPolicy", "setIamPolicy")),
)
#: To have machines read a secret: it is given for each secret alone, and is not the right to read it.
SECRETS = ("secretmanager.secrets.get", "secretmanager.secrets.getIamPolicy", "secretmanager.secrets.setIamPolicy")
#: To give rights in the project; cut down to the one that machines have there.
GIVING = "roles/resourcemanager.projectIamAdmin"


def list_roles(store_url: str, cloud: CloudSettings) -> Mapping[str, Any]:
    """Return the roles that `apply` needs, as `gcloud iam roles create --file` takes them, and where."""
    project, bucket = f"projects/{cloud.gcp_project}", parse_bucket_url(store_url).bucket
    group = machine_rights.spell_group_role(cloud.gcp_project)
    secrets = sorted({spell_secret_path(where, cloud.gcp_project) for where in cloud.secrets.values()})
    roles = {
        "monkeyMachines": _role("Machines of monkey", _MACHINE_CALLS),
        # Nobody is given this one by hand: apply gives it to machines.
        machine_rights.GROUP_ROLE: _role("Groups of machines of monkey", machine_rights.GROUP_CALLS),
        "monkeyStore": _role("Stores of monkey", STORE),
        **({"monkeySecrets": _role("Secrets of machines of monkey", SECRETS)} if secrets else {}),
    }
    only = {"title": "own-group-only", "expression": f"{_GIVEN}.hasOnly(['{group}'])"}
    bindings: list[Mapping[str, Any]] = [
        {"on": project, "role": f"{project}/roles/monkeyMachines"},
        {"on": project, "role": GIVING, "condition": only},
        {"on": f"gs://{bucket}", "role": f"{project}/roles/monkeyStore"},
        *({"on": secret, "role": f"{project}/roles/monkeySecrets"} for secret in secrets),
    ]
    return {"roles": roles, "bindings": bindings}


_GIVEN = "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', [])"


def _role(title: str, included: Sequence[str]) -> Mapping[str, Any]:
    return {"title": title, "stage": "GA", "includedPermissions": sorted(included)}
