"""Networks.

What forces replacement stands as `ForceNew` in internal/service/ec2 of terraform-provider-aws (see `tests.clouds.aws`):
vpc_.go, vpc_subnet.go, vpc_internet_gateway.go, vpc_endpoint.go. And in every kind that has it, `region`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.clouds.aws.api import Api, Gone, as_list, as_map
from tests.clouds.kind import Kind, Props


class Ec2Kind(Kind):
    """Something of EC2's that has an id of its own, and tags."""

    #: Operations: ("CreateVpc", "Vpc", "VpcId"), and what describes it: ("DescribeVpcs", "Vpcs", "VpcIds").
    creates: tuple[str, str, str]
    describes: tuple[str, str, str]
    deletes: tuple[str, str]
    #: What EC2 calls it where it tags what it makes.
    tagged: str

    def make(self, cloud: Api, want: Props) -> str:
        operation, noun, id_ = self.creates
        tags = as_list(want.get("tags"))
        given = {"TagSpecifications": [{"ResourceType": self.tagged, "Tags": tags}]} if tags else {}
        return str(cloud.ask("ec2", operation, **given, **self.asked(want))[noun][id_])

    def read(self, cloud: Api, id_: str) -> Props | None:
        raw = self.look(cloud, id_)
        if raw is None:
            return None
        tags = as_map(raw.get("Tags"))
        return {"region": cloud.region, "tags": tags, "tagsAll": tags, **self.found(cloud, raw)}

    def look(self, cloud: Api, id_: str) -> Props | None:
        operation, plural, ids = self.describes
        answer = cloud.find("ec2", operation, **{ids: [id_]})
        there = [each for each in (answer or {}).get(plural, []) if each.get("State") != "deleted"]
        return there[0] if there else None

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        if self.look(cloud, id_) is None:
            raise Gone(f"couldn't find resource ({id_})")
        if "tags" in changed:
            retag(cloud, id_, old.get("tags"), new.get("tags"))
        self.adjust(cloud, id_, old, new, changed - {"tags"})

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        """Change what is no tag."""
        if changed:
            raise NotImplementedError(f"{self.token}: {', '.join(sorted(changed))}")

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        operation, key = self.deletes
        cloud.find("ec2", operation, **{key: id_})

    def asked(self, want: Props) -> dict[str, Any]:
        """Return what its creation is given."""
        raise NotImplementedError

    def found(self, cloud: Api, raw: Props) -> Props:
        """Return what it is, by what AWS says of it."""
        raise NotImplementedError


