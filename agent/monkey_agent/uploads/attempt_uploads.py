"""What an attempt leaves in the store: metrics, samples, outputs, and its log."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from monkey.metrics.record_feed import MAX_METRICS
from monkey.metrics.usage import USAGE_FILE
from monkey.store.store_port import Store
from monkey.untrusted_files import UntrustedFile
from monkey_agent.execution.launched_process import LaunchedProcess
from monkey_agent.local_files import is_touched
from monkey_agent.ports import AttemptOutcome
from monkey_agent.supervisor.process import ProcessExit
from monkey_agent.telemetry.samples import AttemptSamples
from monkey_agent.uploads.job_outputs import OutputUpload, find_outputs
from monkey_agent.uploads.metric_files import MetricFiles

#: Largest number of notes on outputs that are written to the log.
NOTES = 20


class AttemptUploads:
    """The uploads of one attempt; what is done stays done when the store fails in the middle."""

    def __init__(self, store: Store, launched: LaunchedProcess, metrics: MetricFiles, samples: AttemptSamples) -> None:
        """Upload what lies in the workspace of a launched process."""
        self._store, self._space, self._prefix = store, launched.space, launched.prefix
        self._code, self._globs, self._log = launched.code, launched.globs, launched.log
        self._metrics, self._samples = metrics, samples
        self._uploads: dict[str, OutputUpload] = {}
        self._found: dict[str, UntrustedFile] | None = None

    async def upload_record(self, outcome: AttemptOutcome, how: ProcessExit) -> AttemptOutcome:
        """Bring what the attempt logged and used to the store, and return the outcome with it.

        Raises StoreError, OSError.
        """
        history = self._space.history
        if history is not None or is_touched(self._space.metrics):
            summary = await self._metrics.finish()
            await self._upload_metrics()
            outcome = replace(outcome, summary=summary, history=history.parts if history else ())
        if usage := await self._samples.finish(how):
            outcome = replace(outcome, usage=usage)
        if self._samples.any:
            await self._upload("").send({USAGE_FILE: UntrustedFile(self._space.root, USAGE_FILE)})
        return outcome

    async def _upload_metrics(self) -> None:
        if self._metrics.crowded:
            self._log.note(f"it logged more than {MAX_METRICS:,} metrics: results have the first, the files have all")
        files = {name: UntrustedFile(self._space.metrics, name) for name in self._metrics.names()}
        await self._upload("metrics/").send(files)

    async def upload_outputs(self) -> dict[str, str]:
        """Bring the outputs to the store; return path to SHA-256. Raises StoreError, OSError."""
        if self._globs is None and not is_touched(self._space.outputs):
            return {}
        upload = self._upload("outputs/")
        await upload.send(await asyncio.to_thread(self._outputs))
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

    def _outputs(self) -> dict[str, UntrustedFile]:
        if self._found is None:
            notes: list[str] = []
            self._found = find_outputs(self._space, self._globs, self._code, notes.append)
            for note in notes[:NOTES]:
                self._log.note(note)
            if len(notes) > NOTES:
                self._log.note(f"and {len(notes) - NOTES} more that are not kept")
        return self._found
