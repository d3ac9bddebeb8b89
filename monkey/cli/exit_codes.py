"""Exit codes of `monkey` besides 0, 1 (an error, failed jobs) and the 2 of `plan --detailed-exitcode` and `diff`."""

from __future__ import annotations

#: `compare`: HEAD is worse than BASE.
REGRESSION = 2
#: `apply --expect`: the plan is another one than the one that was agreed to; nothing was applied.
UNEXPECTED_PLAN = 3
#: What is returned where a signal ended us, as shells do.
INTERRUPTED, BROKEN_PIPE = 130, 141
