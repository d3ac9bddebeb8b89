"""Leases: what an owner tells of its own, what others make of it, and what nobody can make them believe."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from monkey.protocol.entries import Claim, TornEntry, decode_entry
from monkey.protocol.heartbeat import HeartbeatWriter, decode_beat
from monkey.protocol.layout import Keys
from monkey.protocol.liveness.lease import compute_beat_pause, compute_fence, compute_gap, compute_round, read_lease
from monkey.protocol.liveness.observer import HeartbeatObserver
from monkey.spec.job.lease_length import LEASE, LONGEST_LEASE
from monkey.store.memory import MemoryStore
from tests.unit.protocol.liveness.test_observer import Clock

KEYS = Keys("p")
OWNER, BASE, LONG = "f/other/b", KEYS.job_log("0" * 16), 300.0


def test_lease_that_nobody_set_keeps_todays_promises() -> None:
    assert [compute_beat_pause(LEASE), compute_beat_pause(LEASE, crowded=True)] == [15, 30]
    assert [compute_fence(LEASE), compute_gap(LEASE), compute_round(LEASE)] == [60, 45, 37.5]


@pytest.mark.parametrize("lease", [LEASE, LONG, LONGEST_LEASE])
def test_owner_is_frozen_before_others_take_over_and_may_lose_a_heartbeat(lease: float) -> None:
    assert 2 * compute_beat_pause(lease, crowded=True) <= compute_fence(lease) < lease


@pytest.mark.parametrize(
    ("told", "lease"),
    [(300, 300), (90.0, LEASE), (601, LONGEST_LEASE), (10**400, LEASE), (1e300, LONGEST_LEASE), (0, LEASE), (-5, LEASE)]
    + [(each, LEASE) for each in (None, True, "300", [300], {}, float("nan"), float("inf"))],
)
def test_stored_lease_is_believed_within_bounds_alone(told: Any, lease: float) -> None:
    assert read_lease(told) == lease
    claim = json.loads(Claim(OWNER, 1, 1, "s").encode()) | {"lease": told}
    read = decode_entry("k", json.dumps(claim).encode())
    assert isinstance(read, Claim) and read.lease == lease


def test_claim_and_heartbeat_tell_a_lease_that_was_set_and_none_that_was_not() -> None:
    assert b"lease" not in Claim(OWNER, 1, 1, "s").encode()
    assert decode_entry("k", Claim(OWNER, 1, 1, "s", lease=LONG).encode()) == Claim(OWNER, 1, 1, "s", lease=LONG)

    async def beat(lease: float) -> bytes:
        store = MemoryStore()
        await HeartbeatWriter(store, "b", Clock(), lease).beat()
        return await store.get("b")

    assert b"lease" not in asyncio.run(beat(LEASE))
    assert decode_beat(OWNER, "b", asyncio.run(beat(LONG))).lease == LONG


def test_jobs_may_run_until_shortly_before_the_end_of_their_own_agents_lease() -> None:
    async def work() -> None:
        clock = Clock()
        heart = HeartbeatWriter(MemoryStore(), "b", clock, LONG)
        assert await heart.beat()
        clock.at = compute_fence(LONG) - 0.1
        assert heart.may_work(heart.epoch)
        clock.at = compute_fence(LONG)
        assert not heart.may_work(heart.epoch)

    asyncio.run(work())


async def measure_patience(claimed: float, beaten: float | None, *, mine: float = LEASE, torn: bool = False) -> float:
    """Return the seconds until an observer with the lease `mine` takes a silent owner's claim over."""
    store, clock = MemoryStore(), Clock()
    if beaten is not None:
        heart = HeartbeatWriter(store, KEYS.beat(OWNER), clock, beaten)
        heart.held.add((BASE, 1))
        await heart.beat()
    observer = HeartbeatObserver(store, KEYS, clock, "f/me/b", lease=mine)
    claim = TornEntry("k") if torn else Claim(OWNER, 1, 1, "s", lease=claimed)
    await observer.look()
    while not (observer.lost(claim, BASE, 1) and await observer.confirm(claim, BASE, 1)):
        assert observer.due >= clock.at
        clock.at += 10
        await observer.look()
    return clock.at


@pytest.mark.parametrize(
    ("claimed", "beaten", "mine", "torn", "lease"),
    [
        (LEASE, LEASE, LEASE, False, LEASE),
        (LONG, LONG, LEASE, False, LONG),
        (LONG, LEASE, LEASE, False, LONG),
        (LEASE, LONG, LEASE, False, LONG),
        (LONG, None, LEASE, False, LONG),
        (LEASE, LEASE, LONG, False, LEASE),
        (LEASE, LONG, LEASE, True, LEASE),
    ],
)
def test_owner_is_judged_by_the_longer_of_what_its_claim_and_its_heartbeat_tell_and_never_by_the_observers_own(
    claimed: float, beaten: float | None, mine: float, torn: bool, lease: float
) -> None:
    assert lease < asyncio.run(measure_patience(claimed, beaten, mine=mine, torn=torn)) <= lease + 10


def test_observer_that_did_not_look_for_long_forgets_whom_it_might_have_missed_and_no_others() -> None:
    async def look() -> list[bool]:
        store, clock = MemoryStore(), Clock()
        for agent, lease in (("f/short/b", LEASE), ("f/long/b", LONG)):
            await HeartbeatWriter(store, KEYS.beat(agent), clock, lease).beat()
        observer = HeartbeatObserver(store, KEYS, clock, "f/me/b", lease=LONG)
        for _ in range(4):
            await observer.look()
            clock.at += 100
        await observer.look()
        claims = (Claim(agent, 1, 9, "s", lease=lease) for agent, lease in (("f/short/b", LEASE), ("f/long/b", LONG)))
        return [observer.lost(claim, BASE, 1) for claim in claims]

    assert asyncio.run(look()) == [False, True]
