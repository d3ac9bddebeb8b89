"""Reading the files that an end holds."""

from __future__ import annotations

from monkey.errors import KeyMissing
from monkey.protocol.entries import Claim, EndEntry, decode_entry
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.record.end_files import EndFiles, unpack_end_files
from monkey.store.object_limits import read_entry
from monkey.store.store_port import Store


async def read_end_files(store: Store, keys: Keys, job: str, k: int) -> EndFiles:
    """Return the files in the end of the attempt that was claimed at `k`; none while it has no end. Raises StoreError.

    Its agent may have claimed the job again while it ran, so the end is not always the next entry.
    """
    while True:
        k += 1
        key = keys.job_log(job) + spell_number(k)
        try:
            entry = decode_entry(key, await read_entry(store, key))
        except KeyMissing:
            return EndFiles()
        if isinstance(entry, EndEntry):
            return unpack_end_files(entry.files or {})
        if not (isinstance(entry, Claim) and entry.continues):
            return EndFiles()
