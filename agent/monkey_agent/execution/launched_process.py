"""The process of an attempt, and what it was launched with."""

from __future__ import annotations

from dataclasses import dataclass

from monkey.transfer.globs import Globs
from monkey_agent.cache.code_cache import UnpackedSnapshot
from monkey_agent.checkpoints.checkpoint_saver import Checkpoint
from monkey_agent.execution.workspace import Workspace
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.supervisor.process import Process


@dataclass(frozen=True)
class LaunchedProcess:
    """The process of an attempt, and what it was launched with."""

    process: Process
    space: Workspace
    log: AttemptLog
    checkpoint: Checkpoint
    code: UnpackedSnapshot
    #: The files that are its outputs; None: its recipe names none.
    globs: Globs | None
    #: How the keys begin under which the store gets what it leaves.
    prefix: str
    #: Its argv[0], and the GPUs that it may use, as CUDA_VISIBLE_DEVICES names them.
    program: str = ""
    gpus: tuple[str, ...] = ()
