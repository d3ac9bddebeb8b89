"""Kinds of things at Google. Their ids are made from what they are called: nothing is called by Google itself.

What forces replacement stands as `ForceNew` in terraform-provider-google-beta, google-beta/services/SERVICE: read there
as of v7.45.0, of 21 August 2026. pulumi-gcp 10.2's own schema is no package that one can have; 9.35 was made from 7.45.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.clouds.gcp.iam import check_condition
from tests.clouds.gcp.shelf import Shelf
from tests.clouds.kind import Kind, Props, Refused

_ROOT = "https://www.googleapis.com/compute/v1/"


class Thing(Kind):
    """Something at Google."""

    #: Its id, with names of its arguments.
    form: str
    #: It has labels, and a link to itself.
    linked, labelled = True, False
    #: Arguments that the provider's settings give where nobody does.
    placed: tuple[str, ...] = ("project",)

    def make(self, cloud: Shelf, want: Props) -> str:
        props = self._placed(cloud, want)
        missing = [name for name in self.placed if not props.get(name)]
        if missing:
            raise Refused(f"{missing[0]}: required field is not set")
        id_ = self.form.format(**props)
        cloud.make(self.token, id_, props)
        return id_

    def read(self, cloud: Shelf, id_: str) -> Props | None:
        found = cloud.get(id_)
        if found is None or found.get("deleted"):
            return None
        props = {name: value for name, value in found.items() if name != "type"}
        if self.linked:
            props["selfLink"] = f"{_ROOT}{id_}"
        if self.labelled:
            own = props.get("labels") or {}
            props["effectiveLabels"] = {**own, "goog-pulumi-provisioned": "true"}
            props["pulumiLabels"] = props["effectiveLabels"]
        return {**props, **self.computed(id_, props)}

    def computed(self, id_: str, props: Props) -> Props:
        """Return what Google adds."""
        return {}

    def change(self, cloud: Shelf, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        cloud.change(self.token, id_, self._placed(cloud, new))

    def remove(self, cloud: Shelf, id_: str, state: Props) -> None:
        cloud.remove(self.token, id_)

    def same(self, name: str, old: Any, new: Any) -> bool:
        # A link and the id that ends it are one.
        if isinstance(old, str) and isinstance(new, str):
            return old.removeprefix(_ROOT) == new.removeprefix(_ROOT)
        return super().same(name, old, new)

    def _placed(self, cloud: Shelf, want: Props) -> Props:
        given = {"project": cloud.project, "region": cloud.region, "zone": cloud.zone}
        return {**{name: given[name] for name in self.placed if given[name]}, **want}


class Network(Thing):
    token, words, named = "gcp:compute/network:Network", "Network", "name"
    form = "projects/{project}/global/networks/{name}"
    forces = frozenset({"autoCreateSubnetworks", "description", "name", "project"})
    forces |= {"internalIpv6Range", "networkProfile", "params"}
    defaults = {"autoCreateSubnetworks": True}  # noqa: RUF012


class Subnetwork(Thing):
    token, words, named = "gcp:compute/subnetwork:Subnetwork", "Subnetwork", "name"
    form = "projects/{project}/regions/{region}/subnetworks/{name}"
    placed = ("project", "region")
    forces = frozenset({"description", "externalIpv6Prefix", "internalIpv6Prefix", "name", "network", "params"})
    # A range that shrinks: others would be changed in place.
    forces |= {"ipCidrRange", "project", "region", "reservedInternalRange", "resolveSubnetMask"}


class Firewall(Thing):
    token, words, named = "gcp:compute/firewall:Firewall", "Firewall", "name"
    form = "projects/{project}/global/firewalls/{name}"
    forces = frozenset({"direction", "name", "params", "project"})
    chosen = frozenset({"direction", "priority"})


class InstanceTemplate(Thing):
    """All of it forces another one, but for what no request has."""

    token, words, named = "gcp:compute/instanceTemplate:InstanceTemplate", "instance template", "name"
    form = "projects/{project}/global/instanceTemplates/{name}"
    labelled = True
    forces = frozenset(
        {"advancedMachineFeatures", "canIpForward", "confidentialInstanceConfig", "description", "disks"}
        | {"guestAccelerators", "instanceDescription", "labels", "machineType", "metadata", "metadataStartupScript"}
        | {"minCpuPlatform", "name", "namePrefix", "networkInterfaces", "project", "region", "scheduling"}
        | {"serviceAccount", "shieldedInstanceConfig", "tags", "enableDisplay", "keyRevocationActionType"}
        | {"networkPerformanceConfig", "reservationAffinity", "resourceManagerTags", "resourcePolicies"}
        | {"workloadIdentityConfig"}
    )

    def make(self, cloud: Shelf, want: Props) -> str:
        image = next((disk.get("sourceImage") for disk in want["disks"] if disk.get("boot", True)), None)
        if image and image.endswith("/no-such-image"):
            raise Refused(f"could not find image or family {image}")
        return super().make(cloud, want)

    def computed(self, id_: str, props: Props) -> Props:
        number = str(int(hashlib.sha256(id_.encode()).hexdigest()[:15], 16))
        return {"selfLinkUnique": f"{_ROOT}{id_}?uniqueId={number}", "numericId": number}


class RegionInstanceTemplate(InstanceTemplate):
    token = "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate"
    form = "projects/{project}/regions/{region}/instanceTemplates/{name}"
    placed = ("project", "region")

    def computed(self, id_: str, props: Props) -> Props:
        return {}


class GroupManager(Thing):
    token, words = "gcp:compute/instanceGroupManager:InstanceGroupManager", "InstanceGroupManager"
    named, form = "name", "projects/{project}/zones/{zone}/instanceGroupManagers/{name}"
    placed = ("project", "zone")
    forces = frozenset({"baseInstanceName", "name", "params", "project", "zone"})
    chosen = frozenset({"targetSize", "updatePolicy", "standbyPolicy"})
    only_here = frozenset({"waitForInstances", "waitForInstancesStatus"})

    def make(self, cloud: Shelf, want: Props) -> str:
        for version in want["versions"]:
            template = str(version.get("instanceTemplate", "")).removeprefix(_ROOT).partition("?")[0]
            if cloud.get(template) is None:
                raise Refused(f"googleapi: Error 404: The resource '{template}' was not found, notFound")
        return super().make(cloud, {"targetSize": 0, **want})

    def computed(self, id_: str, props: Props) -> Props:
        return {"instanceGroup": f"{_ROOT}{id_.replace('Managers', 's')}"}

    def change(self, cloud: Shelf, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        # The group has a size of its own.
        there = {name: value for name, value in (cloud.get(id_) or {}).items() if name != "type"}
        cloud.change(self.token, id_, {**there, **{name: new[name] for name in changed if name in new}})

    def remove(self, cloud: Shelf, id_: str, state: Props) -> None:
        for machine, props in cloud.things.items():
            if props["type"] == "instance" and props["group"] == id_:
                cloud.remove("instance", machine)
        super().remove(cloud, id_, state)


class RegionGroupManager(GroupManager):
    token, words = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager", "RegionInstanceGroupManager"
    form = "projects/{project}/regions/{region}/instanceGroupManagers/{name}"
    placed = ("project", "region")
    forces = frozenset({"baseInstanceName", "description", "distributionPolicyZones", "name", "params", "project"})
    forces |= {"region"}
    chosen = frozenset({"distributionPolicyZones", "targetSize", "updatePolicy", "standbyPolicy"})


class Account(Thing):
    token, words, linked = "gcp:serviceaccount/account:Account", "service account", False
    form = "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com"
    forces = frozenset({"accountId", "project"})

    def computed(self, id_: str, props: Props) -> Props:
        email = id_.rpartition("/")[2]
        return {"email": email, "member": f"serviceAccount:{email}", "name": id_}


class CustomRole(Thing):
    """One that is removed keeps its id for a week: the provider takes it back."""

    token, words, linked = "gcp:projects/iAMCustomRole:IAMCustomRole", "custom project role", False
    form, named = "projects/{project}/roles/{roleId}", "roleId"
    forces = frozenset({"project", "roleId"})

    def make(self, cloud: Shelf, want: Props) -> str:
        props = self._placed(cloud, want)
        id_ = self.form.format(**props)
        if (cloud.get(id_) or {}).get("deleted"):
            cloud.change(self.token, id_, props)
            return id_
        return super().make(cloud, want)

    def computed(self, id_: str, props: Props) -> Props:
        return {"name": id_}

    def remove(self, cloud: Shelf, id_: str, state: Props) -> None:
        there = cloud.get(id_)
        if there is not None and not there.get("deleted"):
            cloud.change(self.token, id_, {**there, "deleted": True})


class Member(Thing):
    """Somebody's role: to give it twice is no mistake."""

    linked = False

    def make(self, cloud: Shelf, want: Props) -> str:
        check_condition(want.get("condition"))
        role = str(want["role"])
        if role.startswith("projects/") and role not in cloud.roles:
            raise Refused(
                f"googleapi: Error 400: Role ({role}) does not exist in the resource's hierarchy., badRequest"
            )
        id_ = self.form.format(**self._placed(cloud, want))
        return id_ if cloud.get(id_) is not None else super().make(cloud, want)


