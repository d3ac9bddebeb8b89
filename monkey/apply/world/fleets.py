"""The fleets of a project, opened by the types of their providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from monkey.fleet.fleet_port import Fleet
from monkey.fleet.local_fleet import LocalFleet
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.project.project import Project
from monkey.spec.project.provider import Provider
from monkey.store.store_port import Store

#: Type of a provider to the module that makes its fleets: found by name, so that who has none of them imports none.
FLEET_MODULES = {kind: f"monkey_stacks.{kind}.fleet" for kind in ("ssh", "slurm", "kubernetes", "aws", "gcp")}

#: Returns the store, once there is one.
Opened = Callable[[], Store | None]
#: Returns whom this user trusts.
Signers = Callable[[], EntrySigners]


class FleetTable(Mapping[str, Fleet]):
    """The fleets of a project, by their names; a fleet that a spec derives is opened once it is asked for.

    It lists the fleets of monkey.yaml's providers, and those derived ones that were opened.
    """

    def __init__(self, providers: Mapping[str, Provider], open_fleet: Callable[[str, Provider], Fleet]) -> None:
        """Open the fleets of all listed providers by `open_fleet`."""
        self._providers, self._open = providers, open_fleet
        self._fleets = {name: open_fleet(name, of) for name, of in providers.items()}

    def __getitem__(self, name: str) -> Fleet:
        """Return a fleet. Raises KeyError."""
        if name not in self._fleets:
            self._fleets[name] = self._open(name, self._providers[name])
        return self._fleets[name]

    def __contains__(self, name: object) -> bool:
        """Is there a provider for the fleet?"""
        return name in self._providers

    def __iter__(self) -> Iterator[str]:
        """Return the names of the fleets that are open."""
        return iter([*self._fleets])

    def __len__(self) -> int:
        """Count the fleets that are open."""
        return len(self._fleets)


def open_fleets(project: Project, store_url: str, store: Opened, signers: Signers) -> FleetTable:
    """Return the fleet of every provider of the project; `signers` returns those that its machines are to obey."""

    def open_fleet(name: str, of: Provider) -> Fleet:
        if of.type in FLEET_MODULES:
            make_fleet = import_module(FLEET_MODULES[of.type]).make_fleet
            made: Fleet = make_fleet(name, of, project.name, store_url, store, signers)
            return made
        about = of.max_slots, of.idle_timeout, of.cache_size, of.runtime, of.resources, of.lease
        return LocalFleet(store_url, project.name, name, *about)

    return FleetTable(project.providers, open_fleet)


def count_living_agents(fleet: Fleet, snapshot: StoreSnapshot | None) -> int:
    """Say how many agents of a fleet live: by what this machine sees, else by their heartbeats."""
    if isinstance(fleet, LocalFleet):
        return fleet.count_agents()
    return len(snapshot.alive(fleet.name)) if snapshot is not None else 0
