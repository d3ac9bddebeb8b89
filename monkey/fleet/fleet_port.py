"""The port that every fleet implements: the machines of one provider entry, and the agents on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, runtime_checkable

from monkey.fleet.fleet_records import AuditFinding, FleetForecast, FleetWork, Instance, TaggedResource
from monkey.spec.job.recipe import JobResources
from monkey.store.content.upload_progress import Begin, show_no_progress

#: Counts the work again, when a fleet is about to be converged.
Recount = Callable[[], Awaitable[FleetWork]]
#: Receives each thing that was done, as a sentence.
Say = Callable[[str], None]


def keep_silent(said: object) -> None:
    """Ignore what was done."""


class Fleet(Protocol):
    """The machines of one provider. Every method may raise FleetError, unless it says otherwise."""

    @property
    def name(self) -> str:
        """The provider's name in monkey.yaml."""

    @property
    def type(self) -> str:
        """The provider's type in monkey.yaml."""

    async def preview(self, work: FleetWork) -> FleetForecast:
        """Return what `converge` would do. Trouble that concerns only some machines is part of the forecast."""

    async def converge(
        self, work: FleetWork, say: Say, recount: Recount | None = None, bars: Begin = show_no_progress
    ) -> None:
        """Set the machines up for `work`; trouble with only some of them is said, and does not stop the others.

        `recount` counts the work again where another apply changed the machines meanwhile. Returns as soon as the
        machines are requested; `has_workers` says what became of them.
        """

    async def has_workers(self) -> bool:
        """Say whether an agent exists or is on its way.

        Raises FleetError, with the agent's last lines, if it failed to start.
        """

    async def instances(self) -> tuple[Instance, ...]:
        """Return the recorded machines; asks no machine."""

    async def destroy(self, say: Say) -> None:
        """Remove everything that `converge` ever made; running jobs are released to other agents."""

    def describe_shortage(self, asked: JobResources) -> str:
        """Say what a machine lacks for a job; "" where it lacks nothing, or that is unknown."""

    def check_secrets(self, names: Sequence[str]) -> None:
        """Raise FleetError where the machines would lack a secret; asks only this machine."""

    def recent_log(self) -> str:
        """Return the last lines that the fleet's agents wrote, indented, or where they are."""


@runtime_checkable
class Auditable(Protocol):
    """A fleet whose machines can be compared with what is recorded of them."""

    async def audit(self, *, busy: bool) -> tuple[AuditFinding, ...]:
        """Ask the machines, and return each difference from the record; `busy`: each should have a living agent."""


@runtime_checkable
class Checkable(Protocol):
    """A fleet that can be asked for machines without getting any."""

    async def check_offer(self) -> str:
        """Ask whether machines could be had as monkey.yaml says; changes nothing.

        Returns a sentence on them. Raises FleetError, StoreError.
        """


@runtime_checkable
class RuntimeCheckable(Protocol):
    """A fleet whose machines can be asked whether they run images."""

    async def check_runtimes(self) -> list[tuple[str, str]]:
        """Ask each machine; return why it runs none, and what to do ("" if unknown), for those that do not."""


@runtime_checkable
class ImageCheckable(Protocol):
    """A fleet whose agents may each run the jobs of one image alone."""

    async def check_images(self, digests: Collection[str]) -> bool:
        """Say whether each image with work has an agent; `digests`: of the images of living agents, "" for any other.

        Raises FleetError where all agents on their way to an image wait for what never comes.
        """


@runtime_checkable
class Rented(Auditable, Checkable, Protocol):
    """A fleet whose machines cost money while they exist."""

    #: As of the last `has_workers`: all requested machines exist, and boot for minutes.
    booting: bool
    #: Machines that cost money may have been made or removed by this process.
    touched: bool

    async def tagged_resources(self) -> tuple[TaggedResource, ...]:
        """Ask the cloud for all resources with this fleet's tags, or with another's of the project."""

    async def destroy(self, say: Say, *, idle: bool = False) -> None:
        """See `Fleet.destroy`; `idle`: leave a fleet as it is that has machines, or is getting some."""
