"""The work of `monkey init --provider slurm` and `kubernetes`: an entry for pilots, by what the cluster says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from monkey.cli.setup.project_lines import LOCAL_ENTRY, format_yaml_text, name_project
from monkey.errors import MonkeyError
from monkey.spec.project import provider, store_url
from monkey.spec.project.project import PROJECT_FILE

#: Provider type to the module that asks its engine.
ENGINES = {"slurm": "monkey_stacks.slurm.setup", "kubernetes": "monkey_stacks.kubernetes.setup"}
#: Provider type to the options that only it has, and to what else an entry of it needs.
QUEUE_OPTIONS = {"slurm": ("login", "partition"), "kubernetes": ("context", "namespace", "create")}
_NEEDED = {"slurm": {"time": "1h"}, "kubernetes": {"context": "one", "image": "python"}}
#: Provider type to what all its pilots may share.
_SHARED = {
    "slurm": "Name a store that the nodes share in {file}: a directory on the shared file system, or a bucket.",
    "kubernetes": "Name a store that pods reach in {file}: a bucket, or a directory on a volume, and store_path.",
}
#: Name of the provider in the entry that `init` writes.
_NAME = "cluster"


@dataclass(frozen=True)
class QueueOptions:
    """The options of the command line; None for those that were not given."""

    provider: str
    #: The project's directory.
    root: Path
    #: Those of `QUEUE_OPTIONS`. No login node is this machine; else the cluster chooses.
    asked: Mapping[str, str | None] = field(default_factory=dict)
    store: str | None = None

    @property
    def _said(self) -> dict[str, str]:
        return {key: value for key, value in self.asked.items() if value is not None}

    def check(self) -> None:
        """Raise MonkeyError if an option is none for an entry of monkey.yaml."""
        said = {key: value for key, value in self._said.items() if key != "create"}
        entry: Mapping[str, Any] = {"type": self.provider, **_NEEDED[self.provider], **said}
        found = provider.find_provider_mistakes({_NAME: entry})
        found += store_url.find_store_mistakes(self.store) if self.store is not None else []
        if found:
            raise MonkeyError(f"{found[0].message}; nothing was written", hint=found[0].hint)

    def ask(self) -> dict[str, str]:
        """Ask the engine, and return the lines to add to monkey.yaml, by their top-level key.

        Raises HostAway, FleetError.
        """
        entry = import_module(ENGINES[self.provider]).ask_for_entry(_NAME, self._asked)
        login = self.asked.get("login")
        store = self.store or (f"ssh://{login}/~/monkey-store" if login else "")
        lines = {"store": f"store: {format_yaml_text(store)}\n"} if store else {}
        return {**lines, "providers": f"providers:\n{LOCAL_ENTRY}  {_NAME}:\n{entry}"}

    @property
    def _asked(self) -> dict[str, str]:
        """What the engine's module gets: for `create` the project's name, after which a namespace is called."""
        return self._said | ({"create": name_project(self.root)} if self.asked.get("create") else {})

    def list_steps(self, spec: str, lines: Mapping[str, str]) -> Iterator[str]:
        """Yield what to do after `init` wrote `lines`; `spec`: the spec's file."""
        yield f"Next: say in {spec} who is to run it: provider: {_NAME}."
        if "store" not in lines:
            yield _SHARED[self.provider].format(file=PROJECT_FILE)
        yield "Then monkey plan, and monkey apply."
