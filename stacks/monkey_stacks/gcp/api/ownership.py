"""Whose a resource at Google is: by its name, which has the stack's id, and by its labels where it can have some.

Google's plugin finds a resource by its project, region and name, not by its id. So all of these are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from monkey_stacks.cloud import foreign_resources
from monkey_stacks.engine.engine_outcome import StateResource
from monkey_stacks.gcp.api.account import GcpAccount
from monkey_stacks.gcp.api.inventory import TYPES, identify_resource, name_service_account
from monkey_stacks.gcp.api.naming import GcpStack

_TEMPLATE, _ACCOUNT = TYPES["instance-template"], TYPES["service-account"]
#: A member that was deleted is kept in policies for a while, with a mark.
_MEMBER = re.compile(r"(?:deleted:)?(serviceAccount:[^?]+)(?:\?uid=\d+)?")
#: What a resource's marks are to be, and what they are.
_Marks = tuple[Mapping[str, str], Mapping[str, str]]


def check_ownership(account: GcpAccount, stack: GcpStack, recorded: Sequence[StateResource]) -> None:
    """Raise FleetError where one of these resources is not the stack's by its name, or by the labels that it has."""
    for each in recorded:
        # The state first: Google is asked for no id but one of ours.
        for wanted, found in chain(_compare(account, stack, each), _labels(account, stack, each)):
            if wanted.items() - found.items():
                kind = next((kind for kind, type_ in TYPES.items() if type_ == each.type), "right")
                thing = f"{kind.replace('-', ' ')} {each.id or each.name!r}"
                raise foreign_resources.make_foreign_error("Google", thing, stack.fleet, wanted, found)


def _compare(account: GcpAccount, stack: GcpStack, each: StateResource) -> Iterator[_Marks]:
    """Yield the marks of a resource in the state: in its inputs, in its outputs, and its id."""
    for part in (each.inputs, each.outputs):
        said = {name: str(part[name]) for name in ("name", "project", "region", "accountId") if part.get(name)}
        said |= {"region": said["region"].rpartition("/")[2]} if "region" in said else {}
        if each.type not in TYPES.values():
            yield from _compare_member(account, stack, part)
        elif each.type == _ACCOUNT:
            wanted = {"accountId": stack.account, "project": account.project}
            yield wanted, {**wanted, **said}
        else:
            own = said.get("name", "") if each.type == _TEMPLATE and stack.made(said.get("name", "")) else stack.name
            wanted = {"name": own, "project": account.project, "region": account.region}
            yield wanted, {**wanted, **said}
    if each.type in TYPES.values() and each.id:
        named = {"name": each.inputs.get("name", "")}
        yield {"id": identify_resource(account, stack, each.type, named) or ""}, {"id": each.id}


def _compare_member(account: GcpAccount, stack: GcpStack, part: Mapping[str, object]) -> Iterator[_Marks]:
    """Yield whose right it is: a right of the machines' account is the fleet's."""
    if part:
        member = str(part.get("member", ""))
        found = _MEMBER.fullmatch(member)
        wanted = {"member": f"serviceAccount:{name_service_account(account, stack)}"}
        yield wanted, {"member": found[1] if found else member}


def _labels(account: GcpAccount, stack: GcpStack, each: StateResource) -> Iterator[_Marks]:
    """Yield the labels that a template is to have, and those that Google has of it. Raises FleetError."""
    if each.type == _TEMPLATE and each.id:
        raw = account.find("compute", f"compute/v1/{each.id}")
        if raw is not None:
            yield stack.labels, raw.get("properties", {}).get("labels", {})
