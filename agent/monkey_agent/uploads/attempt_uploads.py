"""What an attempt leaves in the store: metrics, samples, outputs, and its log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace

from monkey.errors import StoreError
from monkey.metrics.record_feed import MAX_METRICS
from monkey.metrics.usage import USAGE_FILE
from monkey.protocol.record.end_files import MAX_END_FILES, EndFiles, may_have_files
from monkey.store.store_port import Store
from monkey.untrusted_files import UntrustedFile
from monkey_agent.execution.launched_process import LaunchedProcess
from monkey_agent.local_files import is_touched
from monkey_agent.ports import AttemptOutcome
from monkey_agent.supervisor.process import ProcessExit
from monkey_agent.telemetry.samples import AttemptSamples
from monkey_agent.uploads.job_outputs import OutputUpload, find_outputs, resolve_twins
from monkey_agent.uploads.metric_files import MetricFiles

#: Largest number of notes on outputs that are written to the log.
NOTES = 20


class AttemptUploads:
    """The uploads of one attempt; what is done stays done when the store fails in the middle."""

    def __init__(self, store: Store, launched: LaunchedProcess, metrics: MetricFiles, samples: AttemptSamples) -> None:
        """Upload what lies in the workspace of a launched process."""
        self._store, self._space, self._prefix = store, launched.space, launched.prefix
        self._code, self._globs, self._log = launched.code, launched.globs, launched.log
        self._checkpoint = launched.checkpoint
        self._metrics, self._samples = metrics, samples
        self._uploads: dict[str, OutputUpload] = {}
        self._found: dict[str, UntrustedFile] | None = None
        #: Whether files may ride in the attempt's end, once that is known, and what does.
        self._rides: bool | None = None
        self._riding = EndFiles()
        #: Why not all outputs are kept: some cannot be read, or the store takes two names for one; "" where they are.
        self.refusal = ""

    async def upload_record(self, outcome: AttemptOutcome, how: ProcessExit) -> AttemptOutcome:
        """Bring what the attempt logged and used to the store, and return the outcome with it.

        What is little waits for the attempt's end, to ride in it. Raises StoreError, OSError.
        """
        if self._rides is None:
            # An end may never be written, so no checkpoint may stand on metrics that ride.
            self._rides = may_have_files(self._store) and how.kind == "ended" and not self._checkpoint.has_own
        history = self._space.history
        logged = history is not None or is_touched(self._space.metrics)
        if logged:
            summary = await self._metrics.finish()
            if self._metrics.crowded:
                self._log.note(
                    f"it logged more than {MAX_METRICS:,} metrics: results have the first, the files have all"
                )
            for count in self._metrics.skipped.values():
                self._log.note(f"lines or values of its metrics that are no records, and were skipped: {count:,}")
            outcome = replace(outcome, summary=summary, history=history.parts if history else ())
        outcome = replace(outcome, usage=await self._samples.finish(how) | self._metrics.skipped)
        metrics, samples = self._list_metrics() if logged else {}, self._list_samples()
        self._riding = self._take_small(metrics, samples) if self._rides else EndFiles()
        await self._upload_objects(metrics, samples)
        return outcome

    def _list_metrics(self) -> dict[str, UntrustedFile]:
        return {name: UntrustedFile(self._space.metrics, name) for name in self._metrics.find_names()}

    def _list_samples(self) -> dict[str, UntrustedFile]:
        return {USAGE_FILE: UntrustedFile(self._space.root, USAGE_FILE)} if self._samples.any else {}

    async def _upload_objects(self, metrics: Mapping[str, UntrustedFile], samples: Mapping[str, UntrustedFile]) -> None:
        """Bring files to the store that do not ride in the end. Raises StoreError, OSError."""
        if metrics and self._riding.metrics is None:
            await self._upload("metrics/").send(metrics)
        if samples and self._riding.samples is None:
            await self._upload("").send(samples)

    async def upload_log(self) -> EndFiles | None:
        """Bring the log to the store, or let it ride in the end; return what rides there. Raises StoreError."""
        if self._rides:
            log = self._log.read_short(MAX_END_FILES - self._riding.size)
            self._riding = self._riding._replace(log=log)
        if self._riding.log is None:
            await self._log.ship()
        return self._riding if self._rides else None

    async def upload_riding(self) -> None:
        """Bring to the store what was to ride in the end; what cannot be read any more is lost. Raises StoreError."""
        rode, self._riding = self._riding, EndFiles()
        try:
            metrics, samples = self._list_metrics() if rode.metrics else {}, self._list_samples()
            with contextlib.suppress(OSError):
                await self._upload_objects(metrics, samples if rode.samples else {})
            if rode.log:
                await self._log.ship()
        except StoreError:
            self._riding = rode
            raise

    async def upload_outputs(self) -> dict[str, str]:
        """Bring the outputs to the store; return path to SHA-256. Raises StoreError, OSError."""
        if self._globs is None and not is_touched(self._space.outputs):
            return {}
        upload = self._upload("outputs/")
        found = await asyncio.to_thread(self._outputs)
        async for why in resolve_twins(self._store, f"{self._prefix}outputs/", found):
            self.refusal = self.refusal or why
            self._log.note(why)
        await upload.send(found)
        return dict(sorted(upload.digests.items()))

    async def upload_some_outputs(self, seconds: float) -> dict[str, str]:
        """Bring the outputs to the store that can be read and sent in `seconds`; return path to SHA-256.

        Raises StoreError.
        """
        with contextlib.suppress(OSError, TimeoutError):
            return await asyncio.wait_for(self.upload_outputs(), seconds if seconds < float("inf") else None)
        return dict(sorted(self._upload("outputs/").digests.items()))

    def _upload(self, below: str) -> OutputUpload:
        if below not in self._uploads:
            self._uploads[below] = OutputUpload(self._store, self._prefix + below)
        return self._uploads[below]

    def _take_small(self, metrics: Mapping[str, UntrustedFile], samples: Mapping[str, UntrustedFile]) -> EndFiles:
        """Return what may ride in an end: metrics, then samples, as far as there is room. Raises OSError."""
        found = EndFiles(metrics=_read_small(metrics, MAX_END_FILES))
        taken = _read_small(samples, MAX_END_FILES - found.size)
        return found if taken is None else found._replace(samples=taken.get(USAGE_FILE, b""))

    def _outputs(self) -> dict[str, UntrustedFile]:
        if self._found is None:
            notes, lost = list[str](), list[OSError]()
            self._found = find_outputs(self._space, self._globs, self._code, notes.append, lost.append)
            if lost:
                self.refusal = self._space.keep_unread(lost[0])
            for note in notes[:NOTES]:
                self._log.note(note)
            if len(notes) > NOTES:
                self._log.note(f"and {len(notes) - NOTES} more that are not kept")
        return self._found


def _read_small(files: Mapping[str, UntrustedFile], most: int) -> dict[str, bytes] | None:
    """Return the bytes of files that have at most `most` together, names included; None where they have more.

    Raises OSError.
    """
    taken: dict[str, bytes] = {}
    for name, file in files.items():
        data = file.read(max(0, most) + 1)
        most -= len(data) + len(name.encode())
        if most < 0:
            return None
        taken[name] = data
    return taken
