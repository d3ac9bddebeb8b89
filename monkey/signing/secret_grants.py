"""Which secrets of this machine the revisions of other signers may name: for each project, by the machine's owner.

A revision comes from the store. So a signer who may change a sweep may not thereby read each secret of the machine's
owner. The owner's own revisions may name any.
"""

from __future__ import annotations

import re
from pathlib import Path

from monkey.atomic_write import write_atomically
from monkey.errors import SigningError
from monkey.signing.keys.owned_file import read_owned_file
from monkey.signing.signer_list import hold_lock

#: The name of the file in the configuration directory: lines `PROJECT NAME NAME…`.
GRANTS_FILE = "secret_grants"
_SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretGrants:
    """The grants in one file."""

    def __init__(self, path: Path) -> None:
        """Read the file; none grants nothing. Raises SigningError with file and line."""
        self.path = path
        self.projects = self._read()

    def may_name(self, project: str, secret: str) -> bool:
        """Return whether revisions of other signers may name this secret in this project."""
        return secret in self.projects.get(project, frozenset())

    def change(self, project: str, *, add: frozenset[str] = frozenset(), remove: frozenset[str] = frozenset()) -> None:
        """Grant secrets to a project, and take others back. Raises SigningError."""
        wrong = sorted(name for name in add if not _SECRET.fullmatch(name))
        if wrong or not project or re.search(r"\s", project):
            raise SigningError(f"expected the names of secrets, such as HF_TOKEN, found {', '.join(wrong)!r}")
        with hold_lock(self.path):
            held = self._read()
            held[project] = (held.get(project, frozenset()) | add) - remove
            self.projects = {name: names for name, names in held.items() if names}
            text = "".join(f"{name} {' '.join(sorted(names))}\n" for name, names in sorted(self.projects.items()))
            try:
                write_atomically(self.path, text, mode=0o600, durable=True)
            except OSError as exc:
                raise SigningError(f"the grants cannot be written to {self.path}: {exc.strerror}") from exc

    def _read(self) -> dict[str, frozenset[str]]:
        try:
            text = read_owned_file(self.path, "the grants of secrets").decode(errors="replace")
        except FileNotFoundError:
            return {}
        found: dict[str, frozenset[str]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            project, *names = line.split() or [""]
            if project and not (names and all(map(_SECRET.fullmatch, names)) and project not in found):
                raise SigningError(f"{self.path}:{number}: expected PROJECT NAME…, each project once")
            found |= {project: frozenset(names)} if project else {}
        return found
