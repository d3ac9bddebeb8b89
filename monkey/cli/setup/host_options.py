"""The work of `monkey init --provider ssh`: an entry for hosts, by what each of them says that it has."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from monkey.cli.setup.project_lines import LOCAL_ENTRY, format_yaml_text
from monkey.errors import MonkeyError
from monkey.spec.project import provider, store_url
from monkey.spec.project.project import PROJECT_FILE, load_project
from monkey.spec.yaml import document

#: The module that asks hosts.
_SURVEY = "monkey_stacks.ssh.setup.host_survey"
#: Name of the provider in the entry that `init` writes.
_NAME = "lab"
#: Names another file in place of the user's ssh_config, as for all that speaks SSH here.
_CONFIG_VARIABLE = "MONKEY_SSH_CONFIG"
#: A name in an ssh_config's `Host` that stands for one host.
_ONE_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: Hosts that a hint names, and files within files that are read, at most.
_MOST_NAMES, _MOST_DEPTH = 8, 8


@dataclass(frozen=True)
class HostOptions:
    """The options of the command line, for the project at `root`; None for those that were not given."""

    root: Path
    hosts: tuple[str, ...] = ()
    store: str | None = None
    provider: str = "ssh"

    def check(self) -> None:
        """Raise MonkeyError if an option is none for an entry of monkey.yaml, or no host is named."""
        if not self.hosts:
            raise MonkeyError("--provider ssh needs the hosts; nothing was written", hint=_suggest_hosts())
        entry: Mapping[str, Any] = {"type": self.provider, "hosts": list(self.hosts)}
        found = provider.find_provider_mistakes({_NAME: entry})
        found += store_url.find_store_mistakes(self.store) if self.store is not None else []
        if found:
            raise MonkeyError(f"{found[0].message}; nothing was written", hint=found[0].hint)

    def ask(self) -> dict[str, str]:
        """Ask all hosts, and return the lines to add to monkey.yaml, by their top-level key.

        Raises HostAway, FleetError, SpecError.
        """
        there = None if self.store else _read_store(self.root)
        store = self.store or f"ssh://{self.hosts[0]}/~/monkey-store"
        url = there or store_url.resolve_store_url(store, self.root.absolute())
        survey = import_module(_SURVEY)
        entry = survey.ask_for_host_entry(self.hosts, url, lambda told: click.echo(told, err=True))
        lines = {} if there else {"store": f"store: {format_yaml_text(store)}\n"}
        return {**lines, "providers": f"providers:\n{LOCAL_ENTRY}  {_NAME}:\n{entry}"}

    def list_steps(self, spec: str, lines: Mapping[str, str]) -> Iterator[str]:
        """Yield what to do after `init` wrote `lines`; `spec`: the spec's file."""
        takes = "; and what a job takes: resources: {gpus: 1}" if "GPU" in lines["providers"] else ""
        yield f"Next: say in {spec} what runs it: provider: {_NAME}{takes}."
        yield "Then monkey plan, and monkey apply."


def _read_store(root: Path) -> str | None:
    """Return the store that the monkey.yaml at `root` names; None where it names none. Raises SpecError."""
    path = root / PROJECT_FILE
    text = document.read_document_text(path, PROJECT_FILE) if path.exists() else ""
    said = document.parse_document(text, PROJECT_FILE).data if text.strip() else {}
    return load_project(root).store if isinstance(said, dict) and "store" in said else None


def _suggest_hosts() -> str:
    """Return which hosts to name: those of the user's ssh_config."""
    given = os.environ.get(_CONFIG_VARIABLE)
    names = list(dict.fromkeys(_list_config_hosts(given or "~/.ssh/config", _MOST_DEPTH)))[:_MOST_NAMES]
    if not names:
        return "--host gpu1 --host me@gpu2:2222, as you would type them after `ssh`"
    return f"name some, each with --host; your ssh configuration has {', '.join(names)}"


def _list_config_hosts(file: str, depth: int) -> Iterator[str]:
    """Yield the hosts that an ssh_config names, and files that it includes; patterns are none. Unreadable: none."""
    try:
        lines = Path(file).expanduser().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        keyword, *words = re.split(r"[\s=]+", line.strip())
        if keyword.lower() == "host":
            yield from (word.strip('"') for word in words if _ONE_HOST.fullmatch(word.strip('"')))
        elif keyword.lower() == "include" and depth:
            for word in words:
                for each in _find_included(word.strip('"')):
                    yield from _list_config_hosts(str(each), depth - 1)


def _find_included(word: str) -> list[Path]:
    """Return the files that an `Include` names: OpenSSH takes those without a directory for files in ~/.ssh."""
    path = Path("~/.ssh").expanduser() / Path(word).expanduser()
    try:
        return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    except ValueError:
        return []
