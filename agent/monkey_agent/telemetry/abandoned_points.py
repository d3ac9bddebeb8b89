"""Points that a later attempt abandoned, as it began before them: InfluxDB gets them again, with `kept` false.

InfluxDB keeps the newest of points of one series and time. A machine that was cut off from InfluxDB alone may send such
a point later. It counts as kept then, until the next attempt or `monkey backfill`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from monkey.errors import StoreError
from monkey.metrics.history_summary import find_cuts
from monkey.metrics.influx.influx_points import make_metric_tags, parse_agent_machine
from monkey.metrics.record_feed import MAX_LINE
from monkey.metrics.records import NOTHING_KEPT, RecordCut, Records
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart, restore_history
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.store.store_port import Store
from monkey.untrusted_files import UntrustedFile
from monkey_agent.ports import Attempt
from monkey_agent.uploads.attempt_history import FILES, AttemptHistory

#: In a workspace: files of the attempts that nothing continues.
_OTHERS = "others"


class AbandonedPoints:
    """What one attempt abandons of those before it."""

    def __init__(self, send: Callable[[bytes], None], store: Store, keys: Keys, attempt: Attempt, root: str) -> None:
        """Hand points to `send`, for the attempt whose workspace is `root`."""
        self._hand, self._store, self._keys = send, store, keys
        self._attempt, self._root = attempt, Path(root)
        self._earlier = {each.k: each for each in attempt.earlier if each.begun}

    async def mark(self, history: AttemptHistory | None) -> None:
        """Send what is abandoned now, and with `history` what will be. What fails is left to a backfill."""
        if history is not None:
            history.on_cut = self._mark_history
            await self._mark_history(history, None)
        with contextlib.suppress(StoreError, OSError):
            await self._mark_others({part.k for part in history.parts} if history else set())

    async def _mark_others(self, kept: set[int]) -> None:
        parts = [HistoryPart(k, each.claim.agent, {}) for k, each in self._earlier.items() if k not in kept]
        directory = self._root / _OTHERS
        await restore_history(self._store, self._keys, self._attempt.job, parts, directory)
        cuts = {
            (int(path.parent.name), path.name): NOTHING_KEPT for path in directory.glob("*/*") if path.parent.is_dir()
        }
        await self._send(directory, cuts)

    async def _mark_history(self, history: AttemptHistory, until: int | None) -> None:
        with contextlib.suppress(OSError):
            directory = self._root / FILES
            await self._send(directory, await asyncio.to_thread(find_cuts, history.parts, directory, until))

    async def _send(self, directory: Path, cuts: Mapping[tuple[int, str], RecordCut]) -> None:
        for (k, name), cut in cuts.items():
            if k not in self._earlier:
                continue
            file = UntrustedFile(str(directory), f"{k}/{name}")
            pieces = convert_abandoned(file, self._attempt.job, self._earlier[k], cut)
            while points := await asyncio.to_thread(next, pieces, b""):
                self._hand(points)


def convert_abandoned(file: UntrustedFile, job: str, attempt: AttemptRecord, cut: RecordCut) -> Iterator[bytes]:
    """Yield the points of a metrics file that are abandoned, some lines at once. Raises OSError."""
    claim, name = attempt.claim, file.path.rpartition("/")[2]
    tags = make_metric_tags(claim.sweep, job, attempt.number, parse_agent_machine(claim.agent), name, claim.user)
    records = Records(tags, cut=cut)
    with os.fdopen(file.open(), "rb") as opened:
        while lines := opened.readlines(MAX_LINE):
            if points := records.convert_abandoned(b"".join(lines)):
                yield points