class BucketMember(Member):
    token, words = "gcp:storage/bucketIAMMember:BucketIAMMember", "Bucket IAM Member"
    form, placed = "b/{bucket}/{role}/{member}", ()
    forces = frozenset({"bucket", "condition", "member", "role"})

    def make(self, cloud: Shelf, want: Props) -> str:
        check_condition(want.get("condition"))
        # With a condition, one of another condition is another one.
        title = (want.get("condition") or {}).get("title", "")
        id_ = "/".join(filter(None, [self.form.format(**want), title]))
        if cloud.get(id_) is None:
            cloud.make(self.token, id_, want)
        return id_


class SecretMember(Member):
    token, words = "gcp:secretmanager/secretIamMember:SecretIamMember", "Secret IAM Member"
    form = "projects/{project}/secrets/{secretId}/{role}/{member}"
    forces = frozenset({"condition", "member", "project", "role", "secretId"})


class ProjectMember(Member):
    token, words = "gcp:projects/iAMMember:IAMMember", "Project IAM Member"
    form, placed = "{project}/{role}/{member}", ()
    forces = frozenset({"condition", "member", "project", "role"})


KINDS = [
    *(Network, Subnetwork, Firewall, InstanceTemplate, RegionInstanceTemplate, GroupManager, RegionGroupManager),
    *(Account, CustomRole, BucketMember, SecretMember, ProjectMember),
]
