"""The process of an attempt, and what it was launched with."""

from __future__ import annotations

from dataclasses import dataclass

from monkey.errors import StoreError
from monkey.transfer.globs import GlobPatterns
from monkey_agent.cache.code_cache import UnpackedSnapshot
from monkey_agent.checkpoints.checkpoint_saver import CheckpointSaver
from monkey_agent.execution.workspace import Workspace
from monkey_agent.facts.recipe_facts import RecipeFacts
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.supervisor.process import ProcessExit, SupervisedProcess


@dataclass(frozen=True)
class LaunchedProcess:
    """The process of an attempt, and what it was launched with."""

    process: SupervisedProcess
    space: Workspace
    log: AttemptLog
    checkpoint: CheckpointSaver
    code: UnpackedSnapshot
    #: The files that are its outputs; None: its recipe names none.
    globs: GlobPatterns | None
    #: How the keys begin under which the store gets what it leaves.
    prefix: str
    #: Its argv[0], and the GPUs that it may use, as CUDA_VISIBLE_DEVICES names them.
    program: str = ""
    gpus: tuple[str, ...] = ()
    #: What results of its recipe come from; None for one that was launched in an earlier life of the agent.
    facts: RecipeFacts | None = None

    def __post_init__(self) -> None:
        """Let the container of the attempt know of its end."""
        if self.space.hold is not None and self.space.hold.container is not None:
            self.process.ended.add_done_callback(self.space.hold.container.note_end)
            self.process.ended.add_done_callback(lambda _: self.note_begun())

    def note_begun(self) -> None:
        """Have the runtime's earlier faults forgotten, if the attempt's container began."""
        if self.space.hold is not None and self.space.hold.container is not None:
            self.space.hold.container.note_begun(self.space.container_mark)

    def find_fault(self, how: ProcessExit, why: str = "") -> str:
        """Return why the runtime did not start the attempt's container; "" if it did.

        `why`: the time-out for which the agent ended it; "" if it ended by itself.
        """
        container = self.space.hold.container if self.space.hold is not None else None
        if container is None:
            return ""
        return container.find_fault(self.space.container_mark, self.program, how, self.log.tail(), why)

    async def record_facts(self) -> str:
        """Return the hash of what its result comes from, once that is in the store; "" where it is not known.

        Raises StoreError.
        """
        try:
            return await self.facts.record(self.gpus) if self.facts is not None else ""
        except StoreError:
            raise
        except Exception:  # it costs no job its result
            return ""
