"""The endpoints that this user trusts for a project: one file of the user's state, as known_hosts is one for hosts."""

from __future__ import annotations

import json
import os
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.fleet.user_directories import locate_state_home
from monkey.untrusted_files import make_private_directory


class KnownEndpoints:
    """The endpoints that were confirmed for the project at one place."""

    def __init__(self, root: Path) -> None:
        """Read them for the project at `root`; what cannot be read was not confirmed."""
        # By its place: a name stands in monkey.yaml, where a stranger could write another project's.
        self._root = os.path.realpath(root)
        self.path = locate_state_home() / "monkey" / "known_endpoints.json"
        self._known = self._read()

    @property
    def urls(self) -> list[str]:
        """The endpoints that were confirmed for this project."""
        return self._known.get(self._root, [])

    def add(self, url: str) -> None:
        """Remember an endpoint. Raises OSError."""
        self._known = self._read()
        self._known[self._root] = sorted({*self.urls, url})
        make_private_directory(self.path.parent)
        write_atomically(self.path, json.dumps(self._known, indent=1, sort_keys=True) + "\n")

    def _read(self) -> dict[str, list[str]]:
        try:
            with self.path.open("rb") as file:
                # Without a home it lies in /tmp, where anybody may have written it.
                said = json.load(file) if os.fstat(file.fileno()).st_uid == os.geteuid() else {}
        except (OSError, ValueError, RecursionError):
            return {}
        return {root: list(map(str, urls)) for root, urls in said.items()} if _is_sound(said) else {}


def _is_sound(said: object) -> bool:
    return isinstance(said, dict) and all(isinstance(urls, list) for urls in said.values())
