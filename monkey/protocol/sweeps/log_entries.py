"""The history of a sweep: each entry of its log that counts, with the sweep as it was before and after."""

from __future__ import annotations

from typing import Any, NamedTuple

from monkey.errors import KeyMissing
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.sweeps.revision import decode_order
from monkey.protocol.sweeps.sweep_state import SweepState, judge_entry
from monkey.signing.entry_signers import EntrySigners
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store


class HistoryEntry(NamedTuple):
    """One entry; what agents conclude by themselves is in another log, and not here."""

    number: int
    #: As `decode_order` returns it.
    order: dict[str, Any]
    before: SweepState
    after: SweepState


async def read_history(store: Store, keys: Keys, signers: EntrySigners, name: str) -> list[HistoryEntry]:
    """Return the entries of a sweep's log that count for `signers`, the first one first. Raises StoreError."""
    found, state = list[HistoryEntry](), SweepState(name)
    while True:
        key = keys.sweep_log(name) + spell_number(state.head + 1)
        try:
            data = await read_entry(store, key)
        except KeyMissing:
            return found
        before, state = state, judge_entry(state, keys, store.id, signers, data)
        if state.skipped_entries.total == before.skipped_entries.total:
            found.append(HistoryEntry(state.head, decode_order(key, data), before, state))
