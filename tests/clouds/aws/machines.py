"""Launch templates, groups and their schedules.

`ForceNew` of terraform-provider-aws (see `tests.clouds.aws`): internal/service/autoscaling/group.go and schedule.go,
internal/service/ec2/ec2_launch_template.go.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, ClassVar

from tests.clouds.aws.api import Api, Gone, as_list, as_map, camel, pascal
from tests.clouds.aws.network import arn, retag
from tests.clouds.kind import Kind, Props, Refused

#: Booleans that the provider has as texts, so that "unset" is a third.
_TEXTS = ("encrypted", "deleteOnTermination", "ebsOptimized", "associatePublicIpAddress", "primaryIpv6")
#: Arguments of a launch template that are no part of its data.
_BESIDES = frozenset({"name", "namePrefix", "description", "tags", "updateDefaultVersion", "defaultVersion", "region"})
#: Names that differ by more than their first letter: EC2's are on the right.
_NAMES = {"vpcSecurityGroupIds": "SecurityGroupIds", "securityGroupNames": "SecurityGroups", "ramDiskId": "RamDiskId"}
#: Bytes of user data.
_MOST = 16 * 1024


class LaunchTemplate(Kind):
    token, words, named = "aws:ec2/launchTemplate:LaunchTemplate", "EC2 Launch Template", "name"
    forces = frozenset({"name", "namePrefix", "region"})
    chosen = frozenset({"defaultVersion"})
    only_here = frozenset({"namePrefix", "updateDefaultVersion"})
    renewed = frozenset({"latestVersion", "defaultVersion"})

    def make(self, cloud: Api, want: Props) -> str:
        tags = [{"ResourceType": "launch-template", "Tags": as_list(want.get("tags"))}] if want.get("tags") else None
        given = {"LaunchTemplateName": want["name"], "LaunchTemplateData": _data(want), "TagSpecifications": tags}
        made = cloud.ask("ec2", "CreateLaunchTemplate", VersionDescription=want.get("description"), **given)
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def read(self, cloud: Api, id_: str) -> Props | None:
        answer = cloud.find("ec2", "DescribeLaunchTemplates", LaunchTemplateIds=[id_])
        if not answer or not answer["LaunchTemplates"]:
            return None
        raw = answer["LaunchTemplates"][0]
        # moto takes "$Latest" for no number.
        version = [str(raw["LatestVersionNumber"])]
        found = cloud.ask("ec2", "DescribeLaunchTemplateVersions", LaunchTemplateId=id_, Versions=version)
        latest, tags = found["LaunchTemplateVersions"][0], as_map(raw.get("Tags"))
        said = {"name": raw["LaunchTemplateName"], "description": latest.get("VersionDescription") or None}
        said |= {"latestVersion": raw["LatestVersionNumber"], "defaultVersion": raw["DefaultVersionNumber"]}
        made = {"arn": arn(cloud, raw, f"launch-template/{id_}"), "region": cloud.region}
        return {**_properties(latest["LaunchTemplateData"]), **said, **made, "tags": tags, "tagsAll": tags}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        if self.read(cloud, id_) is None:
            raise Gone(f"couldn't find resource ({id_})")
        if changed - _BESIDES or "description" in changed:
            given = {"LaunchTemplateData": _data(new), "VersionDescription": new.get("description")}
            made = cloud.ask("ec2", "CreateLaunchTemplateVersion", LaunchTemplateId=id_, **given)
            version = str(made["LaunchTemplateVersion"]["VersionNumber"])
            if new.get("updateDefaultVersion"):
                cloud.ask("ec2", "ModifyLaunchTemplate", LaunchTemplateId=id_, DefaultVersion=version)
        if "tags" in changed:
            retag(cloud, id_, old.get("tags"), new.get("tags"))

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        cloud.find("ec2", "DeleteLaunchTemplate", LaunchTemplateId=id_)


class Group(Kind):
    token, words, named = "aws:autoscaling/group:Group", "Auto Scaling Group", "name"
    forces = frozenset({"initialLifecycleHooks", "name", "namePrefix", "region"})
    chosen = frozenset(
        {"availabilityZones", "defaultCooldown", "desiredCapacity", "healthCheckType", "vpcZoneIdentifiers"}
        | {"serviceLinkedRoleArn", "healthCheckGracePeriod", "terminationPolicies"}
    )
    only_here = frozenset({"forceDelete", "forceDeleteWarmPool", "ignoreFailedScalingActivities", "metricsGranularity"})
    only_here |= {"namePrefix", "waitForCapacityTimeout", "waitForElbCapacity", "minElbCapacity", "instanceRefresh"}
    defaults: ClassVar = {"forceDelete": False, "healthCheckGracePeriod": 300, "waitForCapacityTimeout": "10m"}
    #: Those that its creation and its update take as they are.
    _PLAIN = frozenset(
        {"minSize", "maxSize", "desiredCapacity", "capacityRebalance", "defaultCooldown", "defaultInstanceWarmup"}
        | {"healthCheckGracePeriod", "healthCheckType", "launchTemplate", "maxInstanceLifetime", "mixedInstancesPolicy"}
        | {"terminationPolicies", "instanceMaintenancePolicy", "placementGroup", "desiredCapacityType"}
    )

    def make(self, cloud: Api, want: Props) -> str:
        chosen = [name for name in ("launchConfiguration", "launchTemplate", "mixedInstancesPolicy") if want.get(name)]
        if len(chosen) != 1:
            raise Refused("one of `launch_configuration,launch_template,mixed_instances_policy` must be specified")
        tags = [_tag(want["name"], each) for each in want.get("tags") or []]
        protected = {"NewInstancesProtectedFromScaleIn": want.get("protectFromScaleIn")}
        given = {"AutoScalingGroupName": want["name"], "Tags": tags or None, **protected, **self._given(want, want)}
        cloud.ask("autoscaling", "CreateAutoScalingGroup", **given)
        return str(want["name"])

    def finish(self, cloud: Api, id_: str, want: Props) -> None:
        if want.get("suspendedProcesses"):
            given = {"ScalingProcesses": want["suspendedProcesses"]}
            cloud.ask("autoscaling", "SuspendProcesses", AutoScalingGroupName=id_, **given)

    def read(self, cloud: Api, id_: str) -> Props | None:
        answer = cloud.ask("autoscaling", "DescribeAutoScalingGroups", AutoScalingGroupNames=[id_])
        if not answer["AutoScalingGroups"]:
            return None
        raw = answer["AutoScalingGroups"][0]
        known = {name: value for name, value in camel(raw).items() if name in self._PLAIN - {"launchTemplate"}}
        template = camel(raw.get("LaunchTemplate") or {})
        renamed = {"launchTemplateId": "id", "launchTemplateName": "name"}
        known["launchTemplate"] = {renamed.get(name, name): value for name, value in template.items()}
        if "mixedInstancesPolicy" in known:
            known["mixedInstancesPolicy"] = _policy(known["mixedInstancesPolicy"])
        tags = [
            {"key": each["Key"], "value": each["Value"], "propagateAtLaunch": each["PropagateAtLaunch"]}
            for each in sorted(raw.get("Tags", []), key=lambda each: str(each["Key"]))
        ]
        zones = {"vpcZoneIdentifiers": [each for each in raw.get("VPCZoneIdentifier", "").split(",") if each]}
        zones["availabilityZones"] = raw["AvailabilityZones"]
        suspended = [each["ProcessName"] for each in raw.get("SuspendedProcesses", [])]
        made = {"name": id_, "arn": raw["AutoScalingGroupARN"], "region": cloud.region, "tags": tags}
        protects = {"protectFromScaleIn": raw.get("NewInstancesProtectedFromScaleIn", False)}
        return {**known, **zones, **made, **protects, "suspendedProcesses": suspended}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        if self.read(cloud, id_) is None:
            raise Gone(f"couldn't find resource ({id_})")
        given = self._given(new, {name: new[name] for name in changed if name in new})
        if given:
            cloud.ask("autoscaling", "UpdateAutoScalingGroup", AutoScalingGroupName=id_, **given)
        if "tags" in changed:
            wanted = {each["key"] for each in new.get("tags") or []}
            gone = [_tag(id_, each) for each in old.get("tags") or [] if each["key"] not in wanted]
            if gone:
                cloud.ask("autoscaling", "DeleteTags", Tags=gone)
            if wanted:
                cloud.ask("autoscaling", "CreateOrUpdateTags", Tags=[_tag(id_, each) for each in new["tags"]])
        if "suspendedProcesses" in changed:
            had, wanted = (set(each.get("suspendedProcesses") or ()) for each in (old, new))
            for operation, names in (("ResumeProcesses", had - wanted), ("SuspendProcesses", wanted - had)):
                if names:
                    cloud.ask("autoscaling", operation, AutoScalingGroupName=id_, ScalingProcesses=sorted(names))

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        if self.read(cloud, id_) is None:
            return
        force = bool(state.get("forceDelete"))
        if not force:
            # The provider drains it first, and waits for that.
            sizes = {"MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0}
            cloud.ask("autoscaling", "UpdateAutoScalingGroup", AutoScalingGroupName=id_, **sizes)
        cloud.ask("autoscaling", "DeleteAutoScalingGroup", AutoScalingGroupName=id_, ForceDelete=force)

    def same(self, name: str, old: Any, new: Any) -> bool:
        if name == "tags":
            old, new = (sorted(each or [], key=lambda tag: str(tag["key"])) for each in (old, new))
        return super().same(name, old, new)

    def _given(self, want: Props, some: Props) -> dict[str, Any]:
        given = pascal({name: value for name, value in some.items() if name in self._PLAIN - {"launchTemplate"}})
        if some.get("launchTemplate"):
            renamed = {"id": "LaunchTemplateId", "name": "LaunchTemplateName", "version": "Version"}
            given["LaunchTemplate"] = {renamed[name]: value for name, value in some["launchTemplate"].items()}
        if some.get("vpcZoneIdentifiers"):
            given["VPCZoneIdentifier"] = ",".join(some["vpcZoneIdentifiers"])
        if some.get("availabilityZones"):
            given["AvailabilityZones"] = some["availabilityZones"]
        if some is not want and "protectFromScaleIn" in some:
            given["NewInstancesProtectedFromScaleIn"] = some["protectFromScaleIn"]
        return given


class Schedule(Kind):
    """Its id is its name; it is imported as "GROUP/NAME"."""

    token, words = "aws:autoscaling/schedule:Schedule", "Auto Scaling Scheduled Action"
    forces = frozenset({"autoscalingGroupName", "region", "scheduledActionName"})
    chosen = frozenset({"desiredCapacity", "endTime", "maxSize", "minSize", "recurrence", "startTime", "timeZone"})

    def make(self, cloud: Api, want: Props) -> str:
        self._put(cloud, want)
        return str(want["scheduledActionName"])

    def read(self, cloud: Api, id_: str) -> Props | None:
        group, _, name = id_.rpartition("/")
        given = {"AutoScalingGroupName": group or None, "ScheduledActionNames": [name]}
        answer = cloud.ask("autoscaling", "DescribeScheduledActions", **given)["ScheduledUpdateGroupActions"]
        if not answer:
            return None
        raw = answer[0]
        found = {"scheduledActionName": name, "autoscalingGroupName": raw["AutoScalingGroupName"]}
        found |= {key: raw.get(key[0].upper() + key[1:]) for key in ("minSize", "maxSize", "desiredCapacity")}
        times = {"startTime": raw.get("StartTime"), "endTime": raw.get("EndTime")}
        found |= {key: f"{value:%Y-%m-%dT%H:%M:%SZ}" for key, value in times.items() if value}
        return {**found, "arn": raw.get("ScheduledActionARN"), "region": cloud.region}

    def change(self, cloud: Api, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        self._put(cloud, new)

    def remove(self, cloud: Api, id_: str, state: Props) -> None:
        if self.read(cloud, f"{state['autoscalingGroupName']}/{state['scheduledActionName']}") is not None:
            given = {"ScheduledActionName": state["scheduledActionName"]}
            cloud.find(
                "autoscaling", "DeleteScheduledAction", AutoScalingGroupName=state["autoscalingGroupName"], **given
            )

    def _put(self, cloud: Api, want: Props) -> None:
        given = {"AutoScalingGroupName": want["autoscalingGroupName"]}
        given |= pascal({name: value for name, value in want.items() if name in self.chosen | {"scheduledActionName"}})
        # -1: leave it as it is.
        given = {key: value for key, value in given.items() if value != -1}
        cloud.ask("autoscaling", "PutScheduledUpdateGroupAction", **given)


def _data(want: Props) -> dict[str, Any]:
    """Return a launch template's data. Raises Refused for user data that EC2 refuses when machines start."""
    try:
        raw = base64.b64decode(want.get("userData") or "", validate=True)
    except binascii.Error as exc:
        raise Refused("api error InvalidUserData.Malformed: Invalid BASE64 encoding of user data.") from exc
    if len(raw) > _MOST:
        raise Refused(f"api error InvalidUserData.Malformed: User data is limited to {_MOST} bytes")
    data = {name: _booleans(name, value) for name, value in want.items() if name not in _BESIDES}
    given: dict[str, Any] = {
        _NAMES.get(name, name[0].upper() + name[1:]): pascal(value) for name, value in data.items()
    }
    for each, asked in zip(given.get("TagSpecifications") or [], want.get("tagSpecifications") or [], strict=True):
        each["Tags"] = as_list(asked.get("tags"))
    for each in given.get("NetworkInterfaces") or []:
        if "SecurityGroups" in each:
            each["Groups"] = each.pop("SecurityGroups")
    return given


