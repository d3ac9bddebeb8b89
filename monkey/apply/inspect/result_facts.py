"""The facts of results, as the store has them: verified, of bounded size, and never a reason to crash."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from monkey.apply.world.world import World
from monkey.concurrency import run_in_lanes
from monkey.errors import CorruptObject, KeyMissing
from monkey.protocol.entries import EndEntry
from monkey.protocol.layout import Keys
from monkey.protocol.record.facts import decode_facts, hash_facts, is_facts_hash
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.status.store_snapshot import SweepView
from monkey.store.store_port import Store

#: Facts that are read at once.
_LANES = 8
_DIGITS = re.compile(r"[0-9a-f]{8,64}").fullmatch


class ResultFacts(NamedTuple):
    """What the result of an attempt came from, by its end."""

    sha256: str
    #: As `monkey.protocol.record.facts` has them; {} where they cannot be read.
    facts: dict[str, Any]
    #: Why they cannot be read; "" where they can.
    trouble: str = ""


async def read_result_facts(world: World, found: Sequence[AttemptRecord]) -> ResultFacts | None:
    """Return the facts of the last attempt whose end names any; None where none does. Raises StoreError."""
    ends = [one.after for one in found if isinstance(one.after, EndEntry) and one.after.facts]
    if not ends:
        return None
    name = ends[-1].facts
    try:
        return ResultFacts(name, await load_facts(world.at, world.keys, name))
    except KeyMissing as exc:
        return ResultFacts(name, {}, exc.message)
    except CorruptObject as exc:
        return ResultFacts(name, {}, exc.message)


async def read_sweep_facts(world: World, view: SweepView) -> dict[str, dict[str, Any]]:
    """Return the facts of all jobs of a sweep, each once, by the first digits of their hash that the jobs name.

    A few requests: many jobs share facts. Facts that are missing or damaged are left out. Raises StoreError.
    """
    found: dict[str, dict[str, Any]] = {}

    async def read(name: str) -> None:
        # Of a hash that is cut, the listing has the rest; two that begin alike are as good as none.
        keys = [item.key for item in await world.at.list(world.keys.facts(name))] if _DIGITS(name) else []
        if len(keys) == 1:
            with contextlib.suppress(KeyMissing, CorruptObject):
                found[name] = await load_facts(world.at, world.keys, keys[0].rpartition("/")[2])

    await run_in_lanes(sorted({job.facts for job in view.jobs.values() if job.facts}), read, _LANES)
    return found


async def load_facts(store: Store, keys: Keys, name: str) -> dict[str, Any]:
    """Return the facts with this hash. Raises KeyMissing, CorruptObject, and whatever else the store raises."""
    if not is_facts_hash(name):
        raise CorruptObject(f"facts {name[:80]!r}", "expected a SHA-256 of 64 hex digits")
    key = keys.facts(name)
    data = await store.get(key)
    if (digest := hash_facts(data)) != name:
        raise CorruptObject(key, f"its bytes have the SHA-256 {digest}")
    return decode_facts(key, data)
