"""An account of AWS's for a test: moto behind a wire, the double on the PATH, and a second client to look with."""

from __future__ import annotations

import os
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import services
from tests.clouds.aws.mends import mend
from tests.clouds.double import LEDGER
from tests.clouds.wire import Mend, Wire

ROOT = Path(__file__).parents[2]
REGION = "eu-central-1"
#: How EC2 is asked for what there is.
_EC2 = (
    ("describe_vpcs", "Vpcs", "VpcId"),
    ("describe_subnets", "Subnets", "SubnetId"),
    ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ("describe_route_tables", "RouteTables", "RouteTableId"),
    ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("describe_security_groups", "SecurityGroups", "GroupId"),
    ("describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
)
#: How EC2 is asked for what machines have.
_PARTS = (
    ("describe_volumes", "Volumes", "VolumeId"),
    ("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
)
#: States of machines that are there no more.
_ENDED = ("terminated", "shutting-down")
#: Starts a double, with the Python of who made it, wherever Pulumi does.
_PLUGIN = '#!/bin/sh\nPYTHONPATH="{root}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{python}" -m {module} "$@"\n'


class Account:
    """What a test knows of it. Its environment is to be that of whoever applies."""

    def __init__(self, wire: Wire, base: Path) -> None:
        """Have plugins and ledger below `base`."""
        self.wire, self.base = wire, base
        self.ledger = base / "cloud-ledger"

    @property
    def environment(self) -> dict[str, str]:
        """What who applies has in the environment, besides the PATH of Pulumi."""
        return {
            "AWS_ENDPOINT_URL": self.wire.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
            LEDGER: str(self.ledger),
            "PATH": f"{plugins(self.base)}{os.pathsep}{os.environ['PATH']}",
        }

    def client(self, service: str, region: str = REGION) -> Any:
        """Return a client of moto itself: nobody counts what it asks."""
        return _client(service, region, self.wire.upstream.geturl())

    def wired(self, service: str, region: str = REGION) -> Any:
        """Return a client as the product has one: counted, and refused as the test says."""
        return _client(service, region, self.wire.endpoint)

    @property
    def asked(self) -> list[str]:
        """What the plugin was asked: "create aws:ec2/vpc:Vpc NAME"."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def image(self) -> str:
        """Register an image of the account's own; returns its id."""
        ec2 = self.client("ec2")
        base = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        made = ec2.run_instances(ImageId=base, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
        image = ec2.create_image(InstanceId=made, Name="tests")["ImageId"]
        ec2.terminate_instances(InstanceIds=[made])
        return str(image)

    def there(self, key: str = "", value: str = "", region: str = REGION) -> dict[str, str]:
        """Return all that was made in the account, or what has this tag: id → what it is."""
        ec2 = self.client("ec2", region)
        filters = [{"Name": f"tag:{key}", "Values": [value]}] if key else []
        found = {
            each[id_]: plural
            for look, plural, id_ in _EC2
            for each in getattr(ec2, look)(Filters=filters)[plural]
            if each.get("State") != "deleted" and not _comes_along(each)
        }
        pages = ec2.describe_instances(Filters=filters)["Reservations"]
        machines = [each for page in pages for each in page["Instances"]]
        found |= {each["InstanceId"]: "Instances" for each in machines if each["State"]["Name"] not in _ENDED}
        rest = [*self._roles(), *self._groups(region), *self._rules(region), *self._loose(region)]
        return found | {id_: what for id_, what, tags in rest if not key or _has(tags, key, value)}

    def _roles(self) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
        iam = self.client("iam")
        for each in iam.list_roles()["Roles"]:
            name = each["RoleName"]
            yield f"role {name}", "Roles", iam.list_role_tags(RoleName=name)["Tags"]
        for each in iam.list_instance_profiles()["InstanceProfiles"]:
            name = each["InstanceProfileName"]
            profile = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
            yield f"profile {name}", "InstanceProfiles", profile.get("Tags", [])

    def _groups(self, region: str) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
        client = self.client("autoscaling", region)
        for each in client.describe_auto_scaling_groups()["AutoScalingGroups"]:
            yield each["AutoScalingGroupName"], "AutoScalingGroups", each.get("Tags", [])
        for each in client.describe_scheduled_actions()["ScheduledUpdateGroupActions"]:
            group = each["AutoScalingGroupName"]
            yield f"{group} {each['ScheduledActionName']}", "ScheduledUpdateGroupActions", []

    def _loose(self, region: str) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
        """Yield disks and interfaces whose machine is there no more: others belong to their machine."""
        ec2 = self.client("ec2", region)
        pages = ec2.describe_instances()["Reservations"]
        machines = {each["InstanceId"]: each["State"]["Name"] for page in pages for each in page["Instances"]}
        for look, plural, id_ in _PARTS:
            for each in getattr(ec2, look)()[plural]:
                held = [*each.get("Attachments", ()), each.get("Attachment") or {}]
                if all(machines.get(one.get("InstanceId", ""), _ENDED[0]) in _ENDED for one in held):
                    yield each[id_], plural, each.get("Tags") or each.get("TagSet") or []

    def _rules(self, region: str) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
        """Yield rules of security groups that have tags: others belong to their group."""
        for each in self.client("ec2", region).describe_security_group_rules()["SecurityGroupRules"]:
            if each.get("Tags"):
                yield each["SecurityGroupRuleId"], "SecurityGroupRules", each["Tags"]


def _client(service: str, region: str, endpoint: str) -> Any:
    import boto3

    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.session.Session().client(service, region_name=region, endpoint_url=endpoint, **keys)


@contextmanager
def account(upstream: str, base: Path, mend: Mend = mend, address: str = "127.0.0.1") -> Iterator[Account]:
    """Give an empty account in the moto that is at `upstream`, which must be nobody else's; `address`: where it is."""
    _reset(upstream)
    with Wire(upstream, mend, address).running() as wire:
        yield Account(wire, base)


def _reset(upstream: str) -> None:
    """Empty moto, and make the bucket in which stores are."""
    for path, method in (("/moto-api/reset", "POST"), (f"/{services.BUCKET}", "PUT")):
        asked = urllib.request.Request(f"{upstream}{path}", method=method, headers={"Content-Length": "0"})
        urllib.request.urlopen(asked, timeout=60).close()


def plugins(base: Path) -> Path:
    """Return a directory with the doubles as programs, for the PATH."""
    into = base / "cloud-plugins"
    into.mkdir(exist_ok=True)
    for name, module in (("aws", "tests.clouds.aws.plugin"), ("gcp", "tests.clouds.gcp.plugin")):
        program = into / f"pulumi-resource-{name}"
        program.write_text(_PLUGIN.format(root=ROOT, python=sys.executable, module=module))
        program.chmod(0o755)
    return into


def _comes_along(raw: dict[str, Any]) -> bool:
    """Say whether AWS makes it with each network, and removes it with it."""
    return raw.get("GroupName") == "default" or any(each.get("Main") for each in raw.get("Associations", ()))


def _has(tags: list[dict[str, Any]], key: str, value: str) -> bool:
    return any(each["Key"] == key and each["Value"] == value for each in tags)
