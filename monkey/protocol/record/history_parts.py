"""The history of an attempt: the attempts that it continues by way of checkpoints, and the files that these logged to.

- The history of an attempt comes with its checkpoint: the attempt that saved that, and the history of this one.
  An attempt that began without a checkpoint has none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from monkey.errors import KeyMissing
from monkey.protocol.layout import Keys, is_agent_name
from monkey.protocol.record.end_files import EndFiles
from monkey.protocol.record.end_files_reading import read_end_files
from monkey.protocol.record.shipment import METRICS
from monkey.protocol.record.shipment_reading import ShippedFiles, select_metrics
from monkey.store.keys import is_encodable
from monkey.store.store_port import Store

#: The file of a job that logs in one process.
USUAL = "0.jsonl"
#: Attempts that a history has at most: a stored one may claim any number.
MAX_PARTS = 10_000


class HistoryPart(NamedTuple):
    """One attempt of a history."""

    #: Position of its claim in the job's log.
    k: int
    #: The agent that ran it: "fleet/name/boot".
    agent: str
    #: File of metrics to the bytes of it that were there when the checkpoint was taken; others have no value of it.
    places: Mapping[str, int]

    def to_json(self) -> list[Any]:
        """Return what `parse_parts` reads."""
        return [self.k, self.agent, dict(self.places)]


def parse_parts(told: Any) -> tuple[HistoryPart, ...]:
    """Read parts from JSON that anybody may have written. Raises ValueError, TypeError, AttributeError."""
    if not isinstance(told, list):
        raise TypeError("parts are a list")
    parts = tuple(HistoryPart(k, agent, dict(places)) for k, agent, places in told[:MAX_PARTS])
    for part in parts:
        if type(part.k) is not int or part.k < 1 or not is_agent_name(part.agent):
            raise ValueError("a part is of no attempt")
        if not all(is_file_name(name) and type(at) is int and at >= 0 for name, at in part.places.items()):
            raise ValueError("a place is none")
    return parts


def is_file_name(name: Any) -> bool:
    """Is it the name of a file in $MONKEY_METRICS_DIR?"""
    return isinstance(name, str) and is_encodable(name) and name not in ("", ".", "..") and not set(name) & {"/", "\0"}


def restore_end_files(files: EndFiles, place: Path) -> bool:
    """Write the metrics files of an end to the directory `place`; return whether it has them. Raises OSError."""
    for name, data in (files.metrics or {}).items():
        if is_file_name(name):
            (place / name).write_bytes(data)
    return files.metrics is not None


async def restore_history(
    store: Store,
    keys: Keys,
    job: str,
    parts: Iterable[HistoryPart],
    directory: Path,
    shipped: ShippedFiles | None = None,
) -> None:
    """Bring the metrics files of all parts to `directory`/K/NAME. Raises StoreError, OSError.

    `shipped`: that of a caller that reads many jobs.
    """
    for part in parts:
        place = directory / str(part.k)
        place.mkdir(parents=True, exist_ok=True)
        if restore_end_files(await read_end_files(store, keys, job, part.k), place):
            continue
        prefix = keys.out(job, part.k) + METRICS
        listed = [item.key.removeprefix(prefix) for item in await store.list(prefix)]
        found = False
        for name in {*filter(is_file_name, listed), *part.places, USUAL}:  # a listing may lag behind
            with contextlib.suppress(KeyMissing):
                await store.get_file(prefix + name, place / name)
                found = True
        if not found:  # its agent was killed before it could bring them there
            files = await (shipped or ShippedFiles(store, keys)).read(part.agent, job, part.k)
            for name, data in select_metrics(files).items():
                if is_file_name(name):
                    (place / name).write_bytes(data)
