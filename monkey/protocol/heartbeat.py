"""Heartbeats: one overwritten object an agent. Writing them earns the right to work; reading them tells who lives.

Beats carry a number taken together with the snapshot of the claims held, so that readers can tell a late write.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from monkey.errors import CorruptObject, StoreError
from monkey.protocol import entry_shape
from monkey.protocol.clock import Clock
from monkey.protocol.journal import Journal, JournalBlock
from monkey.protocol.liveness.lease import compute_fence, read_lease
from monkey.protocol.record.shipment import Shipment, is_shipment
from monkey.spec.job.lease_length import LEASE
from monkey.store.store_port import Store

#: Seconds between heartbeats while somebody watches.
BEAT_WATCHED = 1.0


@dataclass(frozen=True)
class Heartbeat:
    """One heartbeat, as read."""

    agent: str
    seq: int
    #: (base of the log without the project's root, position of the claim).
    held: frozenset[tuple[str, int]]
    sealed: int
    block: JournalBlock
    #: Wall clock of the agent; for people.
    at: float = 0.0
    #: The agent has left on purpose; nothing more will come of it.
    left: bool = False
    vitals: dict[str, Any] = field(default_factory=dict)
    #: What running jobs wrote and no segment has yet: `sealed` and `pieces`, as a `Shipment` has them.
    ship: dict[str, Any] = field(default_factory=dict)
    #: Seconds that the agent may be silent before others take its jobs over.
    lease: float = LEASE


#: What each field of a stored heartbeat is, and of each of `vitals.running`.
_SHAPE = {
    "seq": entry_shape.is_whole,
    "held": entry_shape.is_claims,
    "sealed": entry_shape.is_whole,
    "journal": lambda value: isinstance(value, dict),
    "at": entry_shape.is_moment,
    "left": entry_shape.is_flag,
    "ship": is_shipment,
    "lease": lambda value: True,  # `read_lease` reads whatever it is
    "vitals": lambda value: (
        isinstance(value, dict)
        and entry_shape.is_text(value.get("alert", ""))
        and entry_shape.is_texts(value.get("idle", []))
        and _of_machine(value.get("system", {}))
    ),
}
RUNNING = {
    "job": entry_shape.is_text,
    "k": entry_shape.is_whole,
    "number": entry_shape.is_whole,
    "sweep": entry_shape.is_text,
    "began": entry_shape.is_moment,
    "frozen": entry_shape.is_flag,
    "metrics": entry_shape.is_object_map,
    "usage": entry_shape.is_number_map,
}


def _of_machine(told: Any) -> bool:
    """Is it what an agent tells of its machine: percents, and what is wrong with it?"""
    percents = [told.get("cpu"), told.get("memory"), *told.get("gpus", ())] if isinstance(told, dict) else [""]
    return all(one is None or entry_shape.is_finite_number(one) for one in percents) and entry_shape.is_text(
        told.get("trouble", "")
    )


def decode_beat(agent: str, key: str, data: bytes) -> Heartbeat:
    """Read a heartbeat; raises CorruptObject (an empty or cut one: power was lost while it was written)."""
    try:
        body = entry_shape.parse_object(data)
        entry_shape.check_shape(body, _SHAPE)
        for told in body["vitals"].get("running", ()):
            entry_shape.check_shape({"job": None, **told}, RUNNING)
        return Heartbeat(
            agent=agent,
            seq=body["seq"],
            held=frozenset((base, k) for base, k in body["held"]),
            sealed=body["sealed"],
            block=JournalBlock.from_json(body["journal"]),
            at=body["at"],
            left=body["left"],
            vitals=body["vitals"],
            ship=body.get("ship", {}),
            lease=read_lease(body.get("lease")),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as exc:
        raise CorruptObject(key, f"not a heartbeat ({exc!r})") from exc


def ignore_trouble(exc: StoreError) -> None:
    """Ignore it."""


class HeartbeatWriter:
    """The one writer of an agent's heartbeat, and the judge of whether its jobs may run."""

    def __init__(self, store: Store, key: str, clock: Clock, lease: float = LEASE) -> None:
        """Begin with nothing acknowledged: no job may run before the first beat was. `lease`: seconds."""
        self._store, self._key, self._clock, self.lease = store, key, clock, lease
        self.journal, self.shipment = Journal(), Shipment()
        #: Claims and permits in hand, as (base, position); changed by whoever claims.
        self.held: set[tuple[str, int]] = set()
        self.seq = 0
        #: When the last acknowledged beat started; minus infinity before the first.
        self.acknowledged = float("-inf")
        #: The number of the last acknowledged beat, and when it started.
        self.newest = 0, float("-inf")
        #: Records of the journal that the last acknowledged beat (or a segment) carried.
        self.told = 0
        #: Counts breaks in the chain of beats: what was claimed before a break must be claimed again.
        self.epoch = 0
        #: Adds to the shipment what running jobs wrote since the last beat.
        self.collect: Callable[[], None] = lambda: None
        #: What the agent says of itself, for people.
        self.vitals: Callable[[], dict[str, Any]] = dict
        #: Receives each error of the store that keeps a beat or a claim from being written; the agent shows it.
        self.on_trouble: Callable[[StoreError], None] = ignore_trouble

    @property
    def deadline(self) -> float:
        """When the right to work ends unless another beat is acknowledged (on the agent's clock)."""
        return self.acknowledged + compute_fence(self.lease)

    def may_work(self, epoch: int) -> bool:
        """May what was claimed in this epoch run now?"""
        return epoch == self.epoch and self._clock.now() < self.deadline

    async def beat(self, *, left: bool = False) -> bool:
        """Write one beat; False where the store did not acknowledge it. Never two at a time."""
        self.seq += 1
        started, seq, data, told = self._clock.now(), self.seq, self._encode(left), self.journal.total
        try:
            await self._store.put(self._key, data)
        except StoreError as exc:
            self.on_trouble(exc)
            return False
        self.told, self.newest = told, (seq, started)
        self._acknowledge(started)
        return True

    def _acknowledge(self, started: float) -> None:
        if self._clock.now() >= self.deadline:
            self.epoch += 1
        self.acknowledged = max(self.acknowledged, started)

    def _encode(self, left: bool) -> bytes:
        self.collect()
        body = {
            "seq": self.seq,
            "held": sorted(self.held),
            "sealed": self.journal.sealed,
            "journal": self.journal.open.to_json(),
            "at": self._clock.wall(),
            "left": left,
            "vitals": self.vitals(),
            **({"lease": self.lease} if self.lease != LEASE else {}),
            **({"ship": self.shipment.to_json()} if self.shipment.sealed or self.shipment.open else {}),
        }
        return json.dumps(body, separators=(",", ":")).encode()
