"""The Pulumi program of a fleet at Google. Each resource has a name that follows from the stack's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi_gcp as gcp
from pulumi import Input, ResourceOptions
from pulumi_gcp import compute, projects, secretmanager, serviceaccount, storage

from monkey.fleet.cloud.gcp_machine import ENDS
from monkey_stacks.gcp import machine_rights
from monkey_stacks.gcp.api.group import parse_time
from monkey_stacks.gcp.api.naming import IMAGE
from monkey_stacks.gcp.desired_resources import SUBNETWORK, GcpFleetPlan

# As for AWS: Pulumi's library loads its modules at their first use, which two threads must not have at once.
for _module in (compute, projects, secretmanager, serviceaccount, storage):
    getattr(_module, "__all__", None)


def make_program(wanted: GcpFleetPlan) -> Callable[[], None]:
    """Return the program that registers the fleet's resources with Pulumi."""

    def register() -> None:
        provider = gcp.Provider("gcp", project=wanted.gcp_project, region=wanted.region)
        _GcpFleetProgram(wanted, ResourceOptions(provider=provider)).register()

    return register


@dataclass
class _GcpNetwork:
    network: Input[str]
    subnetwork: Input[str]
    own: bool


@dataclass
class _GcpFleetProgram:
    wanted: GcpFleetPlan
    options: ResourceOptions

    def register(self) -> None:
        wanted = self.wanted
        network = _GcpNetwork(wanted.network, wanted.subnetwork, own=False) if wanted.network else self._own()
        account = self._account()
        self._firewall(network, account)
        template = self._template(network, account)
        # Machines come when all of this is there; but they are to go before their rights do.
        self._group(template, self._rights(account))

    @property
    def _named(self) -> dict[str, str]:
        return {"name": self.wanted.stack.name, "project": self.wanted.gcp_project}

    def _after(self, *needed: Any) -> ResourceOptions:
        return ResourceOptions.merge(self.options, ResourceOptions(depends_on=list(needed)))

    def _own(self) -> _GcpNetwork:
        """Return a network whose machines reach everything, and which accepts no connections."""
        about = "Machines of monkey: nobody reaches them."
        net = compute.Network(
            "network", **self._named, description=about, auto_create_subnetworks=False, opts=self.options
        )
        subnet = compute.Subnetwork(
            "subnetwork",
            **self._named,
            region=self.wanted.region,
            network=net.id,
            ip_cidr_range=SUBNETWORK,
            private_ip_google_access=True,
            opts=self.options,
        )
        return _GcpNetwork(net.id, subnet.id, own=True)

    def _firewall(self, network: _GcpNetwork, account: Any) -> None:
        """Deny all connections to machines, whatever else the network permits; not in another project's network."""
        if not network.own and not self.wanted.network.startswith(f"projects/{self.wanted.gcp_project}/"):
            return
        compute.Firewall(
            "firewall",
            **self._named,
            description="Nobody reaches machines of monkey.",
            network=network.network,
            direction="INGRESS",
            priority=0,
            denies=[{"protocol": "all"}],
            source_ranges=["0.0.0.0/0"],
            target_service_accounts=[account.email],
            # There is but one of a name.
            opts=ResourceOptions.merge(self.options, ResourceOptions(delete_before_replace=True)),
        )

    def _account(self) -> Any:
        stack = self.wanted.stack
        return serviceaccount.Account(
            "account",
            account_id=stack.account,
            project=self.wanted.gcp_project,
            display_name=stack.name,
            description=f"Machines of monkey: fleet {stack.fleet} of {stack.project}"[:256],
            opts=self.options,
        )

    def _rights(self, account: Any) -> list[Any]:
        wanted, opts, stack = self.wanted, self.options, self.wanted.stack
        rights = machine_rights.write_bucket_rights(wanted.bucket, wanted.prefix, stack.project, stack.fleet)
        objects = [
            storage.BucketIAMMember(
                name,
                bucket=wanted.bucket,
                role=right.role,
                member=account.member,
                condition=right.condition,
                opts=opts,
            )
            for name, right in rights.items()
        ]
        leave = projects.IAMMember(
            "leave",
            project=wanted.gcp_project,
            role=machine_rights.spell_group_role(wanted.gcp_project),
            member=account.member,
            opts=opts,
        )
        secrets = [
            secretmanager.SecretIamMember(
                f"secret-{path.split('/')[1]}-{path.split('/')[3]}",
                project=path.split("/")[1],
                secret_id=path.split("/")[3],
                role=machine_rights.SECRET,
                member=account.member,
                opts=opts,
            )
            for path in wanted.secrets
        ]
        return [*objects, leave, *secrets]

    def _template(self, network: _GcpNetwork, account: Any) -> Any:
        """Return the template. None can be changed: a new one has a new name, and exists before the old one goes."""
        wanted = self.wanted
        disk = {"disk_size_gb": wanted.gibibytes, "disk_type": wanted.disk_type, "labels": wanted.stack.labels}
        # In somebody's own network, whether machines reach anything is theirs to say.
        public: Sequence[dict[str, str]] = [{"network_tier": "PREMIUM"}] if network.own else []
        return compute.InstanceTemplate(
            "template",
            name=wanted.template,
            project=wanted.gcp_project,
            machine_type=wanted.type,
            disks=[{"source_image": wanted.image.id, "boot": True, "auto_delete": True, **disk}],
            network_interfaces=[{"subnetwork": network.subnetwork, "access_configs": public}],
            service_account={"email": account.email, "scopes": ["cloud-platform"]},
            scheduling=self._scheduling(),
            shielded_instance_config={
                "enable_secure_boot": not wanted.gpus,  # drivers are seldom signed
                "enable_vtpm": True,
                "enable_integrity_monitoring": True,
            },
            metadata={"block-project-ssh-keys": "true", IMAGE: wanted.image_name, **self._ends()},
            metadata_startup_script=wanted.user_data,
            labels=wanted.stack.labels,
            opts=self.options,
        )

    def _ends(self) -> dict[str, str]:
        """Return metadata with the time at which a machine ends: it replaces itself if sweeps then have more time."""
        ends = parse_time(self.wanted.until)
        return {} if ends is None else {ENDS: f"{ends:.0f}"}

    def _scheduling(self) -> dict[str, Any]:
        """Return the scheduling: Google ends each machine at its time, and deletes one that it takes back."""
        wanted = self.wanted
        ends = {"instance_termination_action": "DELETE"} if wanted.until or wanted.spot else {}
        ends |= {"termination_time": wanted.until} if wanted.until else {}
        moves = not wanted.spot and not wanted.gpus
        return {
            **ends,
            "provisioning_model": "SPOT" if wanted.spot else "STANDARD",
            "preemptible": wanted.spot,
            # Neither spot machines nor those with a time of their own come again by themselves.
            "automatic_restart": False,
            "on_host_maintenance": "MIGRATE" if moves else "TERMINATE",
        }

    def _group(self, template: Any, ready: Sequence[Any]) -> None:
        """Register the group, without machines. Pulumi does not manage their number, since machines come and go."""
        wanted = self.wanted
        repair = "REPAIR" if wanted.spot else "DO_NOTHING"
        changing = ResourceOptions(ignore_changes=["targetSize"], delete_before_replace=True)
        compute.RegionInstanceGroupManager(
            "group",
            **self._named,
            region=wanted.region,
            base_instance_name=wanted.stack.name,
            versions=[{"instance_template": template.self_link_unique}],
            target_size=0,
            distribution_policy_zones=list(wanted.zones),
            distribution_policy_target_shape="ANY",
            update_policy={
                "type": "OPPORTUNISTIC",
                "minimal_action": "REPLACE",
                "instance_redistribution_type": "NONE",
            },
            # Who shuts down means it. One that is taken back comes again, by what is wanted then.
            instance_lifecycle_policy={"default_action_on_failure": repair, "force_update_on_repair": "YES"},
            opts=ResourceOptions.merge(self._after(*ready), changing),
        )
