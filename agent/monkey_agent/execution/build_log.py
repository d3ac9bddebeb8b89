"""The log of a build that failed becomes the log of an attempt that wanted the environment: so it can be read."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from monkey.spec.job.recipe import LOG_ELSEWHERE
from monkey.untrusted_files import open_regular
from monkey_agent.cache.single_flight import run_to_end
from monkey_agent.environments.environment_build import EnvironmentBuildFailed
from monkey_agent.execution.workspace import Workspace
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.logs.masking import LogMask
from monkey_agent.ports import Attempt


async def ship_build_log(
    failed: EnvironmentBuildFailed,
    attempt: Attempt,
    space: Workspace,
    open_log: Callable[[str, LogMask | None], AttemptLog],
) -> None:
    """Bring the whole log to the store by way of the fresh workspace `space`; one job's for all that fail alike.

    Others say whose it is. What `failed` quotes is masked. Raises StoreError.
    """
    log, mask = failed.log, failed.mask
    if mask is not None:
        failed.message = _masked(mask, failed.message)
        failed.log_tail = [_masked(mask, line) for line in failed.log_tail]
    if log is None:
        return
    if log.job not in ("", attempt.job):
        failed.message += f" ({LOG_ELSEWHERE} {log.job})"
        return
    log.job = attempt.job
    try:
        with contextlib.suppress(OSError):  # its end is in the error, anyhow
            await run_to_end(lambda: _copy(log.path, space.log))
            await open_log(space.log, mask).ship()
    except BaseException:
        log.job = ""
        raise


def _copy(path: Path, log: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with path.open("rb") as source, os.fdopen(open_regular(log, flags), "wb") as target:
        shutil.copyfileobj(source, target)


def _masked(mask: LogMask, text: str) -> str:
    return mask.hide(text.encode(errors="replace")).decode(errors="replace")