def retag(cloud: Api, id_: str, old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> None:
    """Give it `new`, and take away what is in `old` alone."""
    gone = (old or {}).keys() - (new or {}).keys()
    if gone:
        cloud.ask("ec2", "DeleteTags", Resources=[id_], Tags=[{"Key": key} for key in sorted(gone)])
    if new:
        cloud.ask("ec2", "CreateTags", Resources=[id_], Tags=as_list(new))


def arn(cloud: Api, raw: Props, what: str) -> str:
    """Return a name for all of AWS."""
    return f"arn:aws:ec2:{cloud.region}:{raw.get('OwnerId', '123456789012')}:{what}"


class Vpc(Ec2Kind):
    token, words, tagged = "aws:ec2/vpc:Vpc", "EC2 VPC", "vpc"
    creates, describes = ("CreateVpc", "Vpc", "VpcId"), ("DescribeVpcs", "Vpcs", "VpcIds")
    deletes = ("DeleteVpc", "VpcId")
    forces = frozenset({"cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength", "region"})
    chosen = frozenset({"enableDnsHostnames", "enableDnsSupport", "instanceTenancy", "cidrBlock"})
    _FLAGS: ClassVar = {"enableDnsHostnames": "EnableDnsHostnames", "enableDnsSupport": "EnableDnsSupport"}

    def asked(self, want: Props) -> dict[str, Any]:
        return {"CidrBlock": want.get("cidrBlock"), "InstanceTenancy": want.get("instanceTenancy")}

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        for name, api in self._FLAGS.items():
            if name in want:
                cloud.ask("ec2", "ModifyVpcAttribute", VpcId=id_, **{api: {"Value": want[name]}})

    def found(self, cloud: Api, raw: Props) -> Props:
        id_ = raw["VpcId"]
        flags = {
            name: cloud.ask("ec2", "DescribeVpcAttribute", VpcId=id_, Attribute=name)[api]["Value"]
            for name, api in self._FLAGS.items()
        }
        tenancy = raw.get("InstanceTenancy", "default")
        return {
            "cidrBlock": raw["CidrBlock"],
            "instanceTenancy": tenancy,
            **flags,
            "arn": arn(cloud, raw, f"vpc/{id_}"),
        }

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        super().adjust(cloud, id_, old, new, changed - self._FLAGS.keys())
        self.finish(cloud, id_, {name: new[name] for name in changed})


class Subnet(Ec2Kind):
    token, words, tagged = "aws:ec2/subnet:Subnet", "EC2 Subnet", "subnet"
    creates, describes = ("CreateSubnet", "Subnet", "SubnetId"), ("DescribeSubnets", "Subnets", "SubnetIds")
    deletes = ("DeleteSubnet", "SubnetId")
    forces = frozenset(
        {"availabilityZone", "availabilityZoneId", "cidrBlock", "ipv6Native", "outpostArn", "region", "vpcId"}
        | {"ipv4IpamPoolId", "ipv4NetmaskLength", "ipv6IpamPoolId", "ipv6NetmaskLength"}
    )
    chosen = frozenset({"availabilityZone", "availabilityZoneId"})

    def asked(self, want: Props) -> dict[str, Any]:
        names = {"availabilityZone": "AvailabilityZone", "availabilityZoneId": "AvailabilityZoneId"}
        names |= {"cidrBlock": "CidrBlock", "vpcId": "VpcId"}
        return {api: want.get(name) for name, api in names.items()}

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        if want.get("mapPublicIpOnLaunch"):
            self.adjust(cloud, id_, {}, want, frozenset({"mapPublicIpOnLaunch"}))

    def found(self, cloud: Api, raw: Props) -> Props:
        names = {"availabilityZone": "AvailabilityZone", "availabilityZoneId": "AvailabilityZoneId"}
        names |= {"cidrBlock": "CidrBlock", "vpcId": "VpcId", "mapPublicIpOnLaunch": "MapPublicIpOnLaunch"}
        return {name: raw.get(api) for name, api in names.items()} | {"arn": raw.get("SubnetArn")}

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        super().adjust(cloud, id_, old, new, changed - {"mapPublicIpOnLaunch"})
        if changed:
            value = {"Value": bool(new.get("mapPublicIpOnLaunch"))}
            cloud.ask("ec2", "ModifySubnetAttribute", SubnetId=id_, MapPublicIpOnLaunch=value)


class InternetGateway(Ec2Kind):
    token, words, tagged = "aws:ec2/internetGateway:InternetGateway", "EC2 Internet Gateway", "internet-gateway"
    creates = ("CreateInternetGateway", "InternetGateway", "InternetGatewayId")
    describes = ("DescribeInternetGateways", "InternetGateways", "InternetGatewayIds")
    deletes = ("DeleteInternetGateway", "InternetGatewayId")
    forces = frozenset({"region"})
    chosen = frozenset({"vpcId"})

    def asked(self, want: Props) -> dict[str, Any]:
        return {}

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        if want.get("vpcId"):
            cloud.ask("ec2", "AttachInternetGateway", InternetGatewayId=id_, VpcId=want["vpcId"])

    def found(self, cloud: Api, raw: Props) -> Props:
        attached = [each["VpcId"] for each in raw.get("Attachments", [])]
        return {"vpcId": attached[0] if attached else None, "arn": arn(cloud, raw, f"igw/{raw['InternetGatewayId']}")}

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        super().adjust(cloud, id_, old, new, changed - {"vpcId"})
        if changed:
            self._detach(cloud, id_)
            self.finish(cloud, id_, new)

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        self._detach(cloud, id_)
        super().remove(cloud, id_, state)

    def _detach(self, cloud: Api, id_: str) -> None:
        for each in (self.look(cloud, id_) or {}).get("Attachments", []):
            cloud.find("ec2", "DetachInternetGateway", InternetGatewayId=id_, VpcId=each["VpcId"])


class RouteTable(Ec2Kind):
    token, words, tagged = "aws:ec2/routeTable:RouteTable", "EC2 Route Table", "route-table"
    creates = ("CreateRouteTable", "RouteTable", "RouteTableId")
    describes = ("DescribeRouteTables", "RouteTables", "RouteTableIds")
    deletes = ("DeleteRouteTable", "RouteTableId")
    forces = frozenset({"region", "vpcId"})
    chosen = frozenset({"routes"})

    def asked(self, want: Props) -> dict[str, Any]:
        return {"VpcId": want["vpcId"]}

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        for route in want.get("routes") or []:
            given = {"DestinationCidrBlock": route.get("cidrBlock"), "GatewayId": route.get("gatewayId")}
            cloud.ask("ec2", "CreateRoute", RouteTableId=id_, **given)

    def found(self, cloud: Api, raw: Props) -> Props:
        routes = [
            {"cidrBlock": each.get("DestinationCidrBlock"), "gatewayId": each["GatewayId"]}
            for each in raw.get("Routes", [])
            if str(each.get("GatewayId", "local")).startswith("igw-")
        ]
        return {"vpcId": raw["VpcId"], "routes": routes, "arn": arn(cloud, raw, f"route-table/{raw['RouteTableId']}")}

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        super().adjust(cloud, id_, old, new, changed - {"routes"})
        if changed:
            for route in old.get("routes") or []:
                cloud.find("ec2", "DeleteRoute", RouteTableId=id_, DestinationCidrBlock=route["cidrBlock"])
            self.finish(cloud, id_, new)


class VpcEndpoint(Ec2Kind):
    token, words, tagged = "aws:ec2/vpcEndpoint:VpcEndpoint", "EC2 VPC Endpoint", "vpc-endpoint"
    creates = ("CreateVpcEndpoint", "VpcEndpoint", "VpcEndpointId")
    describes = ("DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointIds")
    forces = frozenset(
        {"region", "resourceConfigurationArn", "serviceName", "serviceNetworkArn", "serviceRegion"}
        | {"vpcEndpointType", "vpcId"}
    )
    chosen = frozenset({"policy", "routeTableIds", "subnetIds", "securityGroupIds"})
    documents = frozenset({"policy"})
    defaults: ClassVar = {"vpcEndpointType": "Gateway"}

    def asked(self, want: Props) -> dict[str, Any]:
        names = {"vpcId": "VpcId", "serviceName": "ServiceName", "vpcEndpointType": "VpcEndpointType"}
        names |= {"policy": "PolicyDocument", "routeTableIds": "RouteTableIds"}
        return {api: want.get(name) for name, api in names.items()}

    def found(self, cloud: Api, raw: Props) -> Props:
        names = {"vpcId": "VpcId", "serviceName": "ServiceName", "vpcEndpointType": "VpcEndpointType"}
        names |= {"policy": "PolicyDocument", "routeTableIds": "RouteTableIds", "state": "State"}
        made = {"arn": arn(cloud, raw, f"vpc-endpoint/{raw['VpcEndpointId']}")}
        return {name: raw.get(api) for name, api in names.items()} | made

    def adjust(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        super().adjust(cloud, id_, old, new, changed - {"policy", "routeTableIds"})
        given: Props = {"PolicyDocument": new.get("policy")} if "policy" in changed else {}
        if "routeTableIds" in changed:
            had, wanted = set(old.get("routeTableIds") or []), set(new.get("routeTableIds") or [])
            given |= {"AddRouteTableIds": sorted(wanted - had), "RemoveRouteTableIds": sorted(had - wanted)}
        if given:
            cloud.ask("ec2", "ModifyVpcEndpoint", VpcEndpointId=id_, **{k: v for k, v in given.items() if v})

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        cloud.find("ec2", "DeleteVpcEndpoints", VpcEndpointIds=[id_])


KINDS = [Vpc, Subnet, InternetGateway, RouteTable, VpcEndpoint]
