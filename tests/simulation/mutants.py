"""The protocol without one of its rules. Mutants of safety must break an invariant, those of economy must cost."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from monkey.errors import KeyMissing, StoreError, StoreUnavailable
from monkey.protocol.claims import Claims, HeldClaim
from monkey.protocol.entries import Claim, EndEntry, TornEntry
from monkey.protocol.heartbeat import HeartbeatWriter
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.store.create import Lost, Won
from monkey.store.store_port import Store
from monkey_agent.scheduling.agent_identity import ProtocolParts
from tests.simulation.mutant import Mutant


async def naive(store: Store, key: str, data: bytes, unknown: Won | Lost, **_: Any) -> Won | Lost:
    """Believe the store's first answer."""
    try:
        if await store.create(key, data):
            return Won()
        return Lost(await store.get(key))
    except (KeyMissing, StoreUnavailable):
        return unknown


async def unknown_is_won(store: Store, key: str, data: bytes, **_: Any) -> Won | Lost:
    return await naive(store, key, data, Won())


async def unknown_is_lost(store: Store, key: str, data: bytes, **_: Any) -> Won | Lost:
    return await naive(store, key, data, Lost(b""))


class NoFence(HeartbeatWriter):
    """Works on, however long ago the last heartbeat was."""

    def may_work(self, epoch: int) -> bool:
        return self.acknowledged > float("-inf")


class NoEpoch(HeartbeatWriter):
    """Forgets that the chain of heartbeats was broken once it beats again."""

    def _acknowledge(self, started: float) -> None:
        self.acknowledged = max(self.acknowledged, started)


class NoSequence(HeartbeatObserver):
    """Takes any heartbeat that does not list a claim for proof that the claim was dropped."""

    def lost(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        beat = self.beats.get(claim.agent)
        return super().lost(claim, base, k) or (beat is not None and (base, k) not in beat.held)


class Hasty(HeartbeatObserver):
    """Takes over before the owner has had to stop."""

    def lost(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        return super().lost(claim, base, k) or self._started - self._seen[claim.agent][1] > 25


class Unconfirmed(HeartbeatObserver):
    """Takes over by what it knows, without a last look at the owner's heartbeat."""

    async def confirm(self, claim: Claim | TornEntry, base: str, k: int) -> bool:
        return self.lost(claim, base, k)


class EverybodyIsMyPredecessor(HeartbeatObserver):
    """Takes agents of other machines for earlier lives of its own."""

    def predecessor(self, agent: str) -> bool:
        return agent != self.me


class NoGapReset(HeartbeatObserver):
    """Goes by what it saw before it could not look for a while."""

    async def look(self) -> None:
        self._looked = self._clock.now()
        await super().look()


class Selfish(HeartbeatObserver):
    """Judges all others by its own lease."""

    def judge_lease(self, claim: Claim | TornEntry) -> float:
        return self.lease


class Exaggerating(HeartbeatObserver):
    """Writes a roster that has all heartbeats stand still for longer than they did."""

    def _tell_silence(self) -> dict[str, tuple[int, float]]:
        return {agent: (seq, ago + 100) for agent, (seq, ago) in super()._tell_silence().items()}


class ResumeUnasked(Claims):
    """Goes on after a gap without asking."""

    async def again(self, held: HeldClaim, sweep: str) -> HeldClaim | None:
        return HeldClaim(held.log, held.k, held.claim, self._heart.epoch)


class PermitUnasked(Claims):
    """Goes on after a gap without asking for the permit."""

    async def again(self, held: HeldClaim, sweep: str) -> HeldClaim | None:
        if "/permits/" in held.log.base:
            return HeldClaim(held.log, held.k, held.claim, self._heart.epoch)
        return await super().again(held, sweep)


class EndAnything(Claims):
    """Ends whatever the last entry is, its own claim or not."""

    async def end(self, held: HeldClaim, end: EndEntry) -> bool:
        with contextlib.suppress(StoreError):
            await held.log.refresh(self._store)
        self.drop(held)
        return await self._insist(held.log, held.log.head + 1, end)


class NoEvidence(Claims):
    """Ends what met a condition without a word of which."""

    async def end(self, held: HeldClaim, end: EndEntry) -> bool:
        return await super().end(held, replace(end, met={}))


SAFETY = {
    "unknown_is_won": Mutant(ProtocolParts(create=unknown_is_won)),
    "no_fence": Mutant(ProtocolParts(heart=NoFence), unsupervised=True),
    "no_supervisor": Mutant(unsupervised=True),
    "no_guard": Mutant(unguarded=True),
    "no_epoch": Mutant(ProtocolParts(heart=NoEpoch)),
    "no_sequence": Mutant(ProtocolParts(observer=NoSequence)),
    "hasty": Mutant(ProtocolParts(observer=Hasty)),
    "unconfirmed": Mutant(ProtocolParts(observer=Unconfirmed)),
    "everybody_is_my_predecessor": Mutant(ProtocolParts(observer=EverybodyIsMyPredecessor)),
    "selfish": Mutant(ProtocolParts(observer=Selfish)),
    "exaggerating": Mutant(ProtocolParts(observer=Exaggerating)),
    "resume_unasked": Mutant(ProtocolParts(claims=ResumeUnasked)),
    "permit_unasked": Mutant(ProtocolParts(claims=PermitUnasked)),
    "end_anything": Mutant(ProtocolParts(claims=EndAnything)),
    "end_overwrites": Mutant(end_overwrites=True),
    "no_evidence": Mutant(ProtocolParts(claims=NoEvidence)),
    "deaf": Mutant(deaf=True),
    "timeless": Mutant(timeless=True),
    # Their violation is a run that never ends: without them, the longest of 60 seeds lasts 2,376 s.
    "bygone": Mutant(bygone=True, patience=5_000),
    "credulous": Mutant(credulous=True, patience=5_000),
    "obedient": Mutant(obedient=True),
    "endless": Mutant(endless=True, patience=10_000),
    "blind": Mutant(blind=True),
    "untimely": Mutant(untimely=True),
}
#: Seeds that caught one when all were tried: they are tried first, since the protocol rarely changes.
CAUGHT = {
    "selfish": 49,
    "exaggerating": 27,
    "no_fence": 446,
    "no_supervisor": 446,
    "no_guard": 29,
    "no_epoch": 513,
    "no_sequence": 2,
    "hasty": 19,
    "unconfirmed": 107,
    "everybody_is_my_predecessor": 1,
    "resume_unasked": 90,
    "permit_unasked": 127,
    "end_anything": 26,
    "deaf": 12,
    "timeless": 147,
    "bygone": 30,
    "credulous": 35,
    "obedient": 0,
    "endless": 2,
    "blind": 17,
    "untimely": 7,
    "unknown_is_won": 1,
    "no_evidence": 1,
    "end_overwrites": 25,
    "no_gap_reset": 26,
}

ECONOMY = {
    "forgetful": Mutant(forgetful=True),
    "unknown_is_lost": Mutant(ProtocolParts(create=unknown_is_lost)),
    "no_gap_reset": Mutant(ProtocolParts(observer=NoGapReset)),
}
