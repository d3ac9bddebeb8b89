"""Checkpoints of running jobs: captured when they are whole, sent to the store now and then and at the end.

When a job was killed, the files in its directory may be half-written, so the agent never relies on them. It relies on
captures, which were taken while no process wrote, and on the files that a job left when it ended by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from monkey.errors import StoreError
from monkey.fleet.fleet_port import keep_silent
from monkey.protocol.entries import ClaimEnd, EndEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import Keys
from monkey.protocol.record.history_parts import HistoryPart
from monkey.store.store_port import Store
from monkey_agent.checkpoints import captures, remote_checkpoints
from monkey_agent.checkpoints.captures import Capture
from monkey_agent.checkpoints.directory_scan import DirectoryScan, scan_path
from monkey_agent.checkpoints.local_checkpoints import LocalCheckpoints
from monkey_agent.checkpoints.remote_checkpoints import RemoteCheckpoints
from monkey_agent.checkpoints.restore import RestoredCheckpoint, restore_checkpoint
from monkey_agent.checkpoints.restored_mark import find_unchanged, mark_restored
from monkey_agent.local_files import explain_os_error, is_touched
from monkey_agent.ports import Attempt

#: Seconds between looks at a job's directory.
_POLL_SECONDS = 2.0
#: Largest number of seconds between looks where a copy is due and the job does not stop writing.
EAGER = 0.3
#: Seconds in which nothing may have changed. A job that never rests so long is captured in a shorter pause. A job that
#: replaces single files is whole at any moment; one that writes several should write aside and rename.
QUIET = (1.0, 0.25, 0.03, 0.003)
#: After a copy, none is made for so many times as long as it took, unless one is due.
_COPY_RESTS = 50
#: Number of looks without a capture before a shorter pause is enough.
_PATIENCE = 4
#: Seconds for which a job that is to be stopped is halted for a last capture, and the number of tries: half-written
#: files stay so while the job is halted.
_LAST, _MAX_TRIES = 10.0, 3
#: Seconds for which a job that was halted in the middle of writing continues, so that it can finish that.
LAST_PAUSES = (0.02, 0.1, 0.5, 0.0)
#: Number of files left out of a capture whose reasons are written to the job's log.
NOTES = 5


async def ship_nothing() -> None:
    """Ship nothing: what the job logged is in the store."""


class CheckpointSavers:
    """The checkpoints of all jobs of an agent."""

    def __init__(self, store: Store, keys: Keys, kept: LocalCheckpoints) -> None:
        """Keep the checkpoints in `store` and, on this machine, in `kept`."""
        self.store, self.keys, self.kept = store, keys, kept

    async def restore(self, attempt: Attempt, directory: str) -> CheckpointSaver:
        """Fill the directory of a new attempt, unless it is the job's first; return its saver.

        Raises StoreError, OSError.
        """
        checkpoint = CheckpointSaver(self, attempt, directory)
        if attempt.number > 1:
            restored = await restore_checkpoint(self.store, self.keys, self.kept, attempt.job, directory)
            await checkpoint.begin_from(restored)
        return checkpoint

    async def forget(self, job: str) -> None:
        """Remove all checkpoints of a job that has succeeded; ignore a StoreError, as those left only take room."""
        await asyncio.to_thread(self.kept.forget, job)
        with contextlib.suppress(StoreError):
            await remote_checkpoints.remove_checkpoints(self.store, self.keys, job)

    async def tidy(self) -> None:
        """Remove the checkpoints of jobs that have succeeded elsewhere, or right before an earlier agent died."""
        for job in self.kept.jobs:
            with contextlib.suppress(StoreError):
                log = EntryLog(self.keys.job_log(job))
                await log.refresh(self.store)
                if isinstance(log.tail, EndEntry) and log.tail.outcome is ClaimEnd.SUCCEEDED:
                    await self.forget(job)


class CheckpointSaver:
    """The checkpoint of one attempt."""

    def __init__(self, checkpoints: CheckpointSavers, attempt: Attempt, directory: str) -> None:
        """Save the checkpoints in `directory`, once it has files."""
        self._all, self._attempt, self._directory = checkpoints, attempt, directory
        self._newest: Capture | None = None
        #: The scans of the checkpoint that was restored, and of the one that the store has.
        self._found: DirectoryScan | None = None
        self._sent: DirectoryScan | None = None
        self._remote: RemoteCheckpoints | None = None
        self._task: asyncio.Task[None] | None = None
        self._noted: set[str] = set()
        #: Whether the job writes into its files instead of replacing them; and until when they are not copied again.
        self._copies, self._rests_until = False, 0.0
        self._level, self._misses, self._due = 0, 0, 0.0
        self._ended = self._done = False
        #: The newest attempt at the job that has a checkpoint in the store, as far as is known here; 0 for none.
        self.published = 0
        self.restored = False
        #: What the attempt continues.
        self.history: tuple[HistoryPart, ...] = ()
        #: Returns the bytes that each metrics file has.
        self.measure: Callable[[], dict[str, int]] = dict
        #: Brings to the store what the job logged by now, which no checkpoint may be ahead of.
        self.ship: Callable[[], Awaitable[None]] = ship_nothing
        #: Writes to the job's log.
        self.note: Callable[[str], None] = keep_silent
        #: Whether the job is frozen: then nothing new is captured.
        self.frozen = False
        #: Lines for the job's log about the restored checkpoint.
        self.notes: list[str] = []

    async def begin_from(self, restored: RestoredCheckpoint) -> None:
        """Note the checkpoint that was restored into the directory. Raises OSError."""
        self.notes, self.restored = restored.notes, is_touched(self._directory)
        self.history = restored.history
        self._found = await asyncio.to_thread(scan_path, self._directory)
        await asyncio.to_thread(mark_restored, self._directory, self._found)
        if restored.published:
            self._sent = self._found
            self.published = self.history[-1].k if self.history else 0

    async def resume(self, history: tuple[HistoryPart, ...]) -> None:
        """Note what an attempt continued that exited in an earlier life of the agent."""
        self.history = history
        self._found = await asyncio.to_thread(find_unchanged, self._directory)

    # -- while the job runs -------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Start to save checkpoints if the directory has files; cheap, and called every second."""
        if self._task is None and self.in_use:
            loop = asyncio.get_running_loop()
            self._due = loop.time() + self._attempt.settings.checkpoint_every
            self._task = loop.create_task(self._look_after())

    async def _look_after(self) -> None:
        while True:
            rests = True
            try:
                if not self.frozen:
                    rests = await self._round()
            except StoreError:
                pass  # the store is away; the next round may meet it
            except OSError as exc:
                self._tell(f"its checkpoint cannot be saved: {explain_os_error(exc)}")
            left = self._due - asyncio.get_running_loop().time()
            eager = not rests or self._has_none
            await asyncio.sleep(random.uniform(0.05, EAGER) if eager else min(_POLL_SECONDS, max(EAGER, left)))

    async def _round(self) -> bool:
        """Capture new files, and send them if that is due; return False if it is due and the job does not rest."""
        due = asyncio.get_running_loop().time() >= self._due
        if self._newest is not None and not await asyncio.to_thread(lambda held: held.is_whole, self._newest):
            self._newest, self._copies = None, True
        if self._copies and not due and asyncio.get_running_loop().time() < self._rests_until:
            return True
        if not await self._capture(QUIET[self._level]):
            self._missed()
            return not due
        if due and await self._publish():
            self._due = asyncio.get_running_loop().time() + self._attempt.settings.checkpoint_every
        return True

    @property
    def _has_none(self) -> bool:
        """Return whether nothing was captured yet."""
        return self._newest is None and not self._copies

    def _missed(self) -> None:
        self._misses += 1
        # A job without any checkpoint is in more danger than one whose checkpoint was taken in a short pause.
        if self._has_none or self._misses % _PATIENCE == 0:
            self._level = min(self._level + 1, len(QUIET) - 1)

    async def _capture(self, quiet: float) -> bool:
        """Capture the directory if nothing in it changes for `quiet` seconds; return whether it is captured.

        Raises OSError.
        """
        before = await asyncio.to_thread(scan_path, self._directory)
        if self._newest is not None and before == self._newest.tree:
            return True
        # What was logged before the files came to be what they are is counted; nothing is where they are as restored.
        own = [HistoryPart(self._attempt.k, self._attempt.agent, self.measure())] if before != self._found else []
        await asyncio.sleep(quiet)
        began = asyncio.get_running_loop().time()
        what = self._directory, before, self._all.kept.aside(), (*self.history, *own)
        made = await asyncio.to_thread(captures.take_capture, *what, copies=self._copies)
        self._rests_until = (now := asyncio.get_running_loop().time()) + _COPY_RESTS * (now - began)
        if made is not None:
            await self._keep(made)
        return made is not None

    async def _keep(self, made: Capture) -> None:
        for path, why in list(made.tree.odd.items())[:NOTES]:
            self._tell(f"{path!r} is no part of its checkpoint: {why}")
        if self._newest is not None and made.tree == self._newest.tree:
            await asyncio.to_thread(self._all.kept.remove, made.root)
            return
        if self._has_none:
            self._level = self._misses = 0
        self._newest = await asyncio.to_thread(self._all.kept.add, made, self._attempt.job, self._attempt.k)

    async def _publish(self) -> bool:
        """Send the newest capture unless the store has it; return False if the job changed it meanwhile.

        Raises StoreError.
        """
        newest = self._newest
        if newest is None or newest.tree == self._sent:
            return True
        if self._remote is None:
            self._remote = RemoteCheckpoints(self._all.store, self._all.keys, self._attempt.job, self._attempt.k)
        if not self._ended:
            await self.ship()
        if not await self._remote.publish(newest):
            self._newest, self._copies = None, True
            return False
        self._sent, self.published = newest.tree, self._attempt.k
        newest.mark_published()
        with contextlib.suppress(StoreError):
            await self._remote.prune(self._attempt.settings.checkpoint_keep)
        return True

    def _tell(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.note(text)

    # -- when it ends -------------------------------------------------------------------------------------------------

    @property
    def in_use(self) -> bool:
        """Return whether the attempt has not ended, and has files in its directory."""
        return not self._ended and is_touched(self._directory)

    @property
    def has_own(self) -> bool:
        """Return whether the attempt saved a checkpoint, or may still do so."""
        return self.in_use or self.published == self._attempt.k

    async def last_moment(self) -> bool:
        """Capture a halted job's files, as it may end while it writes; return False where it was halted so."""
        capture = asyncio.ensure_future(self._still())
        await asyncio.wait([capture], timeout=_LAST)
        capture.cancel()
        return (await asyncio.gather(capture, return_exceptions=True))[0] is not False

    async def _still(self) -> bool:
        for _ in range(_MAX_TRIES):
            if await self._capture(QUIET[-1]):
                return True
        return False

    async def finish(self, *, by_itself: bool) -> None:
        """Save the checkpoint from which the next attempt continues; called again after a StoreError.

        `by_itself`: the job ended by itself, and so its directory is what it wanted to leave.
        """
        await self._stop_looking()
        if self._done or not (self.restored or is_touched(self._directory)):
            return
        try:
            if by_itself and not self._ended:
                self._copies = False
                await self._capture(0)
            self._ended = True
            await self._publish()
        except OSError as exc:
            self._tell(f"its checkpoint cannot be saved: {explain_os_error(exc)}")
        self._done = True

    async def succeeded(self) -> None:
        """Stop saving checkpoints: the job has succeeded."""
        await self._stop_looking()
        self._ended = True

    async def _stop_looking(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @property
    def left_any(self) -> bool:
        """Return whether there may be checkpoints of the job, here or in the store."""
        return self._attempt.number > 1 or self._newest is not None or self._remote is not None
