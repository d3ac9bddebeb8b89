"""The log of adopted results: appended by `apply`, read by plans, written to by anybody."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from monkey.protocol.adoption_log import AdoptionEntry, AdoptionLog, decode_adoption, record_adoptions
from monkey.protocol.layout import Keys
from monkey.store.memory import MemoryStore

KEYS = Keys("p")
A, B, C, D = (letter * 16 for letter in "abcd")
CODES = ("1" * 64, "2" * 64)
ENTRY = AdoptionEntry({A: B}, "because", "digits", "ada@box", "2026-11-01T00:00:00+00:00", CODES)


async def read(store: MemoryStore) -> AdoptionLog:
    log = AdoptionLog(store, KEYS)
    await log.refresh()
    return log


def test_an_entry_is_read_as_it_was_written() -> None:
    assert decode_adoption(ENTRY.encode()) == ENTRY
    assert decode_adoption(AdoptionEntry({}).encode()) == AdoptionEntry({})
    assert ENTRY.encode() != ENTRY.encode(), "two writers of one number can be told apart"


def test_keys_are_those_of_the_project() -> None:
    assert KEYS.adoptions == "projects/p/adoptions/"


def test_the_newest_entry_of_a_job_counts_and_is_read_once() -> None:
    async def main() -> None:
        store = MemoryStore()
        log = await read(store)
        assert (log.head, log.results, log.codes) == (0, {}, set())
        await log.append(ENTRY)
        await (await read(store)).append(AdoptionEntry({A: C, B: D}))
        await log.refresh()
        assert log.head == 2 and log.results == {A: C, B: D} and log.codes == {CODES}

    asyncio.run(main())


def test_of_two_appends_at_once_both_are_there() -> None:
    async def main() -> None:
        store = MemoryStore()
        one, other = await read(store), await read(store)
        await one.append(AdoptionEntry({A: B}))
        await other.append(AdoptionEntry({C: D}))
        assert other.results == {A: B, C: D} == (await read(store)).results

    asyncio.run(main())


def test_only_what_is_new_is_recorded() -> None:
    async def main() -> None:
        store = MemoryStore()
        await record_adoptions(store, KEYS, [ENTRY, AdoptionEntry({})])
        await record_adoptions(store, KEYS, [ENTRY, AdoptionEntry({A: B, C: D}, "again")])
        items = await store.list(KEYS.adoptions)
        assert [item.key[-8:] for item in items] == ["00000001", "00000002"]
        assert decode_adoption(await store.get(items[1].key)) == AdoptionEntry({C: D}, "again")

    asyncio.run(main())


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(ENTRY.encode()), **fields}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        changed(kind="other"),
        changed(kind=None),
        changed(extra=1),
        changed(jobs=A + A),
        changed(jobs=A[1:]),
        changed(jobs=A.upper()),
        changed(jobs="../" + A[3:]),
        changed(jobs=3),
        changed(results=[B]),
        changed(why=["x"]),
        changed(at=float("nan")),
        changed(codes=["1" * 64]),
        changed(codes=["1" * 64, "x" * 64]),
        changed(codes="12"),
        json.dumps({"kind": "adopt"}).encode(),
    ],
)
def test_what_is_no_entry_is_reported_and_what_follows_counts(data: bytes) -> None:
    async def main() -> None:
        store = MemoryStore()
        await store.create(f"{KEYS.adoptions}00000001", data)
        log = await read(store)
        await log.append(ENTRY)
        assert log.head == 2 and log.results == {A: B}
        assert [problem.partition(":")[0] for problem in log.skipped.lines] == ["projects/p/adoptions/00000001"]

    asyncio.run(main())


def test_what_lies_beside_the_log_is_none_of_it() -> None:
    async def main() -> None:
        store = MemoryStore()
        for name in ("00000003", "99999999", "x", "00000001.tmp", f"{A}/00000001"):
            await store.create(f"{KEYS.adoptions}{name}", ENTRY.encode())
        assert (await read(store)).head == 0

    asyncio.run(main())
