"""What a double knows of one kind of resources: how it is made, found again, changed and removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Props = dict[str, Any]


class Refused(Exception):
    """What the cloud said, in the words of its provider."""


class Kind:
    """One kind; `C` is what it talks to its cloud with."""

    #: As Pulumi says it: "aws:ec2/vpc:Vpc".
    token: str
    #: As its provider says it: "EC2 VPC".
    words: str
    #: Arguments whose change makes another one. Each file says where the provider's schema has them.
    forces: frozenset[str] = frozenset()
    #: Arguments that the cloud chooses where nobody does: leaving them out is no change.
    chosen: frozenset[str] = frozenset()
    #: Arguments that only the provider knows of: they are never found in the cloud.
    only_here: frozenset[str] = frozenset()
    #: Arguments that are JSON: another order and other spaces are no change.
    documents: frozenset[str] = frozenset()
    #: The argument that Pulumi invents where it is missing, from the resource's name and seven random digits.
    named: str = ""
    #: What the provider's schema has as a default.
    defaults: Mapping[str, Any] = {}
    #: Outputs that no preview of a change knows.
    renewed: frozenset[str] = frozenset()
    #: A replacement needs the name of the old one.
    delete_first = False

    def make(self, cloud: Any, want: Props) -> str:
        """Make it by one call; returns its id."""
        raise NotImplementedError

    def finish(self, cloud: Any, id_: str, want: Props) -> None:
        """Make the rest of it: what fails here leaves one that is known, and is not whole."""

    def read(self, cloud: Any, id_: str) -> Props | None:
        """Return all that there is to know; None where it is not there."""
        raise NotImplementedError

    def change(self, cloud: Any, id_: str, old: Props, new: Props, changed: frozenset[str]) -> None:
        """Make it so."""
        raise NotImplementedError(f"{self.token} cannot be changed by this double")

    def remove(self, cloud: Any, id_: str, state: Props) -> None:
        """Take it away; it is no error where it is not there."""
        raise NotImplementedError

    def differing(self, old_inputs: Props, state: Props, new: Props) -> frozenset[str]:
        """Return the arguments that are to change, by what is there and what was asked for."""
        found = {
            name
            for name, value in new.items()
            if not self.same(name, (old_inputs if name in self.only_here else state).get(name), value)
        }
        gone = {name for name in old_inputs.keys() - new.keys() - self.chosen if state.get(name) not in (None, [], {})}
        return frozenset(found | gone)

    def same(self, name: str, old: Any, new: Any) -> bool:
        """Say whether `old` is what `new` asks for."""
        if name in self.documents and isinstance(old, str) and isinstance(new, str):
            return bool(json.loads(old) == json.loads(new))
        return has(old, new)


def has(old: Any, new: Any) -> bool:
    """Say whether `old` has all that `new` asks for; it may know more. What is empty is as good as not there."""
    if isinstance(new, dict):
        return all(has((old or {}).get(key), value) for key, value in new.items()) if isinstance(old, dict) else not new
    if isinstance(new, list):
        old = old or []
        if len(old) != len(new):
            return False
        if all(isinstance(each, str) for each in [*old, *new]):
            return sorted(old) == sorted(new)
        return all(map(has, old, new))
    return bool(old == new) or (old is None and new in (False, "", 0))


def like(old: Any, found: Any) -> Any:
    """Return what was found, of what was asked for: what a refresh makes of inputs."""
    if isinstance(old, dict) and isinstance(found, dict):
        return {key: like(value, found[key]) for key, value in old.items() if key in found}
    if isinstance(old, list) and isinstance(found, list) and len(old) == len(found):
        if all(isinstance(each, str) for each in [*old, *found]) and sorted(old) == sorted(found):
            return old
        return list(map(like, old, found))
    return found
