"""The rights of machines: roles of Google's with conditions for the store, a role of the project's for the group.

A condition knows the names of objects and buckets. It knows nothing of instance groups. Google lists the types of
resources that have attributes (docs.cloud.google.com/iam/docs/conditions-resource-attributes), and a group is none.
So the role of the group holds for all groups of the project, and has the two permissions that machines use.

An administrator makes that role once. Google keeps the id of a removed role for weeks, and fleets come and go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from monkey.protocol.layout import PROJECTS, Keys
from monkey_stacks.cloud import store_rights

#: Roles to read and list objects; to write and delete them, too; to read a secret's value.
READ, WRITE, SECRET = "roles/storage.objectViewer", "roles/storage.objectUser", "roles/secretmanager.secretAccessor"
#: Id of the role of machines in the project, and its permissions: to look at a group, and to take a machine out of it.
GROUP_ROLE = "monkeyGroups"
GROUP_CALLS = ("compute.instanceGroupManagers.get", "compute.instanceGroupManagers.update")


@dataclass(frozen=True)
class BucketRight:
    """A role on the store's bucket, and the condition under which it holds."""

    role: str
    title: str
    expression: str

    @property
    def condition(self) -> Mapping[str, str]:
        """The condition as Google takes it."""
        return {"title": self.title, "expression": self.expression}


def spell_group_role(gcp_project: str) -> str:
    """Return the role of machines in a project of Google's, as bindings name it."""
    return f"projects/{gcp_project}/roles/{GROUP_ROLE}"


def write_bucket_rights(bucket: str, prefix: str, project: str, fleet: str) -> Mapping[str, BucketRight]:
    """Return the rights on the store's bucket, by the names of their resources.

    Google takes at most 12 logical operators in a condition.
    """
    return {
        "read": BucketRight(READ, "own-project-below-the-stores-prefix", _reads(bucket, prefix, project)),
        "write": BucketRight(WRITE, "what-agents-of-the-fleet-write", _writes(bucket, prefix, project, fleet)),
    }


def _reads(bucket: str, prefix: str, project: str) -> str:
    """Return the condition of reading: of the projects' objects only this project's, and not its machines' state.

    A list is asked of the whole bucket. So a machine sees the names of all its objects.
    """
    keys = Keys(project)

    def begins(key: str) -> str:
        return _matches(bucket, prefix, f"{key}*")

    ours = f"{begins(keys.root)} && !{begins(keys.machines)}"
    lists = f"resource.name == {_quote(_BUCKETS + bucket)}"
    return f"{lists} || ({begins('')} && (!{begins(PROJECTS)} || ({ours})))"


def _writes(bucket: str, prefix: str, project: str, fleet: str) -> str:
    """Return the condition of writing. Whether an entry of a log is overwritten, no condition of Google's can tell."""
    keys = (*store_rights.list_own_keys(project, fleet), *store_rights.list_entry_keys(project, fleet))
    return " || ".join(_matches(bucket, prefix, key) for key in keys)


_BUCKETS = "projects/_/buckets/"


def _matches(bucket: str, prefix: str, key: str) -> str:
    """Return the condition that an object's key in the store is `key`; `*` stands for any text."""
    begin, star, end = f"{_BUCKETS}{bucket}/objects/{prefix}{'/' if prefix else ''}{key}".partition("*")
    if not star:
        return f"resource.name == {_quote(begin)}"
    begins = f"resource.name.startsWith({_quote(begin)})"
    return f"({begins} && resource.name.endsWith({_quote(end)}))" if end else begins


def _quote(text: str) -> str:
    """Return a text as a literal of Google's language, whose escapes are JSON's."""
    return json.dumps(text)
