"""An agent's identity: where it works, and which parts of the protocol it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from monkey.protocol.claims import Claims
from monkey.protocol.entry_log import Create
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.protocol.sweeps.revision import Revision
from monkey.spec.job.lease_length import LEASE
from monkey.store.create import create_object
from monkey_agent.containers.image_choice import ANY_IMAGE, ImageChoice


@dataclass(frozen=True)
class ProtocolParts:
    """The protocol's moving parts; the simulation swaps them for mutants."""

    create: Create = create_object
    heart: type[HeartbeatWriter] = HeartbeatWriter
    observer: type[HeartbeatObserver] = HeartbeatObserver
    claims: type[Claims] = Claims


#: The protocol as it is meant.
PROTOCOL = ProtocolParts()


@dataclass(frozen=True)
class AgentIdentity:
    """Where an agent works."""

    project: str
    fleet: str
    #: The agent's name: one a machine and fleet.
    name: str
    #: This life of it: random.
    boot: str
    #: Earlier lives of it on this machine ("fleet/name/boot"): what they held is taken over at once.
    predecessors: frozenset[str] = frozenset()
    #: Seconds without work after which it leaves; None to stay.
    idle_timeout: float | None = 10.0
    #: When it leaves, in seconds since the epoch; and the seconds that its machine has in all (None: those until then).
    leave_at: float = float("inf")
    pilot_time: float | None = None
    images: ImageChoice = ANY_IMAGE
    #: Seconds that it may be silent before others take its jobs over, where the store's layout has leases.
    lease: float = LEASE

    @property
    def agent(self) -> str:
        """Return how heartbeats and claims name it."""
        return f"{self.fleet}/{self.name}/{self.boot}"

    def may_run(self, revision: Revision) -> bool:
        """Return whether jobs of a revision are this agent's, as far as their providers and their image go."""
        return self.fleet in revision.settings.providers and self.images.is_taken(revision.recipe.image)
