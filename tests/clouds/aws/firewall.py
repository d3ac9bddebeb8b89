"""Security groups.

`ForceNew` of internal/service/ec2 of terraform-provider-aws (see `tests.clouds.aws`): vpc_security_group.go; rules'
vpc_security_group_ingress_rule.go says `RequiresReplace`.
"""

from __future__ import annotations

from typing import Any

from tests.clouds.aws.api import Api, as_list
from tests.clouds.aws.network import Ec2Kind, arn
from tests.clouds.kind import Props


class SecurityGroup(Ec2Kind):
    token, words, tagged = "aws:ec2/securityGroup:SecurityGroup", "Security Group", "security-group"
    describes = ("DescribeSecurityGroups", "SecurityGroups", "GroupIds")
    deletes = ("DeleteSecurityGroup", "GroupId")
    forces = frozenset({"description", "name", "namePrefix", "region", "vpcId"})
    chosen = frozenset({"egress", "ingress", "name", "vpcId"})
    only_here = frozenset({"namePrefix", "revokeRulesOnDelete"})
    named, defaults = "name", {"description": "Managed by Pulumi", "revokeRulesOnDelete": False}

    def make(self, cloud: Api, want: Props) -> str:
        tags = [{"ResourceType": self.tagged, "Tags": as_list(want.get("tags"))}] if want.get("tags") else None
        given = {"GroupName": want["name"], "Description": want["description"], "VpcId": want.get("vpcId")}
        return str(cloud.ask("ec2", "CreateSecurityGroup", TagSpecifications=tags, **given)["GroupId"])

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        # As the provider does: what EC2 lets out by itself goes.
        self._set(cloud, id_, "Egress", want.get("egress") or [])
        self._set(cloud, id_, "Ingress", want.get("ingress") or [])

    def found(self, cloud: Api, raw: Props) -> Props:
        made = {"arn": arn(cloud, raw, f"security-group/{raw['GroupId']}"), "ownerId": raw.get("OwnerId")}
        rules = {
            "egress": [_rule(each) for each in raw["IpPermissionsEgress"]],
            "ingress": [_rule(each) for each in raw["IpPermissions"]],
        }
        return {"name": raw["GroupName"], "description": raw["Description"], "vpcId": raw["VpcId"], **rules, **made}

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        super().adjust(cloud, id_, old, new, changed - {"egress", "ingress", "revokeRulesOnDelete"})
        for name in changed & {"egress", "ingress"}:
            self._set(cloud, id_, name.capitalize(), new.get(name) or [])

    def _set(self, cloud: Api, id_: str, way: str, rules: list[Props]) -> None:
        raw = self.look(cloud, id_) or {}
        there = raw.get("IpPermissionsEgress" if way == "Egress" else "IpPermissions") or []
        if there:
            cloud.ask("ec2", f"RevokeSecurityGroup{way}", GroupId=id_, IpPermissions=[_bare(each) for each in there])
        if rules:
            cloud.ask("ec2", f"AuthorizeSecurityGroup{way}", GroupId=id_, IpPermissions=list(map(_permission, rules)))


class EgressRule(Ec2Kind):
    """One rule, with an id of its own."""

    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    words, tagged = "VPC Security Group Rule", "security-group-rule"
    describes = ("DescribeSecurityGroupRules", "SecurityGroupRules", "SecurityGroupRuleIds")
    forces = frozenset({"region", "securityGroupId"})
    way = "Egress"

    def make(self, cloud: Api, want: Props) -> str:
        tags = [{"ResourceType": self.tagged, "Tags": as_list(want.get("tags"))}] if want.get("tags") else None
        operation = f"AuthorizeSecurityGroup{self.way}"
        given = {"GroupId": want["securityGroupId"], "IpPermissions": [_single(want)]}
        made = cloud.ask("ec2", operation, TagSpecifications=tags, **given)
        return str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def look(self, cloud: Api, id_: str) -> Props | None:
        # moto answers for a rule of any group; and does not know the filter by id alone.
        answer = cloud.ask("ec2", "DescribeSecurityGroupRules")["SecurityGroupRules"]
        return next((each for each in answer if each["SecurityGroupRuleId"] == id_), None)

    def found(self, cloud: Api, raw: Props) -> Props:
        names = {"securityGroupId": "GroupId", "ipProtocol": "IpProtocol", "cidrIpv4": "CidrIpv4"}
        names |= {"fromPort": "FromPort", "toPort": "ToPort", "cidrIpv6": "CidrIpv6", "description": "Description"}
        found = {name: raw.get(api) for name, api in names.items()}
        if raw.get("IpProtocol") == "-1":
            found |= {"fromPort": None, "toPort": None}
        return found | {"securityGroupRuleId": raw["SecurityGroupRuleId"]}

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        if self.look(cloud, id_):
            given = {"GroupId": state["securityGroupId"], "SecurityGroupRuleIds": [id_]}
            cloud.find("ec2", f"RevokeSecurityGroup{self.way}", **given)


class IngressRule(EgressRule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    way = "Ingress"


def _rule(raw: Props) -> Props:
    """Return a rule as the provider has it: from 0 to 0 where there is no port."""
    rule = {"protocol": raw["IpProtocol"], "fromPort": raw.get("FromPort", 0), "toPort": raw.get("ToPort", 0)}
    blocks = {"cidrBlocks": [each["CidrIp"] for each in raw.get("IpRanges", [])]}
    blocks["ipv6CidrBlocks"] = [each["CidrIpv6"] for each in raw.get("Ipv6Ranges", [])]
    said = [each["Description"] for each in raw.get("IpRanges", []) if each.get("Description")]
    return {
        **{key: value for key, value in blocks.items() if value},
        **rule,
        **({"description": said[0]} if said else {}),
    }


def _permission(rule: Props) -> dict[str, Any]:
    said = {"Description": rule["description"]} if rule.get("description") else {}
    given: dict[str, Any] = {"IpProtocol": str(rule["protocol"])}
    if given["IpProtocol"] != "-1":
        given |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    given["IpRanges"] = [{"CidrIp": each, **said} for each in rule.get("cidrBlocks") or []]
    given["Ipv6Ranges"] = [{"CidrIpv6": each, **said} for each in rule.get("ipv6CidrBlocks") or []]
    given["PrefixListIds"] = [{"PrefixListId": each} for each in rule.get("prefixListIds") or []]
    return {key: value for key, value in given.items() if value != []}


def _single(want: Props) -> dict[str, Any]:
    given: dict[str, Any] = {"IpProtocol": want["ipProtocol"]}
    if want["ipProtocol"] != "-1":
        given |= {"FromPort": want.get("fromPort"), "ToPort": want.get("toPort")}
    said = {"Description": want["description"]} if want.get("description") else {}
    if want.get("cidrIpv4"):
        given["IpRanges"] = [{"CidrIp": want["cidrIpv4"], **said}]
    if want.get("cidrIpv6"):
        given["Ipv6Ranges"] = [{"CidrIpv6": want["cidrIpv6"], **said}]
    if want.get("prefixListId"):
        given["PrefixListIds"] = [{"PrefixListId": want["prefixListId"]}]
    return given


def _bare(raw: Props) -> Props:
    return {key: value for key, value in raw.items() if value not in ([], None)}


KINDS = [SecurityGroup, EgressRule, IngressRule]
