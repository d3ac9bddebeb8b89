"""The agent's side of a collector: starts it, has it look each second, and once more when the job has ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence

from monkey.processes.private_process import select_needed_variables
from monkey.processes.process_tree import MARK
from monkey.spec.job.metric_sources import MetricSource
from monkey_agent.execution.workspace import Workspace

#: Seconds between looks; that an answer may take before the collector is given up; and before it is started again.
_LOOK_SECONDS, _PATIENCE_SECONDS, _AGAIN_SECONDS = 1.0, 60.0, 10.0
#: Seconds that a checkpoint waits for a look.
_CHECKPOINT_SECONDS = 10.0


class MetricCollector:
    """The collector of one attempt. No failure of it harms the job; it is said in the job's log."""

    def __init__(self, space: Workspace, sources: Sequence[MetricSource], note: Callable[[str], None]) -> None:
        """Start nothing yet; without sources, never."""
        self._space, self._sources, self._note = space, sources, note
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        #: Was it said that something failed?
        self._failed = False

    def tick(self) -> None:
        """Begin to look, if there is anything to look at."""
        if self._sources and self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look_on())

    async def _look_on(self) -> None:
        while True:
            pause = _LOOK_SECONDS if await self.look() else _AGAIN_SECONDS
            await asyncio.sleep(pause)

    async def look(self) -> bool:
        """Have all that the job wrote by now in the metrics file; False where it could not be read."""
        if not self._sources:
            return True
        async with self._lock:
            try:
                if self._process is None:
                    self._process = await self._start()
                assert self._process.stdin is not None
                self._process.stdin.write(b"\n")
                await self._process.stdin.drain()
                if await asyncio.wait_for(self._answer(self._process), _PATIENCE_SECONDS):
                    return True
                raise OSError("the collector has ended")
            except (OSError, ValueError, TimeoutError) as exc:
                await self._end(exc)
                return False
            except asyncio.CancelledError:  # its answer would be taken for that to the next look
                self._kill()
                raise

    async def finish(self) -> None:
        """Have all that the job wrote in the metrics file, as it has ended; then end the collector."""
        if not self._sources:
            return
        async with self._lock:
            if self._looking is not None:  # it waits for its next look
                self._looking.cancel()
            for _ in range(2):  # a second time, by another, where the first was killed
                try:
                    process = self._process = self._process or await self._start()
                    assert process.stdin is not None
                    process.stdin.close()
                    while await asyncio.wait_for(self._answer(process), _PATIENCE_SECONDS):
                        pass  # one that was asked for before
                    if await process.wait() == 0:
                        self._process = None
                        return
                    raise OSError(f"the collector exited with {process.returncode}")
                except (OSError, ValueError, TimeoutError) as exc:
                    await self._end(exc)

    async def catch_up(self) -> None:
        """Look before a checkpoint, which must not go to the store before what was logged by then."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CHECKPOINT_SECONDS):
                await self.look()

    async def _start(self) -> asyncio.subprocess.Process:
        space = self._space
        order = {
            "roots": [space.work, space.outputs, space.checkpoint],
            "log": space.log,
            "metrics": space.metrics,
            "sources": [source.to_json() for source in self._sources],
        }
        # Marked, so that our successor ends it; in a session of its own, so that ^C does not.
        state = space.root.rsplit("/", 2)[0]
        ours = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), MARK: f"{state}:0"}
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "monkey_agent.collecting.collector", json.dumps(order)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={**select_needed_variables(os.environ), **ours},
            start_new_session=True,
        )

    async def _answer(self, process: asyncio.subprocess.Process) -> bool:
        """Read one answer, and note what it says; False at the end. Raises ValueError."""
        assert process.stdout is not None
        line = await process.stdout.readline()
        for note in json.loads(line) if line else ():
            self._note(note)
        return bool(line)

    async def _end(self, exc: BaseException) -> None:
        if not self._failed:
            self._failed = True
            self._note(f"what `metrics: from` names could not be read for a while ({exc or type(exc).__name__})")
        if process := self._kill():
            await process.wait()

    def _kill(self) -> asyncio.subprocess.Process | None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        return process
