"""What machines may do: rights that Google has by name, cut down to what is theirs by conditions.

No role of our own: the id of one that was removed is good for nothing for weeks, and fleets come and go.
"""

from __future__ import annotations

from collections.abc import Mapping

from monkey.protocol.layout import PROJECTS, Keys

#: To read, write and list objects; to read a secret's value.
OBJECTS, SECRET = "roles/storage.objectUser", "roles/secretmanager.secretAccessor"
#: To take a machine away from a group, which is to change that group: it is given for their own alone.
GROUP = "roles/compute.instanceAdmin.v1"


def write_prefix_condition(bucket: str, prefix: str, project: str) -> Mapping[str, str] | None:
    """Return the condition that objects are below the store's prefix; None where it has none.

    Of what is any project's there, it must be this one's, and not the state of its machines: a writer of that
    can have the next apply do what they like.
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


def own_group(name: str) -> Mapping[str, str]:
    """Return the condition that it is about this group."""
    return {"title": "own-group", "expression": f'resource.name.endsWith("/instanceGroupManagers/{name}")'}
