"""The container of one attempt: its place at the runtime, and what its end says of that."""

from __future__ import annotations

import asyncio
import errno
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from monkey.fleet.container_runtime import ContainerRuntime
from monkey_agent.containers.container_start import explain_start_failure, has_begun, is_image_at_fault
from monkey_agent.containers.container_sweep import ContainerSweeper
from monkey_agent.containers.runtime_faults import RuntimeFaults, StartedKind
from monkey_agent.supervisor.process import ProcessExit

#: What the kernel says of a program that is missing, or cannot be run.
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)


@dataclass(frozen=True)
class JobContainer:
    """The container of an attempt: its runtime, its image as that takes it, and its name there."""

    runtime: ContainerRuntime
    image: str
    name: str
    sweeper: ContainerSweeper
    faults: RuntimeFaults
    kind: StartedKind
    #: Number of the runtime's faults when it was asked for.
    count: int
    #: The number in its mark; see `container_start`.
    number: str = field(default_factory=lambda: secrets.token_hex(16))

    def note_end(self, how: asyncio.Future[ProcessExit]) -> None:
        """Have the container removed where its client did not see it end."""
        if not how.cancelled() and (how.result().kind == "lost" or how.result().code < 0):
            self.sweeper.remove(self.name)

    def note_begun(self, mark: str) -> None:
        """End what earlier faults of its runtime brought about, if it began; `mark`: the file with its number."""
        if self.faults.is_ended_by(self.kind, self.count) and has_begun(mark, self.number):
            self.faults.note_begun(self.kind, self.count)

    def explain_image(self, mark: str, how: ProcessExit, said: Sequence[str]) -> str:
        """Return why the image could not be run; "" where it could, or the runtime is at fault."""
        if has_begun(mark, self.number) or not is_image_at_fault(said):
            return ""
        return explain_start_failure(self.runtime.kind, how, said)

    def find_fault(self, mark: str, program: str, how: ProcessExit, said: Sequence[str], why: str) -> str:
        """Return why the runtime ran nothing, and note that; "" if the command ran, or the job is at fault.

        `mark`: the file with its number; `program`: what was to start it. `how`: its end; `said`: the last lines of its
        log. `why`: the time-out for which it was ended, "" if it ended by itself.
        """
        if how.kind not in ("ended", "failed") or how.over:
            return ""
        if how.kind == "failed" and not (how.code in _NO_PROGRAM and how.file == program):
            return ""  # too large a variable, or no working directory: it would be so with any runtime
        if has_begun(mark, self.number):
            return ""
        if how.code and is_image_at_fault(said):
            return ""
        fault = explain_start_failure(self.runtime.kind, how, said, why)
        self.faults.note(self.kind, fault)
        return fault
