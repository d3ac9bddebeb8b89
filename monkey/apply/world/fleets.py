"""The fleets of a project, opened by the types of their providers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from monkey.fleet.fleet_port import Fleet
from monkey.fleet.local_fleet import LocalFleet
from monkey.protocol.status.store_snapshot import StoreSnapshot
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.project.project import Project
from monkey.store.store_port import Store

#: Type of a provider to the module that makes its fleets: found by name, so that who has none of them imports none.
FLEET_MODULES = {"ssh": "monkey_stacks.ssh.fleet", "aws": "monkey_stacks.aws.fleet", "gcp": "monkey_stacks.gcp.fleet"}

#: Returns the store, once there is one.
Opened = Callable[[], Store | None]
#: Returns whom this user trusts.
Signers = Callable[[], EntrySigners]


def open_fleets(project: Project, store_url: str, store: Opened, signers: Signers) -> dict[str, Fleet]:
    """Return the fleet of every provider of the project; `signers` returns those that its machines are to obey."""
    return {name: _fleet(project, store_url, store, signers, name) for name in project.providers}


def _fleet(project: Project, store_url: str, store: Opened, signers: Signers, name: str) -> Fleet:
    of = project.providers[name]
    if of.type in FLEET_MODULES:
        make_fleet = import_module(FLEET_MODULES[of.type]).make_fleet
        made: Fleet = make_fleet(name, of, project.name, store_url, store, signers)
        return made
    return LocalFleet(store_url, project.name, name, of.max_slots, of.idle_timeout, of.cache_size)


def count_living_agents(fleet: Fleet, snapshot: StoreSnapshot | None) -> int:
    """Say how many agents of a fleet live: by what this machine sees, else by their heartbeats."""
    if isinstance(fleet, LocalFleet):
        return fleet.count_agents()
    return len(snapshot.alive(fleet.name)) if snapshot is not None else 0
