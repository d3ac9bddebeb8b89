"""The world: one project with its store and its fleets, opened."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from monkey.apply.world.fleets import open_fleets
from monkey.apply.world.group_store import check_rights
from monkey.apply.world.known_stores import KnownStores
from monkey.apply.world.project_store import (
    check_spelling,
    locate_project_store,
    locate_trusted_store,
    open_known,
)
from monkey.ci_run import is_ci
from monkey.errors import FleetError, StoreMissing
from monkey.fleet.boot_failures import BootFailure, read_boot_failures
from monkey.fleet.fleet_port import Fleet
from monkey.fleet.local_fleet import LocalFleet
from monkey.protocol.layout import PROJECTS, Keys
from monkey.protocol.status.store_snapshot import SnapshotReader
from monkey.signing.entry_signers import EntrySigners, load_user_signers
from monkey.spec.project.project import Project
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.store.store_port import Store


@dataclass
class World:
    """One project, its store and its fleets, opened."""

    project: Project
    keys: Keys
    fleets: Mapping[str, Fleet]
    memo: KnownStores
    #: None: nothing was ever applied, and there is no store yet.
    store: Store | None
    #: Whose revisions and orders count, and the key of this user.
    signers: EntrySigners
    #: Is told of bytes that are hashed or sent.
    bars: Begin = show_no_progress
    #: Does no person decide, but CI or sync? Then what a person cancelled stays so.
    unattended: bool = False

    @property
    def at(self) -> Store:
        """The store, where there must be one. Raises StoreMissing."""
        if self.store is None:
            raise StoreMissing(
                f"nothing was applied yet: there is no store at {locate_project_store(self.project)}",
                hint="`monkey apply` begins it",
            )
        return self.store

    async def begin(self) -> None:
        """Make the store, where none ever was.

        Raises StoreUnsafe and whatever else `open_store` raises, also where this user may not write in the store.
        """
        if self.store is None:
            self.store = await open_known(locate_project_store(self.project), self.memo, begin=True)
        check_rights(self.at, self.keys)
        self.memo.keep_project(self.project)

    def reader(self) -> SnapshotReader:
        """Return a new reader of the store. Raises StoreMissing."""
        return SnapshotReader(self.at, self.keys, self.signers)

    @property
    def rented(self) -> frozenset[str]:
        """The providers whose machines are rented."""
        return frozenset(name for name, of in self.project.providers.items() if of.cloud is not None)

    @property
    def queued(self) -> frozenset[str]:
        """The providers whose machines are pilots in a queue."""
        return frozenset(name for name, of in self.project.providers.items() if of.slurm or of.kubernetes)

    async def boots(self) -> list[BootFailure]:
        """Return why rented machines and pilots gave up, where a provider has any. Raises StoreError."""
        return await read_boot_failures(self.at, self.keys.boots) if self.rented | self.queued else []

    @property
    def local_fleets(self) -> list[LocalFleet]:
        """The fleets of this machine."""
        return [fleet for fleet in self.fleets.values() if isinstance(fleet, LocalFleet)]

    def fleet(self, name: str) -> Fleet:
        """Return the fleet of that provider. Raises FleetError."""
        if name not in self.fleets:
            raise FleetError(
                f"expected one of this project's providers ({', '.join(sorted(self.fleets))}), found {name!r}",
                hint="`providers:` in monkey.yaml names them; `provider:` in a spec chooses",
            )
        return self.fleets[name]


@asynccontextmanager
async def open_world(
    project: Project, *, remember: bool = True, unattended: bool | None = None
) -> AsyncIterator[World]:
    """Open the project; its store is None where none ever was (`World.begin` makes it).

    `remember`: write down in the project which store is there. `unattended`: see `World`; None: in CI.

    Raises EndpointRefused, StoreMissing where there was one and now is none or another, OneName for the project's name,
    SigningError, and whatever `open_store` raises.
    """
    url, memo = locate_trusted_store(project), KnownStores(project.root, remember=remember)
    store = await open_known(url, memo, begin=False)
    world = World(project, Keys(project.name), {}, memo, store, load_user_signers())
    check_spelling(url, PROJECTS, project.name)
    world.unattended = is_ci() if unattended is None else unattended
    world.fleets = open_fleets(project, url, lambda: world.store, lambda: world.signers)
    try:
        yield world
    finally:
        for fleet in world.local_fleets:
            fleet.close()
        if world.store is not None:
            await world.store.close()
