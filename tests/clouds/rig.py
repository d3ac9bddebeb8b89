"""A network and a group of machines, as a program of Pulumi's: something to try the doubles with."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.clouds.account import REGION

TAGS = {"monkey:fleet": "rig"}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
#: A machine that tells nobody its role's keys, and has an encrypted disk.
SAFE = {
    "metadata_options": {"http_tokens": "required", "http_put_response_hop_limit": 1},
    "block_device_mappings": [{"device_name": "/dev/xvda", "ebs": {"volume_size": 50, "encrypted": "true"}}],
}
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}


def program(
    image: str, *, kind: str = "m5.large", block: str = "10.0.0.0/16", more: Mapping[str, Any] | None = None
) -> Callable[[], None]:
    """Return it; `more` goes to the launch template."""

    def register() -> None:
        import pulumi
        from pulumi_aws import Provider

        here = pulumi.ResourceOptions(provider=Provider("aws", region=REGION))
        subnet, group = _network(here, block)
        _machines(here, image, kind, subnet, group, more or {})

    return register


def _network(here: Any, block: str) -> tuple[Any, Any]:
    from pulumi_aws import ec2, vpc

    net = ec2.Vpc("net", cidr_block=block, enable_dns_hostnames=True, tags=TAGS, opts=here)
    gate = ec2.InternetGateway("gate", vpc_id=net.id, tags=TAGS, opts=here)
    table = ec2.RouteTable("table", vpc_id=net.id, tags=TAGS, opts=here)
    ec2.Route("out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gate.id, opts=here)
    given = {"cidr_block": block.replace("/16", "/24"), "map_public_ip_on_launch": True, "tags": TAGS}
    subnet = ec2.Subnet("subnet", vpc_id=net.id, availability_zone=f"{REGION}a", **given, opts=here)
    ec2.RouteTableAssociation("routed", subnet_id=subnet.id, route_table_id=table.id, opts=here)
    service = f"com.amazonaws.{REGION}.s3"
    ec2.VpcEndpoint("s3", vpc_id=net.id, service_name=service, route_table_ids=[table.id], tags=TAGS, opts=here)
    group = ec2.SecurityGroup("shut", name="monkey-rig", description="no way in", vpc_id=net.id, tags=TAGS, opts=here)
    rule = {"ip_protocol": "-1", "cidr_ipv4": "0.0.0.0/0", "tags": TAGS}
    vpc.SecurityGroupEgressRule("out", security_group_id=group.id, **rule, opts=here)
    return subnet, group


def _machines(here: Any, image: str, kind: str, subnet: Any, group: Any, more: Mapping[str, Any]) -> None:
    from pulumi_aws import ec2, iam

    role = iam.Role("role", name="monkey-rig", assume_role_policy=json.dumps(TRUST), tags=TAGS, opts=here)
    iam.RolePolicy("may", name="monkey", role=role.name, policy=json.dumps(POLICY), opts=here)
    profile = iam.InstanceProfile("profile", name="monkey-rig", role=role.name, tags=TAGS, opts=here)
    template = ec2.LaunchTemplate(
        "template",
        name="monkey-rig",
        image_id=image,
        instance_type=kind,
        instance_initiated_shutdown_behavior="terminate",
        update_default_version=True,
        user_data=base64.b64encode(b"#!/bin/sh\n").decode(),
        iam_instance_profile={"name": profile.name},
        vpc_security_group_ids=[group.id],
        tag_specifications=[{"resource_type": "instance", "tags": TAGS}],
        tags=TAGS,
        **{**SAFE, **more},
        opts=here,
    )
    _group(here, template, kind, subnet)


def _group(here: Any, template: Any, kind: str, subnet: Any) -> None:
    from pulumi_aws import autoscaling

    spec = {"launch_template_id": template.id, "version": template.latest_version.apply(str)}
    policy = {
        "launch_template": {
            "launch_template_specification": spec,
            "overrides": [{"instance_type": kind}, {"instance_type": "m4.large"}],
        },
        "instances_distribution": {
            "on_demand_percentage_above_base_capacity": 0,
            "spot_allocation_strategy": "price-capacity-optimized",
        },
    }
    machines = autoscaling.Group(
        "machines",
        name="monkey-rig",
        min_size=0,
        max_size=4,
        vpc_zone_identifiers=[subnet.id],
        mixed_instances_policy=policy,
        tags=[{"key": key, "value": value, "propagate_at_launch": True} for key, value in TAGS.items()],
        opts=here,
    )
    times = {"start_time": "2099-01-01T00:00:00Z", "min_size": 0, "max_size": 0, "desired_capacity": 0}
    autoscaling.Schedule(
        "end", scheduled_action_name="monkey-end", autoscaling_group_name=machines.name, **times, opts=here
    )
