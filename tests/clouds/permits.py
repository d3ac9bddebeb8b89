"""What AWS would ask its IAM for calls that were made: each action, on which resource, in which context.

AWS asks for each resource apart; and for making a group, also whether whoever does may start what its template says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.clouds.wire import Call
from tests.iam import ACCOUNT, Ask

ME = f"arn:aws:iam::{ACCOUNT}:user/researcher"
TAG = "monkey:project"
#: What ids of EC2's begin with, by what its policies call that.
_KINDS = {
    "vpc": "vpc",
    "subnet": "subnet",
    "rtb": "route-table",
    "igw": "internet-gateway",
    "sg": "security-group",
    "vpce": "vpc-endpoint",
    "lt": "launch-template",
    "i": "instance",
    "vol": "volume",
}
_ID = re.compile(rf"\b({'|'.join(_KINDS)})-[0-9a-f]{{8,17}}")
#: Calls that give an id to something, by what that is.
_MAKES = {
    "CreateVpc": "vpc",
    "CreateSubnet": "subnet",
    "CreateRouteTable": "route-table",
    "CreateInternetGateway": "internet-gateway",
    "CreateSecurityGroup": "security-group",
    "CreateVpcEndpoint": "vpc-endpoint",
    "CreateLaunchTemplate": "launch-template",
}
#: Ids that a call names, and whose rights it does not ask for: a route's gateway, what a template's machines have.
_NOT_ASKED = {"CreateRoute": "igw", "CreateLaunchTemplateVersion": "sg", "CreateLaunchTemplate": "sg"}
#: Of S3: what a request without a name asks for.
_OBJECTS = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "POST": "PutObject", "DELETE": "DeleteObject"}
_BUCKETS = {
    ("GET", ""): "ListBucket",
    ("HEAD", ""): "ListBucket",
    ("PUT", ""): "CreateBucket",
    ("PUT", "publicAccessBlock"): "PutBucketPublicAccessBlock",
    ("PUT", "lifecycle"): "PutLifecycleConfiguration",
}


def asks(calls: Iterable[Call], tags: Mapping[str, str]) -> list[Ask]:
    """Return what IAM is asked for calls, each once.

    `tags`: by ids of what there was, of which project it is; by ids of machines, of which group.
    """
    found: dict[str, Ask] = {}
    for call in calls:
        for ask in _SERVICES[call.service](call, tags):
            found.setdefault(f"{ask.action} {ask.resource} {sorted(ask.context.items())}", ask)
    return list(found.values())


def _ask(action: str, resource: str = "*", context: Mapping[str, str] | None = None) -> Ask:
    return Ask(action, resource, context or {}, ME)


def _ec2(call: Call, tags: Mapping[str, str]) -> Iterator[Ask]:
    action, arn = f"ec2:{call.action}", f"arn:aws:ec2:{call.region}:{ACCOUNT}"
    if call.action.startswith("Describe"):
        yield _ask(action)
        return
    if kind := _MAKES.get(call.action):
        given = _given(call)
        yield _ask(action, f"{arn}:{kind}/*", given)
        if given:
            yield _ask("ec2:CreateTags", f"{arn}:{kind}/*", {**given, "ec2:CreateAction": call.action})
    if call.action == "DisassociateRouteTable":  # an association has no name of its own there
        yield _ask(action, f"{arn}:route-table/*", {f"aws:ResourceTag/{TAG}": tags[call.form["AssociationId"]]})
    for id_ in sorted({found[0] for found in _ID.finditer(" ".join(call.form.values()))}):
        prefix = id_.rpartition("-")[0]
        if _NOT_ASKED.get(call.action) != prefix:
            context = {f"aws:ResourceTag/{TAG}": tags[id_]} if id_ in tags else {}
            yield _ask(action, f"{arn}:{_KINDS[prefix]}/{id_}", context)


def _given(call: Call) -> dict[str, str]:
    """Return the tag of ours that a request gives to what it makes."""
    keys = {name.rpartition(".")[0]: value for name, value in call.form.items() if name.endswith(".Key")}
    return {f"aws:RequestTag/{TAG}": call.form[f"{name}.Value"] for name, key in keys.items() if key == TAG}


def _autoscaling(call: Call, tags: Mapping[str, str]) -> Iterator[Ask]:
    action, form = f"autoscaling:{call.action}", call.form
    if call.action.startswith("Describe"):
        yield _ask(action)
        return
    name = form.get("AutoScalingGroupName") or form.get("Tags.member.1.ResourceId") or tags[form["InstanceId"]]
    arn = f"arn:aws:autoscaling:{call.region}:{ACCOUNT}:autoScalingGroup:5a1c:autoScalingGroupName"
    yield _ask(action, f"{arn}/{name}")
    if call.action == "CreateAutoScalingGroup":
        yield _ask("autoscaling:CreateOrUpdateTags", f"{arn}/{name}")
    if any("LaunchTemplate" in key for key in form):
        yield from _running(call, name)


def _running(call: Call, name: str) -> Iterator[Ask]:
    """Whoever has a group use a template must be permitted to start what it says, and to give that its role."""
    arn = f"arn:aws:ec2:{call.region}:{ACCOUNT}"
    template = {"ec2:LaunchTemplate": f"{arn}:launch-template/lt-0123456789abcdef0"}
    for kind in ("instance", "network-interface", "volume", "subnet", "security-group", "launch-template"):
        yield _ask("ec2:RunInstances", f"{arn}:{kind}/*", template)
    yield _ask("ec2:RunInstances", f"arn:aws:ec2:{call.region}::image/ami-1", template)
    for kind in ("instance", "volume"):
        tagging = {f"aws:RequestTag/{TAG}": name.split("-")[1], "ec2:CreateAction": "RunInstances"}
        yield _ask("ec2:CreateTags", f"{arn}:{kind}/*", tagging)
    yield _pass(name)


def _iam(call: Call, tags: Mapping[str, str]) -> Iterator[Ask]:
    form = call.form
    profile = "InstanceProfile" in call.action and call.action != "ListInstanceProfilesForRole"
    kind, name = ("instance-profile", form["InstanceProfileName"]) if profile else ("role", form["RoleName"])
    yield _ask(f"iam:{call.action}", f"arn:aws:iam::{ACCOUNT}:{kind}/{name}")
    if call.action in ("CreateRole", "CreateInstanceProfile") and "Tags.member.1.Key" in form:
        yield _ask(call.action.replace("Create", "iam:Tag"), f"arn:aws:iam::{ACCOUNT}:{kind}/{name}")
    if call.action == "AddRoleToInstanceProfile":
        yield _pass(form["RoleName"])


def _pass(role: str) -> Ask:
    return _ask("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/{role}", {"iam:PassedToService": "ec2.amazonaws.com"})


def _s3(call: Call, tags: Mapping[str, str]) -> Iterator[Ask]:
    url = urlsplit(call.path)
    bucket, _, key = unquote(url.path).lstrip("/").partition("/")
    query = {name: unquote(value) for name, _, value in (each.partition("=") for each in url.query.split("&"))}
    if key:
        yield _ask(f"s3:{_OBJECTS[call.method]}", f"arn:aws:s3:::{bucket}/{key}")
    elif call.method == "POST" and "delete" in query:
        for each in re.findall(rb"<Key>([^<]+)</Key>", call.body):
            yield _ask("s3:DeleteObject", f"arn:aws:s3:::{bucket}/{each.decode()}")
    else:
        named = next((name for name in ("publicAccessBlock", "lifecycle") if name in query), "")
        context = {"s3:prefix": query["prefix"]} if "prefix" in query else {}
        yield _ask(f"s3:{_BUCKETS[call.method, named]}", f"arn:aws:s3:::{bucket}", context)


def _sts(call: Call, tags: Mapping[str, str]) -> Iterator[Ask]:
    """Who one is, everybody may ask."""
    assert call.action == "GetCallerIdentity"
    return iter(())


_SERVICES: Mapping[str, Any] = {
    "ec2": _ec2,
    "autoscaling": _autoscaling,
    "iam": _iam,
    "s3": _s3,
    "sts": _sts,
}


def of_others(asked: Iterable[Ask]) -> Iterator[Ask]:
    """Yield, of what may be asked, the same of another project's: what changes something, or may be read by few."""
    for ask in asked:
        if ask.resource == "*" or ask.action.startswith("s3:ListBucket"):
            continue
        resource = ask.resource.replace("monkey-shop-", "monkey-other-").replace("monkeys/team/", "monkeys/else/")
        context = {key: "other" if key.endswith(TAG) else value for key, value in ask.context.items()}
        if (resource, context) != (ask.resource, dict(ask.context)):
            yield Ask(ask.action, resource, context, ask.principal)
