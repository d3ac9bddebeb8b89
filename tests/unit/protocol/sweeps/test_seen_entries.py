"""Entries that say which commit a sweep stands for, and change nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from monkey.plan.commits.seen_commit import SeenCommit
from monkey.protocol.sweeps.sweep_log import append_order, append_revision, append_seen, read_sweep
from monkey.store.memory import MemoryStore
from tests.signing import SIGNERS
from tests.unit.protocol.sweeps.test_sweep_log import KEYS, REVISION


def test_a_commit_that_is_seen_changes_nothing_and_opens_nothing() -> None:
    async def main() -> None:
        store = MemoryStore()
        await append_revision(store, KEYS, SIGNERS, REVISION, 0)
        await append_order(store, KEYS, SIGNERS, "digits", "cancel", reason="too dear")
        before = await read_sweep(store, KEYS, SIGNERS, "digits")
        git = {"commit": "c" * 40, "branch": "main", "dirty": False, "pull": 7}
        seen = SeenCommit(git, "ann", "2026-01-01T00:00:00", "name: digits  # as before\n")
        assert await append_seen(store, KEYS, SIGNERS, before, seen)
        assert not await append_seen(store, KEYS, SIGNERS, before, seen), "somebody wrote meanwhile"
        after = await read_sweep(store, KEYS, SIGNERS, "digits", before)
        assert (after.head, after.changed_at, after.seen, after.cancelled) == (3, 2, seen, "too dear")
        assert replace(after, head=2, seen=None, digest=before.digest) == before and not after.skipped.total
        await append_revision(store, KEYS, SIGNERS, REVISION, 3)
        state = await read_sweep(store, KEYS, SIGNERS, "digits")
        assert (state.changed_at, state.seen, state.cancelled) == (4, None, None)

    asyncio.run(main())
