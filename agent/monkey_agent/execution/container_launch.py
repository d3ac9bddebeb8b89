"""The command line of an attempt whose recipe has an image: what of this machine it sees in its container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from monkey_agent.containers.container_command import ContainerRun, build_container_command
from monkey_agent.containers.container_start import write_start_mark
from monkey_agent.containers.mount_points import make_mount_points
from monkey_agent.execution.workspace import CONTAINER_USAGE_FILE

if TYPE_CHECKING:
    from monkey_agent.execution.attempt_resources import AttemptResources
    from monkey_agent.execution.workspace import Workspace
    from monkey_agent.ports import Attempt

#: The directory of a workspace for temporary files of a container.
_SCRATCH = "tmp"
#: There where control groups are of version 2 alone.
_SECOND = Path("/sys/fs/cgroup/cgroup.controllers")


def make_container_command(
    attempt: Attempt, space: Workspace, argv: list[str], env: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return argv and variables by which an attempt runs in the container that it holds.

    `env`: all variables of the job; PYTHONPATH ends with the directory from which it imports monkey.
    Raises JobFailed, OSError.
    """
    hold: AttemptResources | None = space.hold
    assert hold is not None and hold.container is not None
    kind, scratch = hold.container.runtime.kind, f"{space.root}/{_SCRATCH}"
    if kind == "apptainer":
        os.mkdir(scratch)  # noqa: PTH102 - paths are plain strings here
        space.spoilt = True  # no other attempt is to find it
    run = ContainerRun(
        name=hold.container.name,
        image=hold.container.image,
        argv=argv,
        work=space.work,
        writable=(space.root,),
        readable=(env["PYTHONPATH"].rpartition(os.pathsep)[2], *map(str, [*hold.mounts, *filter(None, [hold.venv])])),
        env=env,
        uid=os.getuid(),
        gid=os.getgid(),
        venv=str(hold.venv or ""),
        scratch=scratch if kind == "apptainer" else "",
        gpus=bool(env.get("CUDA_VISIBLE_DEVICES")),
        memory=attempt.settings.resources.memory,
        secrets=tuple(attempt.settings.secrets),
        labels=hold.container.sweeper.labels,
        # Without root, control groups of version 1 are no user's own.
        report=f"{space.root}/{CONTAINER_USAGE_FILE}" if os.geteuid() == 0 or _SECOND.exists() else "",
        mark=space.container_mark,
    )
    write_start_mark(space.container_mark, hold.container.number)
    if kind == "charliecloud":
        make_mount_points(run.image, (*run.writable, *run.readable))
    return build_container_command(hold.container.runtime, run)
