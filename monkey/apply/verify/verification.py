"""The verification of a sweep or a job: every digest that was recorded, from the store alone."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.verify.object_reader import ObjectReader
from monkey.apply.verify.record_check import check_record
from monkey.apply.verify.shared_objects import SharedObjects
from monkey.apply.verify.verification_result import MISSING, EvidenceKind, VerificationResult
from monkey.apply.world.world import World
from monkey.concurrency import run_in_lanes
from monkey.errors import MonkeyError
from monkey.protocol.entries import ClaimEnd, EndEntry, TornEntry
from monkey.protocol.entry_log import EntryLog
from monkey.protocol.layout import spell_number
from monkey.protocol.status.store_snapshot import JobState, SweepView
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.job.recipe import Recipe
from monkey.transfer.download import LANES, check_path

_Check = Callable[[], Awaitable[None]]


async def verify_results(world: World, view: SweepView, job: str | None = None) -> VerificationResult:
    """Check all jobs of a sweep that have ended, or one of its jobs. Raises StoreError, OSError.

    Objects are brought to a temporary directory, a few at a time, and removed at once.
    """
    with tempfile.TemporaryDirectory(prefix="monkey-verify-") as directory:
        verification = _Verification(world, view, Path(directory))
        try:
            return await verification.run([job] if job else list(view.ids))
        finally:
            verification.reader.close()


class _Verification:
    def __init__(self, world: World, view: SweepView, directory: Path) -> None:
        self._world, self._view, self._directory = world, view, directory
        self.result = VerificationResult()
        moved = world.bars(f"verifying {view.state.name}", 0, 0)
        self.reader = ObjectReader(world.at, directory, moved)
        self._shared = SharedObjects(world.keys, self.reader, self.result)
        #: What is left to check: found in the jobs' logs first, so that a job of many files uses all lanes.
        self._checks: list[_Check] = []

    async def run(self, jobs: Sequence[str]) -> VerificationResult:
        """Check these jobs of the sweep, and what they share."""
        self._check_identities(jobs)
        for recipe in await self._list_recipes(jobs):
            await self._shared.check_code(recipe.code, self._directory)
            for oid in recipe.datasets.values():
                await self._shared.check_dataset(oid)
        await run_in_lanes(jobs, self._read_job, min(LANES, len(jobs)))
        await run_in_lanes(self._checks, lambda check: check(), min(LANES, len(self._checks)))
        self.result.size = self.reader.size
        self.result.wrong.sort(key=lambda one: (one.kind, one.key))
        return self.result

    def _check_identities(self, jobs: Iterable[str]) -> None:
        """Compare the jobs' ids with their parameters: an id is a hash of recipe and parameters."""
        revision = self._view.state.revision
        assert revision is not None  # the sweep was found
        ids = assign_job_ids(revision.table, revision.recipe).ids
        key = self._world.keys.sweep_log(revision.sweep) + spell_number(self._view.state.revision_at)
        for job in jobs:
            if (found := ids[revision.rows[job]]) != job:
                expected = f"the parameters and the recipe of job {job}"
                self.result.note(EvidenceKind.RECORD, key, expected, f"those of a job {found}", job)

    async def _list_recipes(self, jobs: Iterable[str]) -> list[Recipe]:
        """Return the recipes of the jobs: the sweep's, and those of adopted jobs that an earlier revision had."""
        newest = self._view.state.revision
        assert newest is not None  # the sweep was found
        recipes = [newest.recipe]
        adopted = {find_owner(self._view, job) for job in jobs} - newest.rows.keys()
        for earlier in reversed(
            await list_revisions(self._world.at, self._world.keys, self._world.signers, newest.sweep) if adopted else []
        ):
            if not adopted.isdisjoint(earlier.revision.rows):
                adopted -= earlier.revision.rows.keys()
                recipes.append(earlier.revision.recipe)
        return recipes

    async def _read_job(self, job: str) -> None:
        """Read a job's log, and plan the checks of what its end names."""
        await asyncio.sleep(0)  # as in ObjectReader.bring
        owner = find_owner(self._view, job)
        log = EntryLog(self._world.keys.job_log(owner))
        await log.refresh(self._world.at)
        end = _find_end(log)
        if end is None:
            self._note_no_end(job, log)
            return
        self.result.ended += 1
        for path, sha256 in end.outputs.items():
            prefix = self._world.keys.out(owner, end.outputs_at.get(path, end.out))
            self._checks.append(partial(self._check_output, owner, prefix, path, sha256))
        self._checks.append(partial(self._check_record, job, owner, end))
        self._checks.append(partial(self._shared.check_facts, end.facts, owner))

    def _note_no_end(self, job: str, log: EntryLog) -> None:
        """Count a job as unfinished, unless a journal says that it ended: then its log has lost the end."""
        torn, state = isinstance(log.tail, TornEntry), self._view.where(job)
        # One that failed may have no end: its agents vanished too often.
        if state is not JobState.SUCCEEDED and not (torn and state in (JobState.FAILED, JobState.STOPPED)):
            self.result.unfinished += 1
            return
        self.result.ended += 1
        self.result.checked[EvidenceKind.RECORD] += 1
        key = log.key(log.head if torn else log.head + 1)
        found = "bytes that are no entry" if torn else MISSING
        self.result.note(EvidenceKind.RECORD, key, "an entry of the job's log", found, job)

    async def _check_output(self, job: str, prefix: str, path: str, sha256: str) -> None:
        self.result.checked[EvidenceKind.OUTPUTS] += 1
        key, expected = f"{prefix}outputs/{path}", f"sha256 {sha256}"
        try:
            check_path(path)
        except MonkeyError as exc:
            self.result.note(EvidenceKind.OUTPUTS, key, "a path below the outputs", exc.message, job)
            return
        found = await self.reader.compute_digest(key)
        if found is None:
            self.result.note(EvidenceKind.OUTPUTS, key, expected, MISSING, job)
        elif found.digest != sha256:
            text = f"sha256 {found.digest} of {found.size:,} bytes"
            self.result.note(EvidenceKind.OUTPUTS, key, expected, text, job)

    async def _check_record(self, job: str, owner: str, end: EndEntry) -> None:
        self.result.checked[EvidenceKind.RECORD] += 1
        if fault := await check_record(end, self._world.keys, owner, self.reader):
            self.result.note(EvidenceKind.RECORD, f"{self._world.keys.out(owner, end.out)}metrics/", *fault, owner)
        seen = self._view.view(job)
        same = seen.attempt != end.out or (
            (seen.metrics, seen.outputs, seen.seconds) == (end.metrics, end.outputs, round(end.total_seconds, 3))
        )
        well = (end.outcome is ClaimEnd.SUCCEEDED) == (seen.state is JobState.SUCCEEDED)
        if not (same and well) and not seen.agent:
            expected, found = "what the job's end says, as `results` shows it", "a journal that says something else"
            self.result.note(EvidenceKind.RECORD, self._world.keys.job_log(owner), expected, found, owner)


def _find_end(log: EntryLog) -> EndEntry | None:
    """Return the end that stands for a job: its success, or else its last entry, unless that released it."""
    ends = [entry for entry in log.entries if isinstance(entry, EndEntry)]
    succeeded = [end for end in ends if end.outcome is ClaimEnd.SUCCEEDED]
    last = log.tail if isinstance(log.tail, EndEntry) and log.tail.outcome is not ClaimEnd.RELEASED else None
    return succeeded[-1] if succeeded else last
