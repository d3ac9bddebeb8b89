"""Whose a resource at AWS is, by its tags there: a state may name any resource of the account.

Pulumi would update or delete it by the id alone. So each is looked up by its id before Pulumi starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from monkey_stacks.aws.api import orphans
from monkey_stacks.aws.api.account import AwsAccount
from monkey_stacks.aws.api.errors import read_error_code, translate_errors
from monkey_stacks.aws.api.inventory import ASKED, TYPES
from monkey_stacks.aws.api.naming import FLEET_TAG, PROJECT, STACK, AwsStack
from monkey_stacks.cloud import foreign_resources
from monkey_stacks.engine.engine_outcome import StateResource

_Tags = Mapping[str, str]
_KINDS = {type_: kind for kind, type_ in TYPES.items()}


def check_ownership(account: AwsAccount, stack: AwsStack, recorded: Sequence[StateResource]) -> None:
    """Raise FleetError where AWS has one of these resources, and its tags do not say that it is the stack's."""
    named = sorted({(_KINDS[each.type], each.id) for each in recorded if each.id})
    for service in ("ec2", "iam", "autoscaling"):
        account.client(service)
    with ThreadPoolExecutor(len(ASKED)) as crew:
        found = crew.map(lambda each: _find_tags(account, *each), named)
        for (kind, id_), tags in zip(named, found, strict=True):
            wanted = {PROJECT: stack.project, FLEET_TAG: stack.fleet, STACK: stack.id}
            if tags is not None and any(tags.get(tag) != value for tag, value in wanted.items()):
                thing = f"{kind.replace('-', ' ')} {id_!r}"
                raise foreign_resources.make_foreign_error("AWS", thing, stack.fleet, wanted, tags)


def _find_tags(account: AwsAccount, kind: str, id_: str) -> _Tags | None:
    """Return the tags of a resource, or of that which it is a part of; None where there is none. Raises FleetError."""
    from botocore.exceptions import ClientError

    find = _FINDERS.get(kind) or partial(_tags_in_ec2, kind)
    with translate_errors():
        try:
            tags = find(account, id_)
        except ClientError as exc:
            if any(word in read_error_code(exc) for word in orphans.GONE):
                return None
            raise
    return None if tags is None else {str(tag["Key"]): str(tag["Value"]) for tag in tags}


def _tags_in_ec2(kind: str, account: AwsAccount, id_: str) -> Any:
    operation, answer, key = ASKED[kind]
    found = getattr(account.client("ec2"), operation)(**{f"{key}s": [id_]})[answer]
    return found[0].get("Tags", []) if found else None


def _tags_of_table(account: AwsAccount, id_: str) -> Any:
    """Return the tags of the route table of an association, which has none."""
    only = [{"Name": "association.route-table-association-id", "Values": [id_]}]
    found = account.client("ec2").describe_route_tables(Filters=only)["RouteTables"]
    return found[0].get("Tags", []) if found else None


def _tags_of_role(account: AwsAccount, id_: str) -> Any:
    """Return the tags of a role, or of the role of a policy ("ROLE:POLICY")."""
    return account.client("iam").get_role(RoleName=id_.partition(":")[0])["Role"].get("Tags", [])


def _tags_of_profile(account: AwsAccount, id_: str) -> Any:
    return account.client("iam").get_instance_profile(InstanceProfileName=id_)["InstanceProfile"].get("Tags", [])


def _tags_of_group(account: AwsAccount, id_: str) -> Any:
    asked = account.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[id_])
    found = asked["AutoScalingGroups"]
    return found[0]["Tags"] if found else None


#: How the tags of what EC2 has no id and tags for are found.
_FINDERS: Mapping[str, Callable[[AwsAccount, str], Any]] = {
    "association": _tags_of_table,
    "role": _tags_of_role,
    "role-policy": _tags_of_role,
    "instance-profile": _tags_of_profile,
    "auto-scaling-group": _tags_of_group,
}
