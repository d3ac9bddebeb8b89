"""The resolved create under the fault table: exactly one winner, and never a false verdict."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable

import pytest

from monkey.errors import CreateUnresolved, KeyMissing, StoreMissing, StoreRefused, StoreUnavailable
from monkey.store.create import Lost, Won, create_object
from monkey.store.store_port import Store
from tests.conformance.faulty import Fault, FaultyStore
from tests.loops import Run

Clients = Callable[[], Store]
Create = Callable[[Store, str, bytes], Awaitable[Won | Lost]]

#: Faults of one client's first creates; after them all is well.
SCRIPTS = [s for n in (0, 1, 2) for s in itertools.product(list(Fault)[1:], repeat=n)]


async def no_wait(seconds: float) -> None:
    """Let others run instead of sleeping."""
    await asyncio.sleep(0)


def script(faults: Iterable[Fault]) -> Callable[[], Fault]:
    """Return what hands out `faults`, then none."""
    waiting = iter(faults)
    return lambda: next(waiting, Fault.NONE)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("get_fails", [False, True])
def test_one_client_is_never_told_wrong(store: Store, run: Run, durable: bool, get_fails: bool) -> None:
    for n, faults in enumerate(SCRIPTS):
        key, gets = f"alone/{n}", iter([get_fails])
        faulty = FaultyStore(store, script(faults), lambda gets=gets: next(gets, False))
        outcome = run(create_object(faulty, key, b"mine", durable=durable, sleep=no_wait, tries=4))
        assert outcome == Won(), faults
        run(faulty.commit_late())
        assert run(store.get(key)) == b"mine", faults


@pytest.mark.parametrize("durable", [True, False])
def test_against_a_rival_one_wins(store: Store, clients: Clients, run: Run, durable: bool, backend: str) -> None:
    rival_client = clients()

    async def story(key: str, faults: tuple[Fault, ...], rival_faults: tuple[Fault, ...]) -> None:
        ours, theirs = FaultyStore(store, script(faults)), FaultyStore(rival_client, script(rival_faults))
        outcomes = await asyncio.gather(
            *(
                create_object(side, key, data, durable=durable, sleep=no_wait)
                for side, data in ((ours, b"ours"), (theirs, b"theirs"))
            )
        )
        await ours.commit_late()
        await theirs.commit_late()
        found = await store.get(key)
        expected = [Won() if found == data else Lost(found) for data in (b"ours", b"theirs")]
        assert outcomes == expected, (faults, rival_faults)

    # Servers of others answer slowly, and a part of the pairs shows whether they keep what our own bucket keeps.
    pairs = list(itertools.product(SCRIPTS[:8], SCRIPTS))[:: 3 if backend in ("az", "s3-moto") else 1]

    async def stories() -> None:
        await asyncio.gather(*(story(f"rivals/{n}", *pair) for n, pair in enumerate(pairs)))

    run(stories())


def test_a_late_commit_of_ours_is_ours(store: Store, run: Run) -> None:
    """The entry arrives after it was read back as missing, and before the second try."""
    faulty = FaultyStore(store, script([Fault.LATE]))

    async def arrive(seconds: float) -> None:
        await faulty.commit_late()

    assert run(create_object(faulty, "k", b"mine", sleep=arrive)) == Won()
    assert run(store.get("k")) == b"mine"


def test_what_cannot_be_found_out_is_said_so(store: Store, run: Run) -> None:
    deaf = FaultyStore(store, lambda: Fault.LOST_ANSWER, lambda: True)
    with pytest.raises(CreateUnresolved, match="not known"):
        run(create_object(deaf, "k", b"mine", sleep=no_wait))
    assert run(store.get("k")) == b"mine"


def test_ours_but_perhaps_not_durable_is_confirmed(store: Store, run: Run) -> None:
    """Read back as ours after an error, an entry may still be lost with the power: only an answer promises."""
    faults = iter([Fault.LOST_ANSWER, Fault.LOST_ANSWER, Fault.NONE])
    assert run(create_object(FaultyStore(store, lambda: next(faults)), "k", b"mine", sleep=no_wait)) == Won()
    assert next(faults, None) is None
    with pytest.raises(CreateUnresolved):
        run(create_object(FaultyStore(store, lambda: Fault.LOST_ANSWER), "l", b"mine", sleep=no_wait))
    loose = FaultyStore(store, lambda: Fault.LOST_ANSWER)
    assert run(create_object(loose, "m", b"mine", durable=False, sleep=no_wait)) == Won()


class Refusing(FaultyStore):
    """Raises `error` at creates, from the one with this number on."""

    def __init__(self, inner: Store, error: Exception, after: int) -> None:
        super().__init__(inner, lambda: Fault.LOST_ANSWER, lambda: True)
        self.error, self.left = error, after

    async def create(self, key: str, data: bytes, *, durable: bool = True) -> bool:
        self.left -= 1
        if self.left < 0:
            raise self.error
        return await super().create(key, data, durable=durable)


@pytest.mark.parametrize("error", [StoreRefused("full"), StoreMissing("gone")])
def test_a_refusal_is_certain_only_at_first(store: Store, run: Run, error: Exception) -> None:
    with pytest.raises(type(error)):
        run(create_object(Refusing(store, error, after=0), "k", b"mine", sleep=no_wait))
    with pytest.raises(CreateUnresolved, match="not known"):
        run(create_object(Refusing(store, error, after=1), "k", b"mine", sleep=no_wait))


async def naive(store: Store, key: str, data: bytes) -> Won | Lost:
    """Create as it is often written; the storm below must notice."""
    try:
        return Won() if await store.create(key, data) else Lost(b"")
    except StoreUnavailable:
        return Lost(b"")


async def resolved(store: Store, key: str, data: bytes) -> Won | Lost:
    """Create as callers are to: again, with the same data, while it is not known."""
    for _ in range(20):
        try:
            return await create_object(store, key, data, sleep=no_wait)
        except CreateUnresolved:
            continue
    raise AssertionError("never resolved")


async def storm(sides: list[FaultyStore], how: Create, keys: int) -> int:
    """Let all sides want all keys; returns how many have not exactly one winner, or one with another's bytes."""

    async def writer(n: int) -> list[bool]:
        return [isinstance(await how(sides[n], f"storm/{k}", f"{n}".encode()), Won) for k in range(keys)]

    won = await asyncio.gather(*(writer(n) for n in range(len(sides))))
    for side in sides:
        await side.commit_late()
    wrong = 0
    for k in range(keys):
        winners = [f"{n}".encode() for n, mine in enumerate(won) if mine[k]]
        try:
            wrong += winners != [await sides[0].inner.get(f"storm/{k}")]
        except KeyMissing:
            wrong += 1  # not one of them wrote it, and each went on
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(("how", "holds"), [(resolved, True), (naive, False)])
def test_a_storm_of_faults(store: Store, clients: Clients, run: Run, how: Create, holds: bool) -> None:
    chance = random.Random(3)

    def fault() -> Fault:
        return chance.choice(list(Fault)[1:]) if chance.random() < 0.3 else Fault.NONE

    sides = [
        FaultyStore(client, fault, lambda: chance.random() < 0.1) for client in (store, clients(), clients(), clients())
    ]
    wrong = run(storm(sides, how, keys=100))
    assert (wrong == 0) is holds
