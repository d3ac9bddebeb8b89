"""A process beside a job that reads its metrics: started, asked to look, and ended when the job has ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from monkey.processes.private_process import select_needed_variables
from monkey.processes.process_tree import MARK
from monkey_agent.execution.workspace import Workspace

#: Seconds between looks; that an answer may take before the process is given up; and before it is started again.
_LOOK_SECONDS, _PATIENCE_SECONDS, _AGAIN_SECONDS = 1.0, 60.0, 10.0
#: Seconds that a checkpoint waits for a look.
_CHECKPOINT_SECONDS = 10.0


class ReaderProcess(ABC):
    """The reader of one attempt. No failure of it harms the job; it is said in the job's log.

    The process answers each line on its stdin by a line: JSON, a list of what is to be said in the job's log. At the
    end of stdin it looks once more, answers, and exits.
    """

    #: Descriptors that the process inherits.
    descriptors: Sequence[int] = ()

    def __init__(self, space: Workspace, module: str, trouble: str, note: Callable[[str], None]) -> None:
        """Start nothing yet. `module`: what the process runs; `trouble`: what is noted where it fails."""
        self._space, self._module, self._trouble, self._note = space, module, trouble, note
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        #: Was it said that something failed?
        self._failed = False

    @abstractmethod
    def is_needed(self) -> bool:
        """Return whether there is anything to read."""

    @abstractmethod
    def make_order(self) -> dict[str, Any]:
        """Return the process's order, its first argument as JSON."""

    @abstractmethod
    async def greet(self, process: asyncio.subprocess.Process) -> None:
        """Do what is to be done when the process has been started. Raises OSError, ValueError."""

    def tick(self) -> None:
        """Begin to look, if there is anything to look at."""
        if self._looking is None and self.is_needed():
            self._looking = asyncio.get_running_loop().create_task(self._look_on())

    async def _look_on(self) -> None:
        while True:
            pause = _LOOK_SECONDS if await self.look() else _AGAIN_SECONDS
            await asyncio.sleep(pause)

    async def look(self) -> bool:
        """Have all that the job wrote by now in the metrics file; False where it could not be read."""
        if not self.is_needed():
            return True
        async with self._lock:
            try:
                if self._process is None:
                    await self._start()
                assert self._process is not None and self._process.stdin is not None
                self._process.stdin.write(b"\n")
                await self._process.stdin.drain()
                if await asyncio.wait_for(self._answer(self._process), _PATIENCE_SECONDS):
                    return True
                raise OSError("the process has ended")
            except (OSError, ValueError, TimeoutError) as exc:
                await self._end(exc)
                return False
            except asyncio.CancelledError:  # its answer would be taken for that to the next look
                self._kill()
                raise

    async def finish(self) -> None:
        """Have all that the job wrote in the metrics file, as it has ended; then end the process."""
        if not self.is_needed():
            return
        async with self._lock:
            if self._looking is not None:  # it waits for its next look
                self._looking.cancel()
            for _ in range(2):  # a second time, by another, where the first was killed
                try:
                    if self._process is None:
                        await self._start()
                    process = self._process
                    assert process is not None and process.stdin is not None
                    process.stdin.close()
                    while await asyncio.wait_for(self._answer(process), _PATIENCE_SECONDS):
                        pass  # one that was asked for before
                    if await process.wait() == 0:
                        self._process = None
                        return
                    raise OSError(f"the process exited with {process.returncode}")
                except (OSError, ValueError, TimeoutError) as exc:
                    await self._end(exc)

    async def catch_up(self) -> None:
        """Look before a checkpoint, which must not go to the store before what was logged by then."""
        if self.is_needed():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECKPOINT_SECONDS):
                    await self.look()

    async def _start(self) -> None:
        # Marked, so that our successor ends it; in a session of its own, so that ^C does not.
        state = self._space.root.rsplit("/", 2)[0]
        ours = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), MARK: f"{state}:0"}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self._module, json.dumps(self.make_order())),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=self.descriptors,
            cwd="/",
            env={**select_needed_variables(os.environ), **ours},
            start_new_session=True,
        )
        await self.greet(self._process)

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
            self._note(f"{self._trouble} ({exc or type(exc).__name__})")
        if process := self._kill():
            await process.wait()

    def _kill(self) -> asyncio.subprocess.Process | None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        return process
