"""The rights of machines: Google's own roles, limited by conditions to the fleet's resources.

monkey makes no role of its own: the id of a removed role cannot be used again for weeks, and fleets come and go.
"""

from __future__ import annotations

from collections.abc import Mapping

from monkey.protocol.layout import PROJECTS, Keys

#: Roles to read, write and list objects, and to read a secret's value.
OBJECTS, SECRET = "roles/storage.objectUser", "roles/secretmanager.secretAccessor"
#: Role to remove a machine from a group, which changes that group: it is granted for the machines' own group alone.
GROUP = "roles/compute.instanceAdmin.v1"


def write_prefix_condition(bucket: str, prefix: str, project: str) -> Mapping[str, str] | None:
    """Return the condition that objects are below the store's prefix; None for a store without a prefix.

    Of the projects' objects there, it permits only this project's, and not the state of its machines. A writer of that
    state could make the next apply do anything.
    """
    if not prefix:
        return None
    keys = Keys(project)

    def begins(key: str) -> str:
        return f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{prefix}/{key}")'

    ours = f"{begins(keys.root)} && !{begins(keys.machines)}"
    objects = f"({begins('')} && (!{begins(PROJECTS)} || ({ours})))"
    listed = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "")'
    lists = f'resource.type == "storage.googleapis.com/Bucket" && {listed}.startsWith("{prefix}/")'
    return {"title": "own-project-below-the-stores-prefix", "expression": f"{objects} || ({lists})"}


def write_group_condition(name: str) -> Mapping[str, str]:
    """Return the condition that a request is about the group `name`."""
    return {"title": "own-group", "expression": f'resource.name.endsWith("/instanceGroupManagers/{name}")'}
