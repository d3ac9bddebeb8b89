"""What all parts of an agent share: its store, its clock, its place in the protocol, and its tasks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from monkey.protocol.claims import Claims
from monkey.protocol.entry_log import Create
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.signing.entry_signers import EntrySigners
from monkey.spec.job.lease_length import LEASE
from monkey.store.format import LEASES
from monkey.store.store_port import Store
from monkey_agent.pilot_time import PilotTime
from monkey_agent.ports import Clock
from monkey_agent.scheduling.agent_identity import AgentIdentity, ProtocolParts
from monkey_agent.store_troubles import StoreTroubles
from monkey_agent.unexpected_errors import UnexpectedErrors


@dataclass(frozen=True)
class AgentContext:
    """The services that every part of one agent uses."""

    identity: AgentIdentity
    store: Store
    keys: Keys
    #: Whose entries in sweeps' logs count.
    signers: EntrySigners
    clock: Clock
    random: random.Random
    create: Create
    heart: HeartbeatWriter
    observer: HeartbeatObserver
    claims: Claims
    errors: UnexpectedErrors
    troubles: StoreTroubles
    time: PilotTime
    #: Starts a task that ends with the agent; an exception in it ends the agent.
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


def make_context(
    identity: AgentIdentity,
    store: Store,
    signers: EntrySigners,
    clock: Clock,
    rng: random.Random,
    parts: ProtocolParts,
    errors: UnexpectedErrors,
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
) -> AgentContext:
    """Return the context of an agent whose place in the protocol is made of `parts`."""
    keys = Keys(identity.project)
    lease = identity.lease if store.layout >= LEASES else LEASE
    heart = parts.heart(store, keys.beat(identity.agent), clock, lease)
    observer = parts.observer(store, keys, clock, identity.agent, identity.predecessors, lease)
    observer.own_beat = lambda: heart.newest
    claims = parts.claims(store, parts.create, heart, observer, clock)
    troubles = StoreTroubles(clock, errors)
    heart.on_trouble = troubles.note
    return AgentContext(
        *(identity, store, keys, signers, clock, rng, parts.create, heart, observer, claims, errors, troubles),
        PilotTime(clock, identity.leave_at, identity.pilot_time),
        spawn,
    )
