"""A sweep's log: it is read, and revisions, orders and what agents conclude are appended."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any

from monkey.errors import ConcurrentApply, KeyMissing
from monkey.plan.commits.seen_commit import SeenCommit
from monkey.protocol.entry_log import Create
from monkey.protocol.layout import Keys, is_name, spell_number
from monkey.protocol.sweeps.revision import NumberedRevision, Revision
from monkey.protocol.sweeps.stop_log import apply_stop, apply_stops, encode_pointer, read_new_stops, read_stop
from monkey.protocol.sweeps.sweep_state import (
    StopPointer,
    SweepState,
    forget_entries,
    judge_entry,
    locate_next,
    make_missing_sweep,
)
from monkey.protocol.wakeup import wake_agents
from monkey.signing.entry_signers import EntrySigners
from monkey.signing.signed_entry import EntryPlace, hash_entries
from monkey.store.create import Lost, create_object
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store


async def list_sweeps(store: Store, keys: Keys) -> list[str]:
    """Return the names of all sweeps that were ever applied, sorted; what no spec can be named is no sweep's."""
    items = await store.list(keys.sweeps)
    return sorted(filter(is_name, {item.key.removeprefix(keys.sweeps).partition("/")[0] for item in items}))


async def read_sweep(
    store: Store, keys: Keys, signers: EntrySigners, name: str, known: SweepState | None = None
) -> SweepState:
    """Read what the sweep's logs say, starting from what is known. A sweep never applied has head 0.

    `signers`: whose entries count. Raises StoreError.
    """
    state = known or SweepState(name)
    while True:
        state = await _read_entries(store, keys, signers, state)
        learned = await read_new_stops(store, keys, state) if state.can_end_itself else state
        if learned is state:
            return state
        state = learned


async def _read_entries(store: Store, keys: Keys, signers: EntrySigners, start: SweepState) -> SweepState:
    """Return the state after all entries that follow; the whole log is read again where one of them is skipped.

    It may be that entries that were read before were removed, and others written: then it follows these.
    """
    state = start
    async for after in _walk_log(store, keys, signers, start):
        if start.head and after.skipped_entries.total > start.skipped_entries.total:
            return await _read_entries(store, keys, signers, forget_entries(start))
        state = after
    return state


async def list_revisions(store: Store, keys: Keys, signers: EntrySigners, name: str) -> list[NumberedRevision]:
    """Return all revisions of a sweep that count for `signers`, the first one first. Raises StoreError."""
    found = []
    async for state in _walk_log(store, keys, signers, SweepState(name)):
        if state.revision is not None and state.revision_at == state.head:
            found.append(NumberedRevision(state.head, state.revision, state.signer))
    return found


async def _walk_log(store: Store, keys: Keys, signers: EntrySigners, state: SweepState) -> AsyncIterator[SweepState]:
    """Yield the state after each entry that follows, and the stops that take effect there."""
    while True:
        try:
            data = await read_entry(store, keys.sweep_log(state.name) + spell_number(state.head + 1))
        except KeyMissing:
            return
        state = judge_entry(state, keys, store.id, signers, data)
        state = apply_stops(state, state.stops)
        yield state


async def append_revision(
    store: Store, keys: Keys, signers: EntrySigners, revision: Revision, after: int, create: Create = create_object
) -> int:
    """Append the revision as entry `after` + 1, signed and durably, and return that number.

    Raises ConcurrentApply where another entry is there already, SigningError, StoreError.
    """
    body = {"kind": "revision", "nonce": secrets.token_hex(8), **revision.to_json()}
    base = keys.sweep_log(revision.sweep)
    before = ""
    for data in await asyncio.gather(*(read_entry(store, base + spell_number(n)) for n in range(1, after + 1))):
        before = hash_entries(before, data)
    place = EntryPlace(store.id, keys.project, revision.sweep, after + 1, before)
    answer = await create(store, base + spell_number(place.number), signers.sign(place, _dump(body)))
    if isinstance(answer, Lost):
        raise _make_concurrent_apply(revision.sweep)
    return after + 1


async def append_seen(store: Store, keys: Keys, signers: EntrySigners, state: SweepState, seen: SeenCommit) -> bool:
    """Append that a commit wants just what the sweep has, after what is known; return whether that was the end.

    No agent is woken: nothing changes. Raises SigningError, StoreError.
    """
    body: dict[str, Any] = {"kind": "seen", "nonce": secrets.token_hex(8), "git": dict(seen.git)}
    body |= {"author": seen.author, "at": seen.at} | ({"spec": seen.spec_text} if seen.spec_text else {})
    entry = signers.sign(locate_next(state, keys, store.id), _dump(body))
    return not isinstance(
        await create_object(store, keys.sweep_log(state.name) + spell_number(state.head + 1), entry), Lost
    )


def _check_revision(state: SweepState, revision: int | None) -> None:
    """Raise ConcurrentApply where the newest revision is not the one of that number."""
    if revision is not None and state.revision_at != revision:
        raise _make_concurrent_apply(state.name)


def _make_concurrent_apply(sweep: str) -> ConcurrentApply:
    return ConcurrentApply(
        f"sweep {sweep!r} was changed by somebody else while this plan was being applied",
        hint="look at what changed with `monkey plan`, then apply again",
    )


async def append_order(
    store: Store,
    keys: Keys,
    signers: EntrySigners,
    name: str,
    kind: str,
    *,
    reason: str = "",
    jobs: dict[str, int] | None = None,
    until: float | None = None,
    revision: int | None = None,
    stamp: Mapping[str, str] | None = None,
) -> int:
    """Append pause, resume, cancel, retry or extend after whatever is there; returns its number.

    Raises NotFound, SigningError, StoreError; ConcurrentApply where the newest revision is not the one of that number.

    `until`: when it is to expire, seconds since the epoch. `stamp`: {"author", "at"}, for people.
    """
    body: dict[str, Any] = {"kind": kind, "nonce": secrets.token_hex(8), **(stamp or {})}
    body |= {"reason": reason} if reason else {}
    body |= {"jobs": jobs} if jobs else {}
    body |= {} if until is None else {"until": until}
    state = None
    while True:
        state = await read_sweep(store, keys, signers, name, state)
        if state.revision is None:
            raise make_missing_sweep(state)
        _check_revision(state, revision)
        entry = signers.sign(locate_next(state, keys, store.id), _dump(body))
        answer = await create_object(store, keys.sweep_log(name) + spell_number(state.head + 1), entry)
        if not isinstance(answer, Lost):
            await wake_agents(store, keys)
            return state.head + 1


async def append_stop(
    store: Store,
    keys: Keys,
    signers: EntrySigners,
    state: SweepState,
    cause: tuple[str, int],
    create: Create = create_object,
) -> SweepState:
    """Append a pointer to the end (job, position) that ends the sweep, as known in `state`, and return its state then.

    Nothing is appended where that end does not end the sweep, or has done so. Raises StoreError.
    """
    while True:
        state = await read_sweep(store, keys, signers, state.name, state)
        pointer = StopPointer(state.head, *cause)
        if apply_stop(state, await read_stop(store, keys, pointer)) is state:
            return state
        key = keys.stop_log(state.name) + spell_number(state.stops_read + 1)
        if not isinstance(await create(store, key, encode_pointer(pointer)), Lost):
            await wake_agents(store, keys)


def _dump(body: dict[str, Any]) -> bytes:
    # As in entries.py: a reason may come from a command line that is no UTF-8.
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")
