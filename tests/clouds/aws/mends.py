"""What moto takes and AWS does not."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tests.clouds.wire import Answer, Call, Fault, Wire, refusal


def mend(wire: Wire, call: Call) -> Answer | None:
    """Answer as AWS would; None where moto does."""
    wrong = _CHECKS[call.action](wire, call) if call.action in _CHECKS else ""
    return refusal(call, Fault(call.action, "ValidationError", wrong)) if wrong else None


def _sizes(wire: Wire, call: Call) -> str:
    """A group never wants more machines than it may have."""
    form = call.form
    group = _group(wire, call, form["AutoScalingGroupName"])
    wanted = {name: int(form.get(name) or group.get(name, 0)) for name in ("MinSize", "MaxSize", "DesiredCapacity")}
    if "DesiredCapacity" not in form:
        # What it wants follows its limits.
        wanted["DesiredCapacity"] = min(max(wanted["DesiredCapacity"], wanted["MinSize"]), wanted["MaxSize"])
    if wanted["MinSize"] > wanted["MaxSize"]:
        return "Min bound, cannot be greater than max bound"
    if wanted["DesiredCapacity"] > wanted["MaxSize"]:
        return f"New SetDesiredCapacity value {wanted['DesiredCapacity']} is above max value {wanted['MaxSize']} " \
               "for the AutoScalingGroup."  # fmt: skip
    if wanted["DesiredCapacity"] < wanted["MinSize"]:
        return f"New SetDesiredCapacity value {wanted['DesiredCapacity']} is below min value {wanted['MinSize']} " \
               "for the AutoScalingGroup."  # fmt: skip
    return ""


def _creation(wire: Wire, call: Call) -> str:
    """A new group's sizes, and the image of its launch template."""
    wrong = _sizes(wire, call)
    image = _image(wire, call)
    if not wrong and image and not _there(wire, call, image):
        return f"You must use a valid fully-formed launch template. The image id '[{image}]' does not exist"
    return wrong


def _times(wire: Wire, call: Call) -> str:
    """What is to happen once must be to come."""
    start = call.form.get("StartTime")
    if start and "Recurrence" not in call.form:
        at = datetime.fromisoformat(start.replace("Z", "+00:00"))
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        if at < datetime.now(UTC):
            return "Given start time is in the past"
    return ""


def _managed(wire: Wire, call: Call) -> str:
    """Only a machine of a group is ended as one."""
    name = call.form["InstanceId"]
    asked = f"Action=DescribeAutoScalingInstances&Version=2011-01-01&InstanceIds.member.1={name}"
    managed = f"<InstanceId>{name}</InstanceId>" in _asked(wire, call, asked)
    return "" if managed else f"Instance Id not found - No managed instance found for instance ID: {name}"


def _group(wire: Wire, call: Call, name: str) -> dict[str, int]:
    text = _asked(
        wire, call, f"Action=DescribeAutoScalingGroups&Version=2011-01-01&AutoScalingGroupNames.member.1={name}"
    )
    return {key: int(found[1]) for key in ("MinSize", "MaxSize", "DesiredCapacity")
            if (found := re.search(rf"<{key}>(\d+)</{key}>", text))}  # fmt: skip


def _image(wire: Wire, call: Call) -> str:
    form = call.form
    for prefix in ("LaunchTemplate.", "MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification."):
        for key, short in (("LaunchTemplateId", "LaunchTemplateId"), ("LaunchTemplateName", "LaunchTemplateName")):
            if f"{prefix}{key}" in form:
                asked = f"Action=DescribeLaunchTemplateVersions&Version=2016-11-15&{short}={form[prefix + key]}"
                found = re.findall(r"<imageId>([^<]*)</imageId>", _asked(wire, call, asked, "ec2"))
                return str(found[-1]) if found else ""
    return ""


def _there(wire: Wire, call: Call, image: str) -> bool:
    asked = f"Action=DescribeImages&Version=2016-11-15&ImageId.1={image}"
    return f"<imageId>{image}</imageId>" in _asked(wire, call, asked, "ec2")


def _asked(wire: Wire, call: Call, form: str, service: str = "autoscaling") -> str:
    """Ask moto as whoever called would."""
    scope = f"/{call.region}/{call.service}/"
    kept = {key: value for key, value in call.headers if key in ("authorization", "host", "x-amz-date")}
    kept["authorization"] = kept.get("authorization", "").replace(scope, f"/{call.region}/{service}/")
    kept["content-type"] = "application/x-www-form-urlencoded"
    body = form.encode()
    kept["content-length"] = str(len(body))
    return wire.forward(Call(service, "", "POST", "/", body, tuple(kept.items()))).body.decode()


_CHECKS = {
    "CreateAutoScalingGroup": _creation,
    "UpdateAutoScalingGroup": _sizes,
    "SetDesiredCapacity": _sizes,
    "PutScheduledUpdateGroupAction": _times,
    "TerminateInstanceInAutoScalingGroup": _managed,
}
