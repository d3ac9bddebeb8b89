"""What agents conclude of a sweep: pointers to jobs' ends that end it, by `fail_fast` or `stop_when`.

The pointers have a log of their own, `stops/<sweep>/<n>`: rented machines may write there, and not to the sweep's log.
A pointer takes effect after the entry of the sweep's log that its writer had read last. So all readers come to the same
state, whenever they read, and whatever else was appended meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from monkey.errors import KeyMissing
from monkey.protocol import entry_shape
from monkey.protocol.entries import EndEntry
from monkey.protocol.entry_log import EntryLog, LogTally, tally_log
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.sweeps.sweep_state import ProvenStop, StopPointer, SweepState, cancel_state, forget_entries
from monkey.protocol.sweeps.verdicts import Verdict, judge_job
from monkey.spec.job.stop_when import find_met_rule
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store

#: Pointers without an end that a reader looks for again at each reading: only a forger leaves any.
_RECHECKED = 16
_SHAPE = {
    "at": entry_shape.is_count,
    "job": entry_shape.is_matching(r"[0-9a-f]{16}"),
    "k": entry_shape.is_count,
}


def encode_pointer(pointer: StopPointer) -> bytes:
    """Return the bytes of an entry. Writers of the same pointer write the same bytes: it needs no nonce."""
    return json.dumps(pointer._asdict(), separators=(",", ":")).encode()


def decode_pointer(data: bytes) -> StopPointer:
    """Return the pointer that these bytes are. Raises ValueError for others."""
    body = entry_shape.parse_object(data)
    entry_shape.check_shape({name: body.get(name) for name in _SHAPE}, _SHAPE)
    return StopPointer(*(body[name] for name in _SHAPE))


def tally_stop(pointer: StopPointer, log: EntryLog) -> ProvenStop:
    """Return the pointer with what the job's log amounts to up to the end that it names."""
    return ProvenStop(pointer, _tally_until(log, pointer.k))


def _tally_until(log: EntryLog, k: int) -> LogTally | None:
    """Count the log's first `k` entries; None where entry `k` ended no attempt (yet)."""
    if not 0 < k <= log.head:
        return None
    # What ends a claim whose agent vanished is the claim after it.
    last = k if isinstance(log.entries[k - 1], EndEntry) else k + 1
    if last > log.head:
        return None
    cut = EntryLog(log.base)
    cut.entries = log.entries[:last]
    return tally_log(cut)


async def read_stop(store: Store, keys: Keys, pointer: StopPointer) -> ProvenStop:
    """Return the pointer with what the job's log says of it. Raises StoreError."""
    log = EntryLog(keys.job_log(pointer.job))
    await log.refresh(store)
    return tally_stop(pointer, log)


async def read_new_stops(store: Store, keys: Keys, state: SweepState) -> SweepState:
    """Return the state after all that the sweep's log of stops says, or, to be folded again, one of head 0.

    It is the same object where there is nothing new. Raises StoreError.
    """
    stops, again = await _recheck(store, keys, state.stops)
    read, skipped = state.stops_read, state.skipped_stops
    found: list[ProvenStop] = []
    while True:
        key = keys.stop_log(state.name) + spell_number(read + 1)
        try:
            data = await read_entry(store, key)
        except KeyMissing:
            break
        read += 1
        try:
            found.append(await read_stop(store, keys, decode_pointer(data)))
        except ValueError as exc:
            skipped = skipped.add(key, f"not a readable entry of a log of stops ({exc!s:.200})")
    if read == state.stops_read and not again:
        return state
    fold_again = again or any(stop.pointer.at < state.head for stop in found)
    learned = replace(state, stops=(*stops, *found), stops_read=read, skipped_stops=skipped)
    return forget_entries(learned) if fold_again else apply_stops(learned, found)


async def _recheck(store: Store, keys: Keys, stops: tuple[ProvenStop, ...]) -> tuple[tuple[ProvenStop, ...], bool]:
    """Look for ends that were missing; return the pointers, and whether one of these ends is there now."""
    missing = [at for at, stop in enumerate(stops) if stop.tally is None][:_RECHECKED]
    found = {at: await read_stop(store, keys, stops[at].pointer) for at in missing}
    again = any(stop.tally is not None for stop in found.values())
    return tuple(found.get(at, stop) for at, stop in enumerate(stops)) if again else stops, again


def apply_stops(state: SweepState, stops: Iterable[ProvenStop]) -> SweepState:
    """Return the state after those of the stops that take effect after its last entry."""
    for stop in stops:
        if stop.pointer.at == state.head:
            state = apply_stop(state, stop)
    return state


def apply_stop(state: SweepState, stop: ProvenStop) -> SweepState:
    """Return the state after a stop: the same object where the job's end does not end the sweep."""
    (_, job, k), tally = stop
    cause = job, k
    if tally is None or state.revision is None or not state.active or cause in state.acted or not state.wants(job):
        return state
    seen = tally.stopped.get(k)
    if seen is not None and not state.waived and k > state.retries.get(job, 0):
        rule = find_met_rule(state.revision.settings.stop_when, seen)
        if rule is not None and rule.sweep:
            return cancel_state(state, f"{rule.told(seen)} (job {job})", cause, goal=True)
    if state.revision.settings.fail_fast and judge_job(job, tally, state) is Verdict.FAILED:
        last = tally.last_at
        return cancel_state(state, f"fail_fast: job {job} failed", cause, goal=False) if last == k else state
    return state
