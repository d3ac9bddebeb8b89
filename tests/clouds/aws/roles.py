"""Who may do what.

`ForceNew` of internal/service/iam of terraform-provider-aws (see `tests.clouds.aws`): role.go, role_policy.go,
role_policy_attachment.go, instance_profile.go.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.clouds.aws.api import Api, Gone, as_list, as_map, canonical
from tests.clouds.kind import Kind, Props


class Role(Kind):
    token, words, named = "aws:iam/role:Role", "IAM Role", "name"
    forces = frozenset({"name", "namePrefix", "path"})
    chosen = frozenset({"inlinePolicies", "managedPolicyArns", "maxSessionDuration", "path"})
    only_here = frozenset({"forceDetachPolicies", "namePrefix"})
    documents = frozenset({"assumeRolePolicy"})
    delete_first = True

    def make(self, cloud: Api, want: Props) -> str:
        given = {"Path": want.get("path"), "Description": want.get("description")}
        given |= {"MaxSessionDuration": want.get("maxSessionDuration"), "Tags": as_list(want.get("tags")) or None}
        given |= {"PermissionsBoundary": want.get("permissionsBoundary"), "RoleName": want["name"]}
        cloud.ask("iam", "CreateRole", AssumeRolePolicyDocument=want["assumeRolePolicy"], **given)
        return str(want["name"])

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        for each in want.get("inlinePolicies") or []:
            given = {"PolicyName": each["name"], "PolicyDocument": each["policy"]}
            cloud.ask("iam", "PutRolePolicy", RoleName=id_, **given)
        for arn in want.get("managedPolicyArns") or []:
            cloud.ask("iam", "AttachRolePolicy", RoleName=id_, PolicyArn=arn)

    def read(self, cloud: Api, id_: str) -> Props | None:
        answer = cloud.find("iam", "GetRole", RoleName=id_)
        if answer is None:
            return None
        raw = answer["Role"]
        tags = as_map(raw.get("Tags"))
        trust = canonical(_document(raw["AssumeRolePolicyDocument"]))
        found = {"name": raw["RoleName"], "path": raw["Path"], "arn": raw["Arn"], "uniqueId": raw["RoleId"]}
        found |= {"description": raw.get("Description") or None, "maxSessionDuration": raw.get("MaxSessionDuration")}
        boundary = (raw.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn")
        found |= {"assumeRolePolicy": trust, "permissionsBoundary": boundary}
        return {**found, "tags": tags, "tagsAll": tags, **self._policies(cloud, id_)}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        if "assumeRolePolicy" in changed:
            cloud.ask("iam", "UpdateAssumeRolePolicy", RoleName=id_, PolicyDocument=new["assumeRolePolicy"])
        if changed & {"description", "maxSessionDuration"}:
            given = {"Description": new.get("description", ""), "MaxSessionDuration": new.get("maxSessionDuration")}
            cloud.ask("iam", "UpdateRole", RoleName=id_, **given)
        if "tags" in changed:
            retag(cloud, "Role", id_, old, new)
        if changed & {"inlinePolicies", "managedPolicyArns"}:
            self._strip(cloud, id_)
            self.finish(cloud, id_, new)
        if not changed and self.read(cloud, id_) is None:
            raise Gone(f"couldn't find resource ({id_})")

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        if state.get("forceDetachPolicies") or state.get("inlinePolicies") or state.get("managedPolicyArns"):
            self._strip(cloud, id_)
        cloud.find("iam", "DeleteRole", RoleName=id_)

    def _strip(self, cloud: Api, id_: str) -> None:
        for name in (cloud.find("iam", "ListRolePolicies", RoleName=id_) or {}).get("PolicyNames", []):
            cloud.find("iam", "DeleteRolePolicy", RoleName=id_, PolicyName=name)
        for each in (cloud.find("iam", "ListAttachedRolePolicies", RoleName=id_) or {}).get("AttachedPolicies", []):
            cloud.find("iam", "DetachRolePolicy", RoleName=id_, PolicyArn=each["PolicyArn"])

    def _policies(self, cloud: Api, id_: str) -> Props:
        inline = [
            {"name": name, "policy": canonical(_document(got["PolicyDocument"]))}
            for name in cloud.ask("iam", "ListRolePolicies", RoleName=id_)["PolicyNames"]
            if (got := cloud.find("iam", "GetRolePolicy", RoleName=id_, PolicyName=name))
        ]
        attached = cloud.ask("iam", "ListAttachedRolePolicies", RoleName=id_)["AttachedPolicies"]
        return {"inlinePolicies": inline, "managedPolicyArns": [each["PolicyArn"] for each in attached]}

    def same(self, name: str, old: Any, new: Any) -> bool:
        if name != "inlinePolicies":
            return super().same(name, old, new)
        had = {each["name"]: canonical(each["policy"]) for each in old or []}
        return had == {each["name"]: canonical(each["policy"]) for each in new or []}


class RolePolicy(Kind):
    """Its id: "ROLE:NAME"."""

    token, words, named = "aws:iam/rolePolicy:RolePolicy", "IAM Role Policy", "name"
    forces = frozenset({"name", "namePrefix", "role"})
    only_here = frozenset({"namePrefix"})
    documents = frozenset({"policy"})

    def make(self, cloud: Api, want: Props) -> str:
        self._put(cloud, want)
        return f"{want['role']}:{want['name']}"

    def read(self, cloud: Api, id_: str) -> Props | None:
        role, _, name = id_.partition(":")
        answer = cloud.find("iam", "GetRolePolicy", RoleName=role, PolicyName=name)
        if answer is None:
            return None
        return {"role": role, "name": name, "policy": canonical(_document(answer["PolicyDocument"]))}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        self._put(cloud, new)

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        role, _, name = id_.partition(":")
        cloud.find("iam", "DeleteRolePolicy", RoleName=role, PolicyName=name)

    def _put(self, cloud: Api, want: Props) -> None:
        given = {"PolicyName": want["name"], "PolicyDocument": canonical(want["policy"])}
        cloud.ask("iam", "PutRolePolicy", RoleName=want["role"], **given)


class RolePolicyAttachment(Kind):
    """Its id: "ROLE/ARN"."""

    token, words = "aws:iam/rolePolicyAttachment:RolePolicyAttachment", "IAM Role Policy Attachment"
    forces = frozenset({"policyArn", "role"})

    def make(self, cloud: Api, want: Props) -> str:
        cloud.ask("iam", "AttachRolePolicy", RoleName=want["role"], PolicyArn=want["policyArn"])
        return f"{want['role']}/{want['policyArn']}"

    def read(self, cloud: Api, id_: str) -> Props | None:
        role, _, arn = id_.partition("/")
        answer = cloud.find("iam", "ListAttachedRolePolicies", RoleName=role)
        there = [each["PolicyArn"] for each in (answer or {"AttachedPolicies": []})["AttachedPolicies"]]
        return {"role": role, "policyArn": arn} if arn in there else None

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        """Change nothing: it has nothing besides what it is."""

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        role, _, arn = id_.partition("/")
        cloud.find("iam", "DetachRolePolicy", RoleName=role, PolicyArn=arn)


class InstanceProfile(Kind):
    token, words, named = "aws:iam/instanceProfile:InstanceProfile", "IAM Instance Profile", "name"
    forces = frozenset({"name", "namePrefix", "path"})
    chosen = frozenset({"path"})
    only_here = frozenset({"namePrefix"})

    def make(self, cloud: Api, want: Props) -> str:
        given = {"Path": want.get("path"), "Tags": as_list(want.get("tags")) or None}
        cloud.ask("iam", "CreateInstanceProfile", InstanceProfileName=want["name"], **given)
        return str(want["name"])

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        if want.get("role"):
            cloud.ask("iam", "AddRoleToInstanceProfile", InstanceProfileName=id_, RoleName=want["role"])

    def read(self, cloud: Api, id_: str) -> Props | None:
        answer = cloud.find("iam", "GetInstanceProfile", InstanceProfileName=id_)
        if answer is None:
            return None
        raw = answer["InstanceProfile"]
        tags, roles = as_map(raw.get("Tags")), [each["RoleName"] for each in raw["Roles"]]
        found = {"name": raw["InstanceProfileName"], "path": raw["Path"], "arn": raw["Arn"]}
        found |= {"uniqueId": raw["InstanceProfileId"], "role": roles[0] if roles else None}
        return {**found, "tags": tags, "tagsAll": tags}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        if "role" in changed:
            self._leave(cloud, id_)
            self.finish(cloud, id_, new)
        if "tags" in changed:
            retag(cloud, "InstanceProfile", id_, old, new)
        if not changed and self.read(cloud, id_) is None:
            raise Gone(f"couldn't find resource ({id_})")

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        self._leave(cloud, id_)
        cloud.find("iam", "DeleteInstanceProfile", InstanceProfileName=id_)

    def _leave(self, cloud: Api, id_: str) -> None:
        role = (self.read(cloud, id_) or {}).get("role")
        if role:
            cloud.find("iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=id_, RoleName=role)


def retag(cloud: Api, what: str, id_: str, old: Props, new: Props) -> None:
    """Give it the tags of `new`, and take away those of `old` alone."""
    name = {f"{what}Name": id_}
    gone = sorted((old.get("tags") or {}).keys() - (new.get("tags") or {}).keys())
    if gone:
        cloud.ask("iam", f"Untag{what}", TagKeys=gone, **name)
    if new.get("tags"):
        cloud.ask("iam", f"Tag{what}", Tags=as_list(new["tags"]), **name)


def _document(raw: Any) -> Any:
    return unquote(raw) if isinstance(raw, str) else raw


KINDS = [Role, RolePolicy, RolePolicyAttachment, InstanceProfile]
