"""What a job finds in its environment, beside what it inherits."""

from __future__ import annotations

import json

from monkey.spec.job.job_table import nested
from monkey_agent.execution.workspace import Workspace
from monkey_agent.ports import Attempt


def job_variables(attempt: Attempt, space: Workspace) -> dict[str, str]:
    """Return the variables of an attempt that runs there."""
    return {
        "MONKEY_PARAMS": json.dumps(nested(attempt.parameters), ensure_ascii=False),
        "MONKEY_JOB": attempt.job,
        "MONKEY_ATTEMPT": str(attempt.number),
        "MONKEY_SWEEP": attempt.sweep,
        "MONKEY_OUTPUT_DIR": space.outputs,
        "MONKEY_CHECKPOINT_DIR": space.checkpoint,
        "MONKEY_METRICS_DIR": space.metrics,
        "PWD": space.work,
    }
