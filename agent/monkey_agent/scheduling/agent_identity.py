"""An agent's identity: where it works, and which parts of the protocol it is made of."""

from __future__ import annotations

from dataclasses import dataclass

from monkey.protocol.claims import Claims
from monkey.protocol.entry_log import Create
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.observer import HeartbeatObserver
from monkey.store.create import create_object


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

    @property
    def agent(self) -> str:
        """Return how heartbeats and claims name it."""
        return f"{self.fleet}/{self.name}/{self.boot}"
