"""The Pulumi program of a fleet on AWS. Each resource is named, and tagged, by the part of the stack that it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi_aws as aws
from pulumi import Input, ResourceOptions
from pulumi_aws import autoscaling, ec2, iam

from monkey_stacks.aws import machine_rights
from monkey_stacks.aws.api.naming import IMAGE, MADE
from monkey_stacks.aws.desired_resources import NETWORK, AwsFleetPlan, compute_subnet_range

# Pulumi's library loads its modules at their first use. Programs of two fleets run in two threads, of which one then
# found `iam` without `Role`: so one thread loads them here.
for _module in (autoscaling, ec2, iam):
    getattr(_module, "__all__", None)

_ANYWHERE, _ANYWHERE_SIX = "0.0.0.0/0", "::/0"


def make_program(wanted: AwsFleetPlan) -> Callable[[], None]:
    """Return the program that registers the fleet's resources with Pulumi."""

    def register() -> None:
        _AwsFleetProgram(wanted, ResourceOptions(provider=aws.Provider("aws", region=wanted.region))).register()

    return register


@dataclass
class _AwsNetwork:
    vpc: Input[str]
    subnets: Sequence[Input[str]]
    #: Resources that must exist before a machine can reach anything.
    ready: Sequence[Any] = ()


@dataclass
class _AwsFleetProgram:
    wanted: AwsFleetPlan
    options: ResourceOptions

    def register(self) -> None:
        network = self._theirs() if self.wanted.vpc else self._own()
        profile, policy = self._identity()
        template = self._template(self._security(network), profile)
        self._group(network, template, [policy, *network.ready])

    def _tags(self, part: str) -> dict[str, str]:
        return self.wanted.stack.tags(part)

    def _after(self, *needed: Any) -> ResourceOptions:
        return ResourceOptions.merge(self.options, ResourceOptions(depends_on=list(needed)))

    def _theirs(self) -> _AwsNetwork:
        return _AwsNetwork(self.wanted.vpc, self.wanted.subnets)

    def _own(self) -> _AwsNetwork:
        """Return a network whose machines reach everything, and are not reachable; S3 traffic avoids the gateway."""
        vpc = ec2.Vpc(
            "vpc",
            cidr_block=NETWORK,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=self._tags("vpc"),
            opts=self.options,
        )
        gateway = ec2.InternetGateway("gateway", vpc_id=vpc.id, tags=self._tags("gateway"), opts=self.options)
        routes = ec2.RouteTable(
            "routes",
            vpc_id=vpc.id,
            routes=[{"cidr_block": _ANYWHERE, "gateway_id": gateway.id}],
            tags=self._tags("routes"),
            opts=self.options,
        )
        endpoint = ec2.VpcEndpoint(
            "endpoint",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{self.wanted.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[routes.id],
            tags=self._tags("endpoint"),
            opts=self.options,
        )
        subnets, joined = [], []
        for zone in self.wanted.zones:
            subnet = self._subnet(vpc, zone)
            name = f"routes-{zone}"
            joined.append(
                ec2.RouteTableAssociation(name, subnet_id=subnet.id, route_table_id=routes.id, opts=self.options)
            )
            subnets.append(subnet.id)
        return _AwsNetwork(vpc.id, subnets, [endpoint, *joined])

    def _subnet(self, vpc: Any, zone: str) -> Any:
        return ec2.Subnet(
            f"subnet-{zone}",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=compute_subnet_range(zone),
            map_public_ip_on_launch=True,
            tags=self._tags(f"subnet-{zone}"),
            opts=self.options,
        )

    def _security(self, network: _AwsNetwork) -> Any:
        everywhere = {"from_port": 0, "to_port": 0, "protocol": "-1"}
        return ec2.SecurityGroup(
            "security",
            name=self.wanted.stack.name,
            description="Machines of monkey: nobody reaches them.",
            vpc_id=network.vpc,
            egress=[{**everywhere, "cidr_blocks": [_ANYWHERE], "ipv6_cidr_blocks": [_ANYWHERE_SIX]}],
            tags=self._tags("security"),
            opts=self.options,
        )

    def _identity(self) -> tuple[Any, Any]:
        """Return the instance profile that gives machines their role, and the role's policy."""
        name = self.wanted.stack.name
        role = iam.Role(
            "role",
            name=name,
            assume_role_policy=machine_rights.write_trust(),
            tags=self._tags("role"),
            opts=self.options,
        )
        policy = iam.RolePolicy("policy", name=name, role=role.name, policy=self.wanted.role, opts=self.options)
        profile = iam.InstanceProfile(
            "profile", name=name, role=role.name, tags=self._tags("profile"), opts=self.options
        )
        return profile, policy

    def _template(self, security: Any, profile: Any) -> Any:
        wanted, tags = self.wanted, {**self._tags("machine"), MADE: self.wanted.made}
        disk = {"volume_size": wanted.gibibytes, "volume_type": "gp3", "encrypted": "true"}
        return ec2.LaunchTemplate(
            "template",
            name=wanted.stack.name,
            image_id=wanted.image.id,
            instance_type=wanted.types[0],
            update_default_version=True,
            instance_initiated_shutdown_behavior="terminate",
            iam_instance_profile={"name": profile.name},
            vpc_security_group_ids=[security.id],
            # One hop: what runs in a container of its own gets no credentials of the machine.
            metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1},
            block_device_mappings=[
                {"device_name": wanted.image.device, "ebs": {**disk, "delete_on_termination": "true"}}
            ],
            tag_specifications=[{"resource_type": kind, "tags": tags} for kind in ("instance", "volume")],
            user_data=_encoded(wanted.user_data),
            tags={**self._tags("template"), IMAGE: wanted.image_name},
            opts=self.options,
        )

    def _group(self, network: _AwsNetwork, template: Any, ready: Sequence[Any]) -> None:
        """Register the group, without machines. Pulumi does not manage their number, since machines come and go."""
        wanted = self.wanted
        share = {"on_demand_base_capacity": 0, "on_demand_percentage_above_base_capacity": 0 if wanted.spot else 100}
        policy = {
            "launch_template": {
                "launch_template_specification": {"launch_template_id": template.id, "version": "$Latest"},
                "overrides": [{"instance_type": type_} for type_ in wanted.types],
            },
            "instances_distribution": {
                **share,
                "on_demand_allocation_strategy": "prioritized",
                "spot_allocation_strategy": "price-capacity-optimized",
            },
        }
        tags = self._tags("group")
        autoscaling.Group(
            "group",
            name=wanted.stack.name,
            min_size=0,
            max_size=wanted.max_instances,
            vpc_zone_identifiers=list(network.subnets),
            mixed_instances_policy=policy,
            # It would end machines at work, to have equally many in each zone.
            suspended_processes=["AZRebalance"],
            wait_for_capacity_timeout="0",
            force_delete=True,
            tags=[{"key": key, "value": value, "propagate_at_launch": False} for key, value in tags.items()],
            opts=ResourceOptions.merge(self._after(*ready), ResourceOptions(ignore_changes=["desiredCapacity"])),
        )


def _encoded(text: str) -> str:
    import base64

    return base64.b64encode(text.encode()).decode()
