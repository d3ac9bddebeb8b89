"""The history that an attempt continues: fetched before the attempt begins, and summarized once its steps are known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from monkey.atomic_write import write_atomically
from monkey.metrics.history_summary import summarize_history
from monkey.metrics.summary import merge_summaries
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart, parse_parts, restore_history
from monkey.store.store_port import Store
from monkey.untrusted_files import load_json
from monkey_agent.ports import Attempt

#: In a workspace: the parts of its attempt's history, and their files.
PARTS, FILES = "history.json", "history"
#: Bytes of the parts that are read.
_MOST_BYTES = 16 << 20

Summary = dict[str, dict[str, Any]]


class AttemptHistory:
    """The history of one attempt, with its files on this machine."""

    def __init__(self, parts: tuple[HistoryPart, ...], directory: Path, needed: Collection[str]) -> None:
        """Take the files of `parts` in `directory`; `needed` is as in `MetricSummary`."""
        self.parts, self._directory, self._needed = parts, directory, needed
        #: The step at which `_summary` is cut; 0.5, which is none, while there is no summary.
        self._until: float | None = 0.5
        self._summary: Summary = {}
        self._merged: Summary = {}
        self._folding: asyncio.Task[None] | None = None
        #: Is told the step at which the history is cut, whenever that is known or another.
        self.on_cut: Callable[[AttemptHistory, int | None], Awaitable[None]] | None = None

    async def _fold(self, until: int | None) -> None:
        self._summary = await asyncio.to_thread(summarize_history, self.parts, self._directory, until, self._needed)
        self._until = until
        if self.on_cut is not None:
            await self.on_cut(self, until)

    async def prepare(self) -> None:
        """Summarize the history before the attempt has logged anything. Raises OSError."""
        await self._fold(None)
        self._merged = self._summary

    def continue_with(self, own: Summary, first_step: int | None) -> Summary:
        """Return the summary of the history and of the attempt's `own` records, which begin at `first_step`.

        While the history is cut at another step, it is the one that was returned before.
        """
        if self._until == first_step:
            self._merged = merge_summaries(self._summary, own)
        elif self._folding is None or self._folding.done():
            self._folding = asyncio.get_running_loop().create_task(self._fold(first_step))
        return self._merged

    async def finish(self, own: Summary, first_step: int | None) -> Summary:
        """Return the same once the attempt has ended. Raises OSError."""
        if self._folding is not None:
            await asyncio.gather(self._folding, return_exceptions=True)
        if self._until != first_step:
            await self._fold(first_step)
        return merge_summaries(self._summary, own)


async def open_history(
    store: Store, keys: Keys, attempt: Attempt, parts: tuple[HistoryPart, ...], root: str
) -> AttemptHistory | None:
    """Return the history of an attempt, whose workspace is `root`; None for one that begins without a checkpoint.

    Raises StoreError, OSError.
    """
    if not parts:
        return None
    directory = Path(root, FILES)
    await restore_history(store, keys, attempt.job, parts, directory)
    write_atomically(Path(root, PARTS), json.dumps([part.to_json() for part in parts]))
    history = AttemptHistory(parts, directory, list_needed_metrics(attempt))
    await history.prepare()
    return history


def load_history(attempt: Attempt, root: str) -> AttemptHistory | None:
    """Return the history of an attempt that ran in an earlier life of the agent, from its workspace."""
    try:
        parts = parse_parts(load_json(f"{root}/{PARTS}", _MOST_BYTES))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return AttemptHistory(parts, Path(root, FILES), list_needed_metrics(attempt))


def list_needed_metrics(attempt: Attempt) -> set[str]:
    """Return the metrics that its summary has, however many others there are."""
    return {rule.metric for rule in attempt.settings.stop_when} | {attempt.settings.metric or ""}
