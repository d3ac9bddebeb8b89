"""Routes, and who takes them.

`ForceNew` of internal/service/ec2 of terraform-provider-aws (see `tests.clouds.aws`): vpc_route_table_association.go,
vpc_route.go.
"""

from __future__ import annotations

import zlib

from tests.clouds.aws.api import Api
from tests.clouds.kind import Kind, Props, Refused


class Route(Kind):
    """Its id is made as the provider makes it: from the table and the destination."""

    token, words = "aws:ec2/route:Route", "EC2 Route"
    forces = frozenset({"destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId"})
    forces |= {"region", "routeTableId"}

    def make(self, cloud: Api, want: Props) -> str:
        table, block = want["routeTableId"], want["destinationCidrBlock"]
        # The provider looks first: EC2 itself would take it without a word.
        if self._look(cloud, table, block):
            raise Refused(f"api error RouteAlreadyExists: Route in Route Table ({table}) with destination ({block}) "
                          "already exists")  # fmt: skip
        given = {"RouteTableId": table, "DestinationCidrBlock": block, "GatewayId": want.get("gatewayId")}
        cloud.ask("ec2", "CreateRoute", **given)
        return f"r-{table}{zlib.crc32(block.encode())}"

    def read(self, cloud: Api, id_: str) -> Props | None:
        table = id_[2 : 2 + len("rtb-") + 17]
        answer = cloud.find("ec2", "DescribeRouteTables", RouteTableIds=[table])
        for each in (answer or {"RouteTables": []})["RouteTables"]:
            for raw in each["Routes"]:
                if id_ == f"r-{table}{zlib.crc32(raw.get('DestinationCidrBlock', '').encode())}":
                    return self._found(cloud, table, raw)
        return None

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        given = {"DestinationCidrBlock": new["destinationCidrBlock"], "GatewayId": new.get("gatewayId")}
        cloud.ask("ec2", "ReplaceRoute", RouteTableId=new["routeTableId"], **given)

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        given = {"RouteTableId": state["routeTableId"], "DestinationCidrBlock": state["destinationCidrBlock"]}
        cloud.find("ec2", "DeleteRoute", **given)

    def _look(self, cloud: Api, table: str, block: str) -> bool:
        answer = cloud.find("ec2", "DescribeRouteTables", RouteTableIds=[table])
        found = [raw for each in (answer or {"RouteTables": []})["RouteTables"] for raw in each["Routes"]]
        return any(raw.get("DestinationCidrBlock") == block for raw in found)

    def _found(self, cloud: Api, table: str, raw: Props) -> Props:
        named = {"destinationCidrBlock": raw["DestinationCidrBlock"], "gatewayId": raw.get("GatewayId")}
        return {"region": cloud.region, "routeTableId": table, "state": raw.get("State"), **named}


class RouteTableAssociation(Kind):
    token, words = "aws:ec2/routeTableAssociation:RouteTableAssociation", "EC2 Route Table Association"
    forces = frozenset({"gatewayId", "region", "subnetId"})

    def make(self, cloud: Api, want: Props) -> str:
        given = {"RouteTableId": want["routeTableId"], "SubnetId": want.get("subnetId")}
        return str(cloud.ask("ec2", "AssociateRouteTable", **given)["AssociationId"])

    def read(self, cloud: Api, id_: str) -> Props | None:
        filters = [{"Name": "association.route-table-association-id", "Values": [id_]}]
        for table in cloud.ask("ec2", "DescribeRouteTables", Filters=filters)["RouteTables"]:
            for each in table["Associations"]:
                if each["RouteTableAssociationId"] == id_:
                    found = {"routeTableId": table["RouteTableId"], "subnetId": each.get("SubnetId")}
                    return {"region": cloud.region, **found}
        return None

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        cloud.ask("ec2", "ReplaceRouteTableAssociation", AssociationId=id_, RouteTableId=new["routeTableId"])

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        cloud.find("ec2", "DisassociateRouteTable", AssociationId=id_)


KINDS = [Route, RouteTableAssociation]
