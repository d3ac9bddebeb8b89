"""Lines that `monkey init` adds to a monkey.yaml that is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from monkey.atomic_write import write_atomically
from monkey.errors import MonkeyError
from monkey.spec.project.project import PROJECT_FILE, load_project
from monkey.spec.yaml import document

#: The local provider, which exists without `providers:`, and must be named beside others.
LOCAL_ENTRY = "  local: {type: local}\n"


class AskedMachines(Protocol):
    """Options of `init` for machines that are asked what they have."""

    @property
    def provider(self) -> str:
        """The provider's type."""

    @property
    def store(self) -> str | None:
        """The store that was given; None for none."""

    def check(self) -> None:
        """Raise MonkeyError if an option is none for an entry of monkey.yaml."""

    def ask(self) -> dict[str, str]:
        """Ask, and return the lines to add to monkey.yaml, by their top-level key. Raises MonkeyError."""

    def list_steps(self, spec: str, lines: Mapping[str, str]) -> Iterator[str]:
        """Yield what to do after `init` wrote `lines`; `spec`: the spec's file."""


def add_machines(path: Path, wanted: AskedMachines, lines: Mapping[str, str]) -> None:
    """Add the lines to the monkey.yaml at `path`; a store that it names stays, unless another one is asked for.

    Raises MonkeyError, SpecError.
    """
    append_lines(path, lines, optional=frozenset() if wanted.store else frozenset({"store"}))


def check_no_machines(path: Path, wanted: AskedMachines) -> None:
    """Raise MonkeyError where the monkey.yaml at `path` has a provider of this type; SpecError."""
    there = [name for name, of in load_project(path.parent).providers.items() if of.type == wanted.provider]
    if there:
        raise MonkeyError(
            f"{PROJECT_FILE} has the provider {there[0]!r} of type {wanted.provider}; nothing was written",
            hint=f"change it by hand; `monkey plan` says what {wanted.provider} thinks of it",
        )


def append_lines(path: Path, lines: Mapping[str, str], *, optional: frozenset[str] = frozenset()) -> None:
    """Add lines, by their top-level key, to the monkey.yaml at `path`. A key of `optional` that is there stays.

    Raises MonkeyError where another one is there, SpecError.
    """
    text = path.read_text(encoding="utf-8")
    found = document.parse_document(text, PROJECT_FILE).data if text.strip() else {}
    there = frozenset(found if isinstance(found, dict) else ())
    new = {key: said for key, said in lines.items() if key not in there or key not in optional}
    if taken := [key for key in new if key in there]:
        raise MonkeyError(
            f"{PROJECT_FILE} has {' and '.join(taken)} already; nothing was written. Expected there:\n"
            + "".join(new[key] for key in taken),
            hint="write it there by hand, then say it again",
        )
    write_atomically(path, text.rstrip("\n") + "\n" + "".join(new.values()))


def name_project(root: Path) -> str:
    """Return the name of the project at `root`, or of the one that would be made there. Raises SpecError."""
    if (root / PROJECT_FILE).exists():
        return load_project(root).name
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in root.resolve().name)
    return name.strip("._-") or "experiments"


def format_yaml_text(text: str) -> str:
    """Return a text as YAML has it."""
    return text if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9:/._~-]*", text) else json.dumps(text)
