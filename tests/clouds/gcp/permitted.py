"""Which permissions Google's documentation names for what a fleet asks: of its provider for Pulumi, and of its APIs.

Each method's page (docs.cloud.google.com/compute/docs/reference/rest/v1, and its like) has them: "IAM permissions".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Calls = Mapping[str, tuple[str, ...]]

_GLOBAL, _REGIONAL = "compute.globalOperations.get", "compute.regionOperations.get"
#: To have something in a network, or not any more.
_RULES = "compute.networks.updatePolicy"
#: A group makes machines in the name of who made it.
_MACHINES = (
    *(f"compute.instances.{call}" for call in ("create", "setLabels", "setMetadata", "setServiceAccount")),
    *("compute.disks.create", "compute.disks.setLabels", "compute.images.useReadOnly", "compute.subnetworks.use"),
    *("compute.subnetworks.useExternalIp", "iam.serviceAccounts.actAs", "compute.instanceTemplates.useReadOnly"),
)


def _compute(kind: str, operations: str, *making: str, changes: bool = True, **more: tuple[str, ...]) -> Calls:
    """Return what a kind of Compute Engine's takes; `making`: to make one, and to take it away.

    `changes`: whoever makes it will have to change it.
    """
    what = f"compute.{kind}."
    update = (f"{what}update",) if changes else ()
    found = {
        "create": (f"{what}create", *update, operations, *making),
        "read": (f"{what}get",),
        "update": (*update, operations, *making),
        "delete": (f"{what}delete", operations, *making),
    }
    return {call: (*names, *more.get(call, ())) for call, names in found.items()}


def _policy(what: str) -> Calls:
    get, put = f"{what}.getIamPolicy", f"{what}.setIamPolicy"
    return {"create": (get, put), "read": (get,), "delete": (get, put)}


#: What the plugin does to each kind of things.
PLUGIN: Mapping[str, Calls] = {
    "gcp:compute/network:Network": _compute("networks", _GLOBAL, changes=False),
    "gcp:compute/subnetwork:Subnetwork": _compute("subnetworks", _REGIONAL, _RULES),
    "gcp:compute/firewall:Firewall": _compute("firewalls", _GLOBAL, _RULES),
    "gcp:compute/instanceTemplate:InstanceTemplate": _compute(
        "instanceTemplates", _GLOBAL, changes=False, create=_MACHINES
    ),
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": _compute(
        "instanceGroupManagers", _REGIONAL, create=_MACHINES, delete=("compute.instances.delete",)
    ),
    "gcp:serviceaccount/account:Account": {
        "create": ("iam.serviceAccounts.create", "iam.serviceAccounts.update"),
        "read": ("iam.serviceAccounts.get",),
        "delete": ("iam.serviceAccounts.delete",),
    },
    "gcp:storage/bucketIAMMember:BucketIAMMember": _policy("storage.buckets"),
    "gcp:projects/iAMMember:IAMMember": {
        call: (*names, "resourcemanager.projects.get") for call, names in _policy("resourcemanager.projects").items()
    },
    "gcp:secretmanager/secretIamMember:SecretIamMember": {
        call: (*names, "secretmanager.secrets.get") for call, names in _policy("secretmanager.secrets").items()
    },
}
#: What an API takes: the method and the end of the path.
_GROUPS = r"/instanceGroupManagers/[^/]+"
APIS: Mapping[str, tuple[str, ...]] = {
    rf"GET .*{_GROUPS}": ("compute.instanceGroupManagers.get",),
    # gcloud's page of `instance-groups managed list-instances` names `list`, the method's own page `get`.
    rf"POST .*{_GROUPS}/listManagedInstances": (
        "compute.instanceGroupManagers.get",
        "compute.instanceGroupManagers.list",
    ),
    rf"POST .*{_GROUPS}/(resize\?size=\d+|(delete|recreate)Instances)": ("compute.instanceGroupManagers.update",),
    r"GET .*/aggregated/machineTypes\?.*": ("compute.machineTypes.list",),
    r"GET .*/aggregated/instances\?.*": ("compute.instances.list",),
    r"GET .*/aggregated/disks\?.*": ("compute.disks.list",),
    r"GET .*/zones/[^/]+/instances/[^/]+": ("compute.instances.get",),
    r"DELETE .*/zones/[^/]+/instances/[^/]+": ("compute.instances.delete",),
    r"GET .*/zones/[^/]+/disks/[^/]+": ("compute.disks.get",),
    r"DELETE .*/zones/[^/]+/disks/[^/]+": ("compute.disks.delete",),
    r"GET .*/global/images/family/[^/]+": ("compute.images.getFromFamily",),
    r"GET .*/global/images/[^/]+": ("compute.images.get",),
    r"GET .*/global/instanceTemplates\?.*": ("compute.instanceTemplates.list",),
    r"DELETE .*/global/instanceTemplates/[^/]+": ("compute.instanceTemplates.delete",),
    r"GET .*/global/instanceTemplates/[^/?]+": ("compute.instanceTemplates.get",),
    r"GET .*/global/networks/[^/]+": ("compute.networks.get",),
    r"GET .*/global/firewalls/[^/]+": ("compute.firewalls.get",),
    r"GET .*/subnetworks/[^/]+": ("compute.subnetworks.get",),
    r"GET v1/.*/serviceAccounts/[^/]+": ("iam.serviceAccounts.get",),
    r"GET v1/.*/roles/[^/]+": ("iam.roles.get",),
    r"GET v1/.*/secrets/[^/]+/versions/[^/]+:access": ("secretmanager.versions.access",),
    r"GET storage/v1/b/[^/]+": ("storage.buckets.get",),
}


def needed(plugin: Iterable[str], apis: Iterable[str]) -> set[str]:
    """Return the permissions that all of this took: "create gcp:compute/network:Network NAME", "GET compute/v1/…"."""
    found = set[str]()
    for line in plugin:
        call, token, _ = line.split()
        found |= set(PLUGIN[token][call])
    for line in apis:
        found |= set(of_api(line))
    return found


def of_api(line: str) -> tuple[str, ...]:
    """Return the permissions that a call of an API takes: "GET compute/v1/…"."""
    [names] = [names for pattern, names in APIS.items() if re.fullmatch(pattern, line)]
    return names
