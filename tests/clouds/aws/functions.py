"""Functions of the provider: questions that programs ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.clouds.aws.api import Api, as_map
from tests.clouds.kind import Props, Refused


def call(cloud: Api, token: str, given: Props) -> Props:
    """Answer one. Raises Refused."""
    if token not in _KNOWN:
        raise Refused(f"the double does not know the function {token}")
    return {"id": token, **_KNOWN[token](cloud, given)}


def _zones(cloud: Api, given: Props) -> Props:
    answer = cloud.ask("ec2", "DescribeAvailabilityZones")["AvailabilityZones"]
    found = [each for each in answer if each["State"] == given.get("state", "available")]
    return {"names": [each["ZoneName"] for each in found], "zoneIds": [each["ZoneId"] for each in found]}


def _parameter(cloud: Api, given: Props) -> Props:
    answer = cloud.ask("ssm", "GetParameter", Name=given["name"])["Parameter"]
    value = {"value": answer["Value"], "insecureValue": answer["Value"], "version": answer["Version"]}
    return {"name": answer["Name"], "arn": answer["ARN"], "type": answer["Type"], **value}


def _image(cloud: Api, given: Props) -> Props:
    filters = [{"Name": each["name"], "Values": each["values"]} for each in given.get("filters") or []]
    answer = cloud.ask("ec2", "DescribeImages", Owners=given.get("owners"), Filters=filters)["Images"]
    if not answer:
        raise Refused("Your query returned no results. Please change your search criteria and try again.")
    if len(answer) > 1 and not given.get("mostRecent"):
        raise Refused("Your query returned more than one result. Please try a more specific search criteria")
    raw = max(answer, key=lambda each: str(each["CreationDate"]))
    return {"id": raw["ImageId"], "imageId": raw["ImageId"], "name": raw["Name"], "architecture": raw["Architecture"]}


def _subnet(cloud: Api, given: Props) -> Props:
    answer = cloud.ask("ec2", "DescribeSubnets", SubnetIds=[given["id"]])["Subnets"]
    raw = answer[0]
    found = {"id": raw["SubnetId"], "vpcId": raw["VpcId"], "availabilityZone": raw["AvailabilityZone"]}
    return {**found, "cidrBlock": raw["CidrBlock"], "tags": as_map(raw.get("Tags"))}


def _identity(cloud: Api, given: Props) -> Props:
    raw = cloud.ask("sts", "GetCallerIdentity")
    return {"accountId": raw["Account"], "arn": raw["Arn"], "userId": raw["UserId"]}


def _document(cloud: Api, given: Props) -> Props:
    statements = [
        {
            "Effect": each.get("effect", "Allow"),
            "Action": each.get("actions"),
            "Resource": each.get("resources"),
            **({"Sid": each["sid"]} if each.get("sid") else {}),
        }
        for each in given.get("statements") or []
    ]
    return {"json": json.dumps({"Version": given.get("version", "2012-10-17"), "Statement": statements})}


def _region(cloud: Api, given: Props) -> Props:
    return {"name": cloud.region, "id": cloud.region, "region": cloud.region, "description": cloud.region}


def _partition(cloud: Api, given: Props) -> Props:
    return {"partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


_KNOWN: dict[str, Callable[[Api, Props], dict[str, Any]]] = {
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
    "aws:ec2/getAmi:getAmi": _image,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:iam/getPolicyDocument:getPolicyDocument": _document,
    "aws:ssm/getParameter:getParameter": _parameter,
}
