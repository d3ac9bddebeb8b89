"""The log of stops: what agents conclude of a sweep is checked by each reader, and all readers agree."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.sweeps.stop_log import decode_pointer, encode_pointer
from monkey.protocol.sweeps.sweep_log import append_order, append_revision, append_stop, read_sweep
from monkey.protocol.sweeps.sweep_state import StopPointer, SweepState
from monkey.spec.job.recipe import SweepSettings
from monkey.spec.job.stop_when import StopRule
from monkey.store.create import Lost, Won, create_object
from monkey.store.memory import MemoryStore
from monkey.store.store_port import Store
from tests.signing import SIGNERS
from tests.unit.protocol.sweeps.test_sweep_log import REVISION

KEYS, NAME = Keys("p"), REVISION.sweep
JOBS = REVISION.table.ids
GOAL = StopRule("acc", above=0.9, sweep=True)
SETTINGS = SweepSettings(max_retries=0, fail_fast=True, stop_when=[GOAL])
FAST = replace(REVISION, settings=SETTINGS, adopted={})
#: How many random stories are told.
STORIES = 15


async def end_attempt(store: MemoryStore, job: str, outcome: ClaimEnd, acc: float | None = None) -> int:
    """Append an attempt at the job to its log; return the position of its end."""
    base = KEYS.job_log(job)
    k = len(await store.list(base)) + 1
    claim = Claim("f/m/0", k, 1, NAME)
    met = {} if acc is None else {"metric": "acc", "value": acc}
    assert await store.create(base + spell_number(k), claim.encode())
    assert await store.create(base + spell_number(k + 1), EndEntry(outcome, claim.agent, k, met=met).encode())
    return k + 1


async def point(store: MemoryStore, at: int, job: str, k: int) -> None:
    """Append a pointer, as anybody can who may write to the store."""
    n = len(await store.list(KEYS.stop_log(NAME))) + 1
    await store.put(KEYS.stop_log(NAME) + spell_number(n), encode_pointer(StopPointer(at, job, k)))


def test_a_failure_ends_its_sweep_once() -> None:
    async def fail_fast() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, FAST, 0)
        k = await end_attempt(store, JOBS[1], ClaimEnd.FAILED)
        for _ in range(2):  # two agents notice it
            state = await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[1], k))
            assert (state.head, state.cancelled) == (1, f"fail_fast: job {JOBS[1]} failed")
        assert len(await store.list(KEYS.stops)) == 1
        assert (await read_sweep(store, KEYS, SIGNERS, NAME)).cause == (JOBS[1], k)
        await append_order(store, KEYS, SIGNERS, NAME, "resume")
        state = await append_stop(store, KEYS, SIGNERS, state, (JOBS[1], k))
        assert (state.head, state.cancelled, state.cause) == (2, None, None), "it is acted on once"

    asyncio.run(fail_fast())


def test_two_agents_that_conclude_at_once_end_it_once() -> None:
    async def race() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, FAST, 0)
        first = await end_attempt(store, JOBS[1], ClaimEnd.FAILED)
        second = await end_attempt(store, JOBS[0], ClaimEnd.FAILED)

        async def come_second(store: Store, key: str, data: bytes) -> Won | Lost:
            await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[1], first))
            return await create_object(store, key, data)

        state = await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[0], second), create=come_second)
        assert state.cause == (JOBS[1], first), "the one that was first"
        assert len(await store.list(KEYS.stops)) == 1

    asyncio.run(race())


def test_a_goal_that_was_met_by_a_job_that_succeeded_ends_its_sweep() -> None:
    async def goal() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, FAST, 0)
        k = await end_attempt(store, JOBS[0], ClaimEnd.SUCCEEDED, acc=0.95)
        state = await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[0], k))
        assert state.goal and state.cancelled == f"acc is 0.95, above 0.9 (job {JOBS[0]})", state.cancelled
        await append_order(store, KEYS, SIGNERS, NAME, "resume")
        again = await end_attempt(store, JOBS[1], ClaimEnd.STOPPED, acc=0.95)
        state = await append_stop(store, KEYS, SIGNERS, state, (JOBS[1], again))
        assert state.active and state.waived, "whoever opened it again wants it to continue"

    asyncio.run(goal())


def test_a_job_that_vanished_with_its_agents_too_often_ends_its_sweep() -> None:
    async def vanish() -> None:
        store, base = MemoryStore(), KEYS.job_log(JOBS[0])
        await append_revision(store, KEYS, SIGNERS, FAST, 0)
        for k in range(1, 13):
            await store.put(base + spell_number(k), Claim(f"f/m/{k}", k, 1, NAME).encode())
        state = await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[0], 12))
        assert state.active, "whether the last of them vanished is not known yet"
        assert (await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[0], 11))).cancelled

    asyncio.run(vanish())


LIES = {
    "an end that is not there": (1, JOBS[0], 9),
    "a claim": (1, JOBS[0], 1),
    "a success": (1, JOBS[0], 2),
    "a failure that is not the last": (1, JOBS[1], 2),
    "a job of another sweep": (1, "f" * 16, 2),
    "before there was a revision": (0, JOBS[1], 4),
    "an entry that nobody wrote yet": (9, JOBS[1], 4),
    "position 0": (1, JOBS[1], 0),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_pointer_that_the_job_does_not_bear_out_changes_nothing(lie: str) -> None:
    async def forged() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, replace(FAST, settings=replace(SETTINGS, max_retries=1)), 0)
        assert await end_attempt(store, JOBS[0], ClaimEnd.SUCCEEDED) == 2
        for _ in range(2):
            await end_attempt(store, JOBS[1], ClaimEnd.FAILED)
        await end_attempt(store, "f" * 16, ClaimEnd.FAILED)
        await point(store, *LIES[lie])
        state = await read_sweep(store, KEYS, SIGNERS, NAME)
        assert state.active and not state.acted and not state.skipped.total
        await point(store, 1, JOBS[1], 4)
        assert (await read_sweep(store, KEYS, SIGNERS, NAME, state)).cause == (JOBS[1], 4), "the truth beside it counts"

    asyncio.run(forged())


@pytest.mark.parametrize("settings", [SweepSettings(max_retries=0), replace(SETTINGS, fail_fast=False)])
def test_a_failure_ends_no_sweep_without_fail_fast(settings: SweepSettings) -> None:
    async def patient() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, replace(FAST, settings=settings), 0)
        k = await end_attempt(store, JOBS[0], ClaimEnd.FAILED)
        await point(store, 1, JOBS[0], k)
        assert (await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[0], k))).active

    asyncio.run(patient())


JUNK = [b"", b"[]", b"{}", b'{"at":1}', b'{"at":"1","job":"x","k":1}', b'{"at":1,"job":"../../x","k":1}', b"[" * 99_999]


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_pointer_keeps_its_number_and_is_named(junk: bytes) -> None:
    with pytest.raises(ValueError):
        decode_pointer(junk)

    async def skipped() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, FAST, 0)
        await store.put(KEYS.stop_log(NAME) + spell_number(1), junk)
        k = await end_attempt(store, JOBS[0], ClaimEnd.FAILED)
        state = await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (JOBS[0], k))
        assert state.cancelled and state.stops_read == 2
        assert [line.partition(":")[0] for line in state.skipped.lines] == [KEYS.stop_log(NAME) + spell_number(1)]

    asyncio.run(skipped())


async def tell_story(store: MemoryStore, rng: random.Random) -> None:
    """Do one thing of those that people, agents and forgers do."""
    state = await read_sweep(store, KEYS, SIGNERS, NAME)
    job, kind = rng.choice(JOBS), rng.randrange(6)
    if kind == 0:
        settings = replace(SETTINGS, fail_fast=rng.random() < 0.5, stop_when=rng.choice([[GOAL], []]))
        await append_revision(store, KEYS, SIGNERS, replace(FAST, settings=settings), state.head)
    elif kind == 1:
        heads = {job: len(await store.list(KEYS.job_log(job)))}
        order = rng.choice(["pause", "resume", "cancel", "retry"])
        await append_order(store, KEYS, SIGNERS, NAME, order, jobs=heads if order == "retry" else None)
    elif kind == 2:
        outcome = rng.choice([ClaimEnd.FAILED, ClaimEnd.STOPPED, ClaimEnd.RELEASED])
        k = await end_attempt(store, job, outcome, rng.choice([None, 0.5, 0.95]))
        if rng.random() < 0.7:
            await append_stop(store, KEYS, SIGNERS, SweepState(NAME), (job, k))
    else:
        await point(store, max(0, state.head - rng.choice([0, 0, 0, 1, 2, -1])), job, rng.randint(1, 12))


def test_readers_agree_whenever_they_read() -> None:
    """One reads after each step, one now and then, and one at the end alone."""

    async def read(seed: int) -> int:
        rng, store = random.Random(seed), MemoryStore()
        await append_revision(store, KEYS, SIGNERS, FAST, 0)
        steady = seldom = SweepState(NAME)
        stopped = 0
        for _ in range(rng.randint(5, 40)):
            await tell_story(store, rng)
            steady = await read_sweep(store, KEYS, SIGNERS, NAME, steady)
            stopped += steady.cause is not None
            if rng.random() < 0.2:
                seldom = await read_sweep(store, KEYS, SIGNERS, NAME, seldom)
        states = [
            steady,
            await read_sweep(store, KEYS, SIGNERS, NAME, seldom),
            await read_sweep(store, KEYS, SIGNERS, NAME),
        ]
        bare = [replace(state, stops=()) for state in states]
        assert bare[0] == bare[1] == bare[2], f"seed {seed}"
        return stopped

    assert sum(asyncio.run(read(seed)) for seed in range(STORIES)) > STORIES / 2, "hardly any sweep was ended"