def _booleans(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _booleans(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_booleans(name, each) for each in value]
    return value == "true" if name in _TEXTS and isinstance(value, str) else value


def _properties(data: Props) -> Props:
    """Return what EC2 has of a launch template as the provider has it."""
    # moto counts the template's own tags as tags of what is started from it.
    specs = [each for each in data.get("TagSpecifications", []) if each["ResourceType"] != "launch-template"]
    data = {**data, "TagSpecifications": specs}
    names = {api: name for name, api in _NAMES.items()}
    found = {names.get(api, api[0].lower() + api[1:]): _texts(api, camel(value)) for api, value in data.items()}
    for each, raw in zip(found.get("tagSpecifications") or [], data.get("TagSpecifications") or [], strict=True):
        each["tags"] = as_map(raw.get("Tags"))
    for each in found.get("networkInterfaces") or []:
        if "groups" in each:
            each["securityGroups"] = each.pop("groups")
    return found


def _texts(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _texts(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_texts(name, each) for each in value]
    return str(value).lower() if name in _TEXTS else value


def _policy(found: Props) -> Props:
    """Return a policy of several types as the provider has it: numbers where moto has texts."""
    spread = found.get("instancesDistribution") or {}
    for name in ("onDemandBaseCapacity", "onDemandPercentageAboveBaseCapacity", "spotInstancePools"):
        if name in spread:
            spread[name] = int(spread[name])
    return found


def _tag(group: str, tag: Props) -> dict[str, Any]:
    given = {"Key": tag["key"], "Value": tag["value"], "PropagateAtLaunch": tag["propagateAtLaunch"]}
    return {"ResourceId": group, "ResourceType": "auto-scaling-group", **given}


KINDS = [LaunchTemplate, Group, Schedule]
